from typing import Any

from skihmm._records import ModelRecord, TransitionsRecord
from skihmm._typing import Floats

HYPERPARAMETERS: tuple[str, ...]
STAY_PRIOR: str

class Franchise:
    def __init__(
        self,
        alpha: float = ...,
        gamma: float = ...,
        prior: tuple[float, float] | None = ...,
        stay_prior: tuple[float, float | str] | None = ...,
        dwell: float | None = ...,
    ) -> None: ...
    @property
    def hyperparameters(self) -> dict[str, Any]: ...
    @property
    def has_coins(self) -> bool: ...

def hyperparameters_of(record: TransitionsRecord) -> dict[str, Any]: ...
def occupancies_of(record: TransitionsRecord) -> Floats: ...
def changes_of(arrays: ModelRecord) -> Floats: ...
