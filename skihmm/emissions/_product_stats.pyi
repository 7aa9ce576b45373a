from collections.abc import Sequence

from skihmm._typing import Labels
from skihmm.core._emission import EmissionStats

class ProductStats(EmissionStats):
    parts: tuple[EmissionStats, ...]
    def __init__(self, parts: Sequence[EmissionStats]) -> None: ...

class KnownStatesStats(EmissionStats):
    def __init__(self, labels: Labels, is_closed: bool = ...) -> None: ...
