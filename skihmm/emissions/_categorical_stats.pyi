from typing import Any

from numpy.typing import NDArray

from skihmm.core._emission import EmissionStats

class CategoricalStats(EmissionStats):
    def __init__(
        self,
        codes: NDArray[Any],
        n_symbols: list[int],
        alpha: float,
        gamma: float = ...,
        hierarchical: bool = ...,
        concentration_prior: tuple[float, float] | None = ...,
        draws_pseudo_count: bool = ...,
    ) -> None: ...
    def columns(self, arrays: Any = ...) -> list[tuple[int, bool, float, float]]: ...
