from typing import Any

import numpy as np
from numpy.typing import ArrayLike

class RandomStream:
    bit_generator: np.random.BitGenerator
    generator: np.random.Generator
    state: Any
    def __init__(self, seed: Any) -> None: ...
    def categorical(self, log_weights: ArrayLike) -> int: ...
