"""Bridges to other packages.

The functions here need no package but the one whose models they make.  The segmenter for
aeon is in the module `skihmm.contrib.aeon`, which imports aeon.
"""

from skihmm.contrib._hmmlearn import from_hmmlearn, to_hmmlearn

__all__ = ["from_hmmlearn", "to_hmmlearn"]
