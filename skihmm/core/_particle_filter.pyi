from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skihmm.core._random import RandomStream

RESAMPLING: tuple[str, ...]

def filter_particles(
    codes: NDArray[Any],
    starts: Any,
    columns: list[Any],
    stream: RandomStream,
    *,
    n_particles: int,
    alpha: float,
    gamma: float,
    seating: dict[str, Any] | None = ...,
    restaurant: int = ...,
    resampling: str = ...,
    is_stopped: Callable[[], bool] | None = ...,
    independent: bool = ...,
) -> tuple[NDArray[np.float64], Any]: ...
def simulate(
    n_steps: int,
    columns: list[Any],
    n_known: list[int],
    stream: RandomStream,
    *,
    alpha: float,
    gamma: float,
    seating: dict[str, Any],
) -> tuple[NDArray[Any], NDArray[np.int32]]: ...
