"""What a package of extensions for skihmm looks like."""

import numpy as np

from skihmm.core._rcd import RCDKernel
from skihmm.emissions import CustomEmission
from skihmm.samplers import BaseSampler, FranchiseSampler
from skihmm_extra._native import ForwardProposal, WindowKernel, geometric_stats

__all__ = ["ForwardSampler", "Geometric", "WindowSampler"]


class ForwardSampler(FranchiseSampler):
    """Steps one by one, proposed from their predecessors.

    Parameters
    ----------
    split_merge_rate : float, default=0
        Split-merge trials per sweep.
    run_split_merge_rate : float, default=0
        Those of whole runs.
    """

    def __init__(self, split_merge_rate=0, run_split_merge_rate=0):
        self.split_merge_rate = split_merge_rate
        self.run_split_merge_rate = run_split_merge_rate

    def make_kernel(self, state):
        """Build the compiled kernel for one chain."""
        return self.add_split_merge(RCDKernel(ForwardProposal()))


class WindowSampler(BaseSampler):
    """Windows of one state, moved as a whole."""

    def make_kernel(self, state):
        """Build the compiled kernel for one chain."""
        return WindowKernel()


class Geometric(CustomEmission):
    """One column of counts, geometric in every state.

    Parameters
    ----------
    a, b : float, default=1.0
        Parameters of the Beta prior on the probability of a success.
    """

    emits_integers = is_positive_only = takes_integers = True

    def __init__(self, a=1.0, b=1.0):
        self.a = a
        self.b = b

    def check_values(self, X):
        """Refuse values that are no counts."""
        if X.shape[1] != 1:
            raise ValueError(f"X has {X.shape[1]} columns; expected one.")
        if (X < 0).any() or (np.floor(X) != X)[~np.isnan(X)].any():
            raise ValueError("Negative values in data, or fractions; expected counts.")

    def learn(self, X):
        """Check the prior; there is nothing to learn from the data."""
        if not (self.a > 0 and self.b > 0):
            raise ValueError(f"a={self.a}, b={self.b}; expected numbers > 0.")

    def make_stats(self, codes):
        """Build empty statistics over encoded data."""
        return geometric_stats(codes, self.a, self.b)
