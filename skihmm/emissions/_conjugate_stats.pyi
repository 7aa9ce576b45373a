from collections.abc import Sequence

from numpy.typing import ArrayLike

from skihmm._typing import Floats
from skihmm.core._emission import EmissionStats
from skihmm.emissions._subject_effects import SubjectEffects

def conjugate_stats(
    name: str,
    rows: Floats,
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
) -> EmissionStats: ...
def open_effects(stats: EmissionStats, effects: SubjectEffects) -> EmissionStats: ...
