"""A complete emission in pure Python: exponential waiting times."""

from __future__ import annotations

from operator import itemgetter

import numpy as np
from scipy.special import gammaln

from skihmm.emissions import ConjugateEmission, StateNumber, StateParameter


class Exponential(ConjugateEmission):
    """Waiting times, columns independent, with Gamma(shape, rate) priors on the rates.

    Parameters
    ----------
    shape : float, default=1.0
        Shape of the prior.
    rate : float or None, default=None
        Rate of the prior; None: the prior's mean rate is that of the column.

    Attributes
    ----------
    rate_ : ndarray of shape (n_features,)
        The prior used.
    """

    def __init__(self, shape=1.0, rate=None):
        self.shape = shape
        self.rate = rate

    # -- data

    def check_values(self, X):
        """Refuse negative values."""
        if (X < 0).any():
            row, column = np.argwhere(X < 0)[0]
            raise ValueError(
                f"Negative values in data: X[{row}, {column}] = {X[row, column]:g}; "
                "expected waiting times >= 0."
            )

    def learn(self, X):
        """Set the prior's rate from the data."""
        n = np.maximum((~np.isnan(X)).sum(axis=0), 1)
        means = np.maximum(np.nansum(X, axis=0) / n, 1e-300)
        self.rate_ = self.shape * means if self.rate is None else self.rate + 0 * means

    # -- sufficient statistics: number of observations, and their sum in every column

    def empty(self):
        return np.zeros(1 + len(self.rate_))

    def add(self, stats, y):
        return stats + np.append(1.0, y)

    def remove(self, stats, y):
        left = stats - np.append(1.0, y)
        # Removing a large waiting time leaves rounding errors.
        return None if (left[1:] < 1e-9 * stats[1:]).any() else left

    def log_predictive(self, stats, y):
        shape = self.shape + stats[:, :1]
        rate = self.rate_ + stats[:, 1:]
        return (np.log(shape / rate) - (shape + 1) * np.log1p(y / rate)).sum(axis=1)

    def log_marginal(self, stats):
        shape = self.shape + stats[:, :1]
        rate = self.rate_ + stats[:, 1:]
        prior = self.shape * np.log(self.rate_) - gammaln(self.shape)
        return (prior + gammaln(shape) - shape * np.log(rate)).sum(axis=1)

    # -- for untrusted files, forecasts, imputed values and samplers of parameters

    def is_sound(self, stats):
        return stats[0] >= 0 and stats[0] == int(stats[0]) and min(stats) >= 0

    def mean(self, stats):
        # Mean of a Lomax distribution, which is infinite for a shape of one or less.
        return (self.rate_ + stats[1:]) / max(self.shape + stats[0] - 1, 1e-3)

    def draw_parameters(self, stats, generator):
        return generator.gamma(self.shape + stats[0], 1 / (self.rate_ + stats[1:]))

    @property
    def state_parameters(self):
        """Names of what is drawn, for summaries."""
        # Only the emission of a fitted model has parameters of states.
        if not hasattr(self, "parameters_"):
            return {}
        rates = [StateNumber(c, "rate", itemgetter((..., c))) for c in range(len(self.rate_))]
        return {"parameters_": StateParameter(self.parameters_, rates)}

    def log_density(self, parameters, y):
        return (np.log(parameters) - parameters * y).sum(axis=1)

    def emit(self, parameters, generator):
        return generator.exponential(1 / parameters)
