"""Short names of emissions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skihmm.emissions._autoregressive import AutoregressiveNormal
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._categorical import DirichletCategorical, HCRPCategorical
from skihmm.emissions._conjugate import (
    BetaBernoulli,
    GammaPoisson,
    NormalInverseGamma,
    NormalInverseWishart,
)
from skihmm.emissions._dispersed import BetaNegativeBinomial, GammaGamma, VonMises
from skihmm.emissions._regressions import (
    BernoulliRegression,
    CategoricalRegression,
    NegativeBinomialRegression,
)

EMISSIONS: dict[str, Callable[[], BaseEmission]] = {
    "hcrp": HCRPCategorical,
    "dirichlet": DirichletCategorical,
    "autoregressive": AutoregressiveNormal,
    "regression": partial(AutoregressiveNormal, order=0),
    "gaussian": NormalInverseWishart,
    "diagonal_gaussian": NormalInverseGamma,
    "poisson": GammaPoisson,
    "bernoulli": BetaBernoulli,
    "logistic": BernoulliRegression,
    "negative_binomial": BetaNegativeBinomial,
    "choice": CategoricalRegression,
    "log_linear": NegativeBinomialRegression,
    "gamma": GammaGamma,
    "von_mises": VonMises,
}
