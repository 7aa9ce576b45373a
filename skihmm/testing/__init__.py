"""Checks for authors of samplers, emissions and proposals.

Every check raises an AssertionError that names the violated property and the values that
show it.  No test framework is needed.
"""

from skihmm.testing._emission import check_emission
from skihmm.testing._proposal import check_proposal
from skihmm.testing._recipe import make_instances
from skihmm.testing._sampler import check_sampler

__all__ = [
    "check_emission",
    "check_proposal",
    "check_sampler",
    "make_instances",
]
