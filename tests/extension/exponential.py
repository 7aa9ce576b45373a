"""A complete emission in pure Python: exponential waiting times."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from skihmm.emissions import ConjugateEmission


class Exponential(ConjugateEmission):
    """Waiting times, columns independent, with Gamma(shape, rate) priors on the rates.

    Parameters
    ----------
    shape : float, default=1.0
        Of the prior.
    rate : float or None, default=None
        Of the prior; None: so that the prior's mean rate is that of the column.

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
        """Refuse what are no waiting times."""
        if (X < 0).any():
            row, column = np.argwhere(X < 0)[0]
            raise ValueError(
                f"Negative values in data: X[{row}, {column}] = {X[row, column]:g}; "
                "expected waiting times >= 0."
            )

    def learn(self, X):
        """Find the prior's rate from the data."""
        n = np.maximum((~np.isnan(X)).sum(axis=0), 1)
        means = np.maximum(np.nansum(X, axis=0) / n, 1e-300)
        self.rate_ = self.shape * means if self.rate is None else self.rate + 0 * means

    # -- a state: the number of its observations, and their sum in every column

    def empty(self):
        return np.zeros(1 + len(self.rate_))

    def add(self, numbers, y):
        return numbers + np.append(1.0, y)

    def remove(self, numbers, y):
        left = numbers - np.append(1.0, y)
        # What a large waiting time leaves behind is rounding errors.
        return None if (left[1:] < 1e-9 * numbers[1:]).any() else left

    def log_predictive(self, numbers, y):
        shape = self.shape + numbers[:, :1]
        rate = self.rate_ + numbers[:, 1:]
        return (np.log(shape / rate) - (shape + 1) * np.log1p(y / rate)).sum(axis=1)

    def log_marginal(self, numbers):
        shape = self.shape + numbers[:, :1]
        rate = self.rate_ + numbers[:, 1:]
        prior = self.shape * np.log(self.rate_) - gammaln(self.shape)
        return (prior + gammaln(shape) - shape * np.log(rate)).sum(axis=1)

    # -- optional

    def is_sound(self, numbers):
        return numbers[0] >= 0 and numbers[0] == int(numbers[0]) and min(numbers) >= 0

    def mean(self, numbers):
        # (Of a Lomax distribution; with a shape of one or less it has none.)
        return (self.rate_ + numbers[1:]) / max(self.shape + numbers[0] - 1, 1e-3)

    def draw_parameters(self, numbers, generator):
        return generator.gamma(self.shape + numbers[0], 1 / (self.rate_ + numbers[1:]))

    def log_density(self, parameters, y):
        return (np.log(parameters) - parameters * y).sum(axis=1)

    def emit(self, parameters, generator):
        return generator.exponential(1 / parameters)
