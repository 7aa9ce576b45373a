"""Hidden Markov models whose number of states is not known in advance.

The estimator is :class:`HCRPHMM`; samplers, emissions, metrics, data sets, summaries of
the posterior and pictures are in the modules `samplers`, `emissions`, `metrics`,
`datasets`, `posterior` and `inspection`.
"""

from skihmm._hcrp_hmm import HCRPHMM
from skihmm._version import __version__

__all__ = ["HCRPHMM", "__version__"]
