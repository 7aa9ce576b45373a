from skihmm._contexts import ContextTree
from skihmm._typing import Integers, Labels
from skihmm.core._emission import EmissionStats

class ContextStats(EmissionStats):
    contexts: Labels
    tree: ContextTree
    def __init__(
        self,
        codes: Integers,
        contexts: Integers,
        n_symbols: list[int],
        alpha: float,
        gamma: float,
        context_alpha: list[float],
        concentration_prior: tuple[float, float] | None = ...,
    ) -> None: ...
    @property
    def table_counts(self) -> list[int]: ...
