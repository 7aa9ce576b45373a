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
) -> tuple[Floats, Floats]: ...
