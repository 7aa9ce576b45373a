from skihmm._typing import Integers
from skihmm.core._emission import EmissionStats

class CategoricalStats(EmissionStats):
    def __init__(
        self,
        codes: Integers,
        n_symbols: list[int],
        alpha: float,
        gamma: float = ...,
        hierarchical: bool = ...,
        concentration_prior: tuple[float, float] | None = ...,
        draws_pseudo_count: bool = ...,
    ) -> None: ...
