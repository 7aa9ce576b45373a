from collections.abc import Sequence

from skihmm._typing import Labels
from skihmm.core._emission import EmissionStats

def product_stats(parts: Sequence[EmissionStats]) -> EmissionStats: ...
def known_states(labels: Labels, is_closed: bool = ...) -> EmissionStats: ...
