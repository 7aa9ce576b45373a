from collections.abc import Sequence

from skihmm._typing import Integers
from skihmm.core._emission import EmissionStats

def categorical_stats(
    codes: Integers,
    n_symbols: list[int],
    alpha: float,
    gamma: float = ...,
    hierarchical: bool = ...,
    concentration_prior: tuple[float, float] | None = ...,
    draws_pseudo_count: bool = ...,
    contexts: Integers | None = ...,
    context_alpha: Sequence[float] = ...,
) -> EmissionStats: ...
