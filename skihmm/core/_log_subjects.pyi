from collections.abc import Callable

from skihmm._typing import Floats, Integers, Labels
from skihmm.core._random import RandomStream

def register_log_subjects(
    values: Floats,
    inputs: Floats,
    starts: Integers | list[int],
    subjects: Integers,
    stream: RandomStream,
    *,
    kind: str,
    is_stopped: Callable[[], bool] | None = ...,
) -> tuple[Floats, Labels | None]: ...
