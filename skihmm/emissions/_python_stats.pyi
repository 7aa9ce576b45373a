from typing import Any

from numpy.typing import NDArray

from skihmm.emissions._conjugate_stats import ConjugateStats

class PythonStats(ConjugateStats):
    def __init__(self, values: NDArray[Any], emission: Any) -> None: ...
