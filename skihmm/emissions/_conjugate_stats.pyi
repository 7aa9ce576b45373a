from collections.abc import Sequence

from numpy.typing import ArrayLike

from skihmm._records import EmissionRecord
from skihmm._typing import Array, Floats, Integers
from skihmm.core._emission import EmissionStats
from skihmm.core._random import RandomStream

class ConjugateStats(EmissionStats):
    def __init__(self, values: Floats) -> None: ...
    def open_subjects(
        self, codes: Array, n_subjects: int, variances: Floats, has_scales: bool
    ) -> None: ...
    def fill_inputs(self, rows: Floats, previous: Integers) -> None: ...
    def hyperparameters(self) -> Floats: ...
    def parameters(
        self, arrays: EmissionRecord, n_states: int, stream: RandomStream | None = ...
    ) -> Floats: ...

def conjugate_stats(
    name: str,
    values: Floats,
    hyperparameters: Sequence[ArrayLike],
    units: Sequence[ArrayLike] | Floats,
    is_drawn: Sequence[bool],
    n_inputs: int = ...,
    n_given: int = ...,
    *,
    shape: float = ...,
    dof: float = ...,
    period: float = ...,
    n_options: int = ...,
    has_exposure: int = ...,
    n_shifts: int = ...,
    stats_type: type[ConjugateStats] | None = ...,
) -> ConjugateStats: ...
