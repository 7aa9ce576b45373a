from skihmm._typing import Floats, Integers
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream

def follow_new_subjects(
    model: FrozenModel,
    starts: Integers,
    subjects: Integers,
    *,
    n_particles: int,
    stream: RandomStream,
    with_ahead: bool = False,
) -> tuple[Floats, Floats, Floats | None, Floats | None]: ...
