from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

class RandomStream:
    bit_generator: np.random.BitGenerator
    generator: np.random.Generator
    state: Mapping[str, object]
    def __init__(
        self,
        seed: int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | None,
    ) -> None: ...
    def categorical(self, log_weights: ArrayLike) -> int: ...
