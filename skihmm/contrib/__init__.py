"""Bridges to other packages.

The functions here need no package but the one whose models they make.  The modules
`skihmm.contrib.aeon` and `skihmm.contrib.sktime` have segmenters for these packages, and
import them.
"""

from skihmm.contrib._hmmlearn import from_hmmlearn, to_hmmlearn

__all__ = ["from_hmmlearn", "to_hmmlearn"]
