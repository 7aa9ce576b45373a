from typing import Protocol

from skihmm._typing import Array, Labels, NamedValues
from skihmm.core._emission import EmissionStats
from skihmm.core._rcd import CompiledKernel

class DrawsPieces(Protocol):
    def draw(self, sweep: NamedValues, pieces: Array, labels: Labels) -> None: ...

class StickBreakingKernel(CompiledKernel):
    beam: bool
    block_size: int
    n_threads: int
    def __init__(
        self,
        beam: bool = ...,
        block_size: int = ...,
        n_threads: int = ...,
        stats: EmissionStats | None = ...,
        shards: DrawsPieces | None = ...,
    ) -> None: ...

class StickBreakingShard:
    start: int
    def __init__(self, stats: EmissionStats, first: Array, start: int) -> None: ...
    def draw(
        self,
        sweep: NamedValues,
        first: int,
        pieces: Array,
        labels: Labels,
        before: int,
    ) -> Labels: ...
