from skihmm._typing import Floats
from skihmm.emissions._conjugate_emission import ConjugateEmission
from skihmm.emissions._conjugate_stats import ConjugateStats

class PythonStats(ConjugateStats):
    def __init__(self, values: Floats, emission: ConjugateEmission) -> None: ...
