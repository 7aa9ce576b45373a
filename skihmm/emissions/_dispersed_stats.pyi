from collections.abc import Sequence

from numpy.typing import ArrayLike

from skihmm._typing import Floats
from skihmm.emissions._conjugate_stats import ConjugateStats

def dispersed(
    law: str,
    values: Floats,
    hyperparameters: ArrayLike,
    units: ArrayLike,
    is_drawn: Sequence[bool],
    period: float = ...,
) -> ConjugateStats: ...
