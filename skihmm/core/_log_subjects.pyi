from collections.abc import Callable
from types import SimpleNamespace

from skihmm._typing import Floats, Integers, Labels
from skihmm.core._random import RandomStream

def rivals_of_subjects(
    values: Floats,
    inputs: Floats,
    starts: Integers | list[int],
    subjects: Integers,
    path: Labels,
    fit: SimpleNamespace,
    *,
    kind: str,
) -> Floats: ...
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
