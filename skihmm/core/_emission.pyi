from typing import Any

from numpy.typing import NDArray

class EmissionStats:
    n_steps: int
    draws_parameters: bool
    def load(self, arrays: dict[str, Any], slots: NDArray[Any]) -> None: ...
    def to_arrays(self, labels: NDArray[Any]) -> dict[str, Any]: ...
    def check(self, slots: NDArray[Any]) -> str | None: ...
