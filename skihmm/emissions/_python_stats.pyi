from skihmm._typing import Floats
from skihmm.core._emission import EmissionStats
from skihmm.emissions._conjugate_emission import ConjugateEmission

def python_stats(rows: Floats, emission: ConjugateEmission) -> EmissionStats: ...
