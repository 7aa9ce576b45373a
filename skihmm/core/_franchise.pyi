from skihmm._records import TransitionsRecord
from skihmm._typing import Floats

HYPERPARAMETERS: tuple[str, ...]

class Franchise:
    def __init__(
        self,
        alpha: float = ...,
        gamma: float = ...,
        prior: tuple[float, float] | None = ...,
    ) -> None: ...
    @property
    def hyperparameters(self) -> dict[str, float]: ...

def hyperparameters_of(record: TransitionsRecord) -> dict[str, float]: ...
def occupancies_of(record: TransitionsRecord) -> Floats: ...
