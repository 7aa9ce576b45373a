"""Transition recipes: priors of the transition probabilities."""

from skihmm.transitions._base import BaseTransitions
from skihmm.transitions._hcrp import HCRPTransitions

__all__ = ["BaseTransitions", "HCRPTransitions"]
