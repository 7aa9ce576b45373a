from typing import Any

from numpy.typing import NDArray

from skihmm.core._emission import EmissionStats

class ConjugateStats(EmissionStats):
    def __init__(self, values: NDArray[Any]) -> None: ...

def normal_inverse_gamma(
    values: NDArray[Any],
    mean: NDArray[Any],
    strength: float,
    shape: float,
    scale: NDArray[Any],
) -> ConjugateStats: ...
def normal_inverse_wishart(
    values: NDArray[Any],
    mean: NDArray[Any],
    strength: float,
    dof: float,
    scale: NDArray[Any],
) -> ConjugateStats: ...
def gamma_poisson(
    values: NDArray[Any], shape: NDArray[Any], rate: NDArray[Any]
) -> ConjugateStats: ...
def beta_bernoulli(values: NDArray[Any], a: float, b: float) -> ConjugateStats: ...
