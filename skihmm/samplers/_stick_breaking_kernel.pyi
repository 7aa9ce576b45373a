from typing import Any, Protocol

from numpy.typing import NDArray

from skihmm._typing import Labels
from skihmm.core._emission import EmissionStats
from skihmm.core._rcd import CompiledKernel

class DrawsPieces(Protocol):
    def draw(
        self, sweep: dict[str, Any], pieces: NDArray[Any], labels: Labels
    ) -> None: ...

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
    def __init__(self, stats: EmissionStats, first: NDArray[Any], start: int) -> None: ...
    def draw(
        self,
        sweep: dict[str, Any],
        first: int,
        pieces: NDArray[Any],
        labels: Labels,
        before: int,
    ) -> Labels: ...
