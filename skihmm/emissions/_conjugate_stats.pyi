from collections.abc import Collection
from typing import Any

from numpy.typing import ArrayLike, NDArray

from skihmm.core._emission import EmissionStats

class ConjugateStats(EmissionStats):
    def __init__(self, values: NDArray[Any]) -> None: ...
    def hyperparameters(self) -> NDArray[Any]: ...
    def expectations(self, arrays: dict[str, Any], n_states: int) -> NDArray[Any]: ...

def normal_inverse_gamma(
    values: NDArray[Any],
    mean: ArrayLike,
    strength: ArrayLike,
    shape: float,
    scale: ArrayLike,
    units: tuple[ArrayLike, ArrayLike] = ...,
    drawn: Collection[str] = ...,
) -> ConjugateStats: ...
def normal_inverse_wishart(
    values: NDArray[Any],
    mean: ArrayLike,
    strength: float,
    dof: float,
    scale: NDArray[Any],
    units: tuple[ArrayLike, ArrayLike] = ...,
    drawn: Collection[str] = ...,
) -> ConjugateStats: ...
def gamma_poisson(
    values: NDArray[Any],
    shape: ArrayLike,
    rate: ArrayLike,
    means: ArrayLike = ...,
    drawn: Collection[str] = ...,
) -> ConjugateStats: ...
def beta_bernoulli(
    values: NDArray[Any], a: ArrayLike, b: ArrayLike, drawn: Collection[str] = ...
) -> ConjugateStats: ...
