"""Hidden Markov models whose number of states is not known in advance.

The estimator is :class:`HCRPHMM`; samplers, emissions, metrics and data sets are in the
modules of those names.
"""

from skihmm._hcrp_hmm import HCRPHMM
from skihmm._version import __version__

__all__ = ["HCRPHMM", "__version__"]
