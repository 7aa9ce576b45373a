"""Priors of the transitions: hyper-parameter objects."""

from skihmm.transitions._hcrp import HCRPTransitions

__all__ = ["HCRPTransitions"]
