from typing import Any

import numpy as np

class RandomStream:
    bit_generator: np.random.BitGenerator
    generator: np.random.Generator
    state: Any
    def __init__(self, seed: Any) -> None: ...
