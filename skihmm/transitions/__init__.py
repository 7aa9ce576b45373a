"""Transition recipes: priors of the transition probabilities."""

from skihmm.transitions._hcrp import HCRPTransitions

__all__ = ["HCRPTransitions"]
