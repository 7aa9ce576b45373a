from typing import Any

import numpy as np
from numpy.typing import NDArray

from skihmm.core._emission import EmissionStats

class FrozenModel:
    n_steps: int
    n_states: int
    def __init__(
        self,
        arrays: dict[str, Any],
        emission: EmissionStats,
        starts: NDArray[Any],
        restaurant: int | None = ...,
    ) -> None: ...
    def transition_matrix(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def filter(
        self, with_probs: bool = ...
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]: ...
    def smooth(self) -> NDArray[np.float64]: ...
    def viterbi(self) -> tuple[float, NDArray[np.int32]]: ...
