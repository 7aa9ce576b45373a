from typing import Any

from skihmm._records import ModelRecord, TransitionsRecord
from skihmm._typing import Floats

HYPERPARAMETERS: tuple[str, ...]
STAY_PRIOR: str
MOST_STAGES: int

class Franchise:
    def __init__(
        self,
        alpha: float = ...,
        gamma: float = ...,
        prior: tuple[float, float] | None = ...,
        stay_prior: tuple[float, float | str] | None = ...,
        dwell: float | None = ...,
        n_stages: int = ...,
        starts_inside: bool = ...,
    ) -> None: ...
    @property
    def hyperparameters(self) -> dict[str, Any]: ...
    @property
    def has_coins(self) -> bool: ...
    @property
    def n_stages(self) -> int: ...
    @property
    def starts_inside(self) -> bool: ...

def hyperparameters_of(record: TransitionsRecord) -> dict[str, Any]: ...
def occupancies_of(record: TransitionsRecord) -> Floats: ...
def changes_of(arrays: ModelRecord) -> Floats: ...
