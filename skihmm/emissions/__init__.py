"""Emission recipes, which the estimator fits to the data."""

from skihmm.emissions._autoregressive import AutoregressiveNormal
from skihmm.emissions._base import BaseEmission, Part
from skihmm.emissions._categorical import DirichletCategorical, HCRPCategorical
from skihmm.emissions._conjugate_emission import ConjugateEmission, CustomEmission
from skihmm.emissions._counts import BetaBernoulli, BetaNegativeBinomial, GammaPoisson
from skihmm.emissions._dispersed import GammaGamma, VonMises
from skihmm.emissions._gaussian import NormalInverseGamma, NormalInverseWishart
from skihmm.emissions._product import ProductEmission
from skihmm.emissions._regressions import (
    BernoulliRegression,
    CategoricalRegression,
    NegativeBinomialRegression,
)
from skihmm.emissions._spec import ColumnSpec, StateNumber, StateParameter

__all__ = [
    "AutoregressiveNormal",
    "BaseEmission",
    "BernoulliRegression",
    "BetaBernoulli",
    "BetaNegativeBinomial",
    "CategoricalRegression",
    "ColumnSpec",
    "ConjugateEmission",
    "CustomEmission",
    "DirichletCategorical",
    "GammaGamma",
    "GammaPoisson",
    "HCRPCategorical",
    "NegativeBinomialRegression",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "Part",
    "ProductEmission",
    "StateNumber",
    "StateParameter",
    "VonMises",
]
