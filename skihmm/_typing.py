"""Types of arrays that annotations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Symbols, numbers or objects: of a type that only the data determine.
Array: TypeAlias = NDArray[Any]
Integers: TypeAlias = NDArray[np.integer]
Labels: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

# What users pass: arrays, data frames, or lists, with None where a value is missing.
MatrixLike: TypeAlias = ArrayLike | Sequence[Sequence[object]]
VectorLike: TypeAlias = ArrayLike | Sequence[object]

# What scikit-learn takes as random_state.
RandomState: TypeAlias = int | np.random.RandomState | None
