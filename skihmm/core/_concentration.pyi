from skihmm.core._emission import EmissionStats
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream

def resample_concentrations(
    transitions: Franchise,
    emission: EmissionStats,
    stream: RandomStream,
    prior: tuple[float, float] | None,
) -> None: ...
