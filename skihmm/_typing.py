"""Array types for annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Symbols, numbers or objects, depending on the data.
Array: TypeAlias = NDArray[Any]
Integers: TypeAlias = NDArray[np.integer]
Labels: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Cdf: TypeAlias = Callable[[Floats], Floats]

# User input: arrays, data frames, or lists, with None for missing values.
MatrixLike: TypeAlias = ArrayLike | Sequence[Sequence[object]]
VectorLike: TypeAlias = ArrayLike | Sequence[object]

# Values of several types by name: parameters, a record, the content of a file.
NamedValues: TypeAlias = dict[str, Any]

# scikit-learn's random_state.
RandomState: TypeAlias = int | np.random.RandomState | None
