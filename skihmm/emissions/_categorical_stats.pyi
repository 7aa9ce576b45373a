from collections.abc import Sequence

from skihmm._data.contexts import ContextTree
from skihmm._typing import Integers, Labels
from skihmm.core._emission import EmissionStats

class CategoricalStats(EmissionStats):
    contexts: Labels
    tree: ContextTree
    def __init__(
        self,
        codes: Integers,
        n_symbols: list[int],
        alpha: float,
        gamma: float = ...,
        hierarchical: bool = ...,
        concentration_prior: tuple[float, float] | None = ...,
        draws_pseudo_count: bool = ...,
        contexts: Integers | None = ...,
        context_alpha: Sequence[float] = ...,
    ) -> None: ...
    @property
    def table_counts(self) -> list[int]: ...
