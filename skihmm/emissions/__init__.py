"""How states emit observations: recipes that an estimator fits."""

from skihmm.emissions._base import BaseEmission
from skihmm.emissions._categorical import DirichletCategorical, HCRPCategorical

__all__ = ["BaseEmission", "DirichletCategorical", "HCRPCategorical"]
