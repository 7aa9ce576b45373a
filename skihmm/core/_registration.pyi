from collections.abc import Callable

from skihmm._typing import Floats, Integers
from skihmm.core._random import RandomStream

def register_subjects(
    values: Floats,
    starts: Integers | list[int],
    subjects: Integers,
    stream: RandomStream,
    *,
    scale: bool = ...,
    is_stopped: Callable[[], bool] | None = ...,
) -> tuple[Floats, Floats, int]: ...
