"""Short names of emissions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skihmm.emissions._autoregressive import AutoregressiveNormal
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._categorical import DirichletCategorical, HCRPCategorical
from skihmm.emissions._counts import BetaBernoulli, BetaNegativeBinomial, GammaPoisson
from skihmm.emissions._dispersed import GammaGamma, VonMises
from skihmm.emissions._gaussian import NormalInverseGamma, NormalInverseWishart
from skihmm.emissions._inputs import WithInputs
from skihmm.emissions._regressions import (
    BernoulliRegression,
    CategoricalRegression,
    NegativeBinomialRegression,
)


def _on_inputs(recipe: Callable[..., WithInputs], without: str) -> WithInputs:
    """Regression by its short name; `without` names the emission without inputs."""
    emission = recipe()
    emission._without_inputs = without
    return emission


EMISSIONS: dict[str, Callable[[], BaseEmission]] = {
    "hcrp": HCRPCategorical,
    "dirichlet": DirichletCategorical,
    "autoregressive": AutoregressiveNormal,
    "regression": partial(_on_inputs, partial(AutoregressiveNormal, order=0), "gaussian"),
    "gaussian": NormalInverseWishart,
    "student": partial(AutoregressiveNormal, order=0, noise="student"),
    "diagonal_gaussian": NormalInverseGamma,
    "poisson": GammaPoisson,
    "bernoulli": BetaBernoulli,
    "logistic": partial(_on_inputs, BernoulliRegression, "bernoulli"),
    "negative_binomial": BetaNegativeBinomial,
    "choice": partial(_on_inputs, CategoricalRegression, "hcrp"),
    "log_linear": partial(_on_inputs, NegativeBinomialRegression, "negative_binomial"),
    "gamma": GammaGamma,
    "von_mises": VonMises,
}
