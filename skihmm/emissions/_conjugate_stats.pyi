from collections.abc import Collection

from numpy.typing import ArrayLike

from skihmm._records import EmissionRecord
from skihmm._typing import Floats, Integers
from skihmm.core._emission import EmissionStats

class ConjugateStats(EmissionStats):
    def __init__(self, values: Floats) -> None: ...
    def fill_inputs(self, rows: Floats, previous: Integers) -> None: ...
    def hyperparameters(self) -> Floats: ...
    def expectations(self, arrays: EmissionRecord, n_states: int) -> Floats: ...

def normal_inverse_gamma(
    values: Floats,
    mean: ArrayLike,
    strength: ArrayLike,
    shape: float,
    scale: ArrayLike,
    units: tuple[ArrayLike, ArrayLike] = ...,
    drawn: Collection[str] = ...,
) -> ConjugateStats: ...
def normal_inverse_wishart(
    values: Floats,
    mean: ArrayLike,
    strength: float,
    dof: float,
    scale: Floats,
    units: tuple[ArrayLike, ArrayLike] = ...,
    drawn: Collection[str] = ...,
) -> ConjugateStats: ...
def autoregressive_normal(
    values: Floats,
    order: int,
    units: tuple[ArrayLike, ArrayLike],
    mean: ArrayLike,
    strength: ArrayLike,
    dof: float,
    scale: Floats,
    drawn: Collection[str] = ...,
) -> ConjugateStats: ...
def gamma_poisson(
    values: Floats,
    shape: ArrayLike,
    rate: ArrayLike,
    means: ArrayLike = ...,
    drawn: Collection[str] = ...,
) -> ConjugateStats: ...
def beta_bernoulli(
    values: Floats, a: ArrayLike, b: ArrayLike, drawn: Collection[str] = ...
) -> ConjugateStats: ...
