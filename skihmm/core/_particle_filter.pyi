from collections.abc import Callable

from skihmm._records import ModelRecord
from skihmm._typing import Array, Floats, Integers, Labels
from skihmm.core._emission import EmissionStats
from skihmm.core._franchise import Contexts, Franchise
from skihmm.core._random import RandomStream

def filter_particles(
    emission: EmissionStats,
    starts: Integers | list[int],
    stream: RandomStream,
    *,
    n_particles: int,
    transitions: Franchise | None = ...,
    seating: ModelRecord | None = ...,
    restaurant: int = ...,
    stage: int = ...,
    is_stopped: Callable[[], bool] | None = ...,
    independent: bool = ...,
    contexts: Contexts | None = ...,
    n_filtered: int | None = ...,
    path_only: bool = ...,
) -> tuple[Floats, Labels]: ...
def simulate(
    emission: EmissionStats,
    n_known: list[int],
    stream: RandomStream,
    seating: ModelRecord,
    contexts: Contexts | None = ...,
) -> tuple[Array, Labels]: ...
