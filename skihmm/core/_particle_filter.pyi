from collections.abc import Callable

from skihmm._records import ParticleRecord
from skihmm._typing import Array, Floats, Integers, Labels
from skihmm.core._emission import Column
from skihmm.core._franchise import Contexts, Franchise
from skihmm.core._random import RandomStream

def filter_particles(
    codes: Array,
    starts: Integers | list[int],
    columns: list[Column],
    stream: RandomStream,
    *,
    n_particles: int,
    transitions: Franchise | None = ...,
    seating: ParticleRecord | None = ...,
    restaurant: int = ...,
    stage: int = ...,
    is_stopped: Callable[[], bool] | None = ...,
    independent: bool = ...,
    contexts: Contexts | None = ...,
    n_filtered: int | None = ...,
    path_only: bool = ...,
) -> tuple[Floats, Labels]: ...
def simulate(
    n_steps: int,
    columns: list[Column],
    n_known: list[int],
    stream: RandomStream,
    seating: ParticleRecord,
    contexts: Contexts | None = ...,
    given: Integers | None = ...,
) -> tuple[Array, Labels]: ...
