from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from skihmm.core._emission import EmissionStats

class ProductStats(EmissionStats):
    parts: tuple[EmissionStats, ...]
    def __init__(
        self, parts: Sequence[EmissionStats], known_states: NDArray[Any] | None = ...
    ) -> None: ...
