from typing import Any

import numpy as np
from numpy.typing import NDArray

from skihmm.core._emission import EmissionStats
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream

class ChainState:
    n_steps: int
    n_trials: int
    n_trials_accepted: int
    transitions: Franchise
    emission: Any
    stream: RandomStream
    def __init__(
        self,
        starts: NDArray[Any],
        transitions: Franchise,
        emission: EmissionStats,
        stream: RandomStream,
    ) -> None: ...
    def start_from(self, labels: NDArray[Any]) -> None: ...
    def to_arrays(self) -> dict[str, Any]: ...
    def from_arrays(self, arrays: dict[str, Any]) -> None: ...
    def canonicalise(self) -> dict[str, Any]: ...
    def log_joint(self) -> float: ...
    def n_bytes(self) -> int: ...
    def check(self) -> str | None: ...
    @property
    def labels(self) -> NDArray[np.int32]: ...
    @property
    def n_states(self) -> int: ...
