"""Regressions with logistic or log link, their coefficients integrated by quadrature.

Rows are values and given numbers, the last of which are numbers of trials or logarithms
of exposures.  Nothing here knows of Polya-Gamma weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy import special, stats

from reference.conjugate import Blocks, as_matrix
from skihmm.emissions import _conjugate_stats
from skihmm.emissions._hidden_numbers import open_hidden


@dataclass(frozen=True)
class Regression(Blocks):
    """Independent terms with fixed hyperparameters.

    A term is a column or, of choices, "this option, if none before it".  By term there
    are the means of the coefficients, that of the intercept last, the precisions of those
    of inputs and of the intercept, and of counts the dispersion 1 / r.
    """

    kind: str
    mean: tuple
    precision: tuple
    dispersion: tuple = ()
    has_exposure: bool = False
    draws: tuple = (False, False, False)
    unit: float = 1.0
    counts_tables = False

    @property
    def n_terms(self) -> int:
        return len(self.mean)

    @property
    def n_columns(self) -> int:
        return 1 if self.kind == "choice" else self.n_terms

    @property
    def n_inputs(self) -> int:
        return len(self.mean[0]) - 1 + (self.kind == "binomial") + self.has_exposure

    @property
    def fixed(self) -> dict:
        """What the compiled family never draws."""
        return {
            "n_options": (self.n_terms + 1) * (self.kind == "choice"),
            "has_exposure": self.has_exposure,
        }

    def split(self, row) -> tuple[np.ndarray, np.ndarray, float]:
        """Values by term, inputs and a one, and trials or log exposure."""
        row = np.asarray(row, float)
        values, inputs = row[: self.n_columns], row[self.n_columns :]
        if np.isnan(inputs).any():
            values = np.full(len(values), np.nan)
        if self.kind == "choice":
            i = np.arange(self.n_terms)
            values = np.where(values[0] >= i, values[0] == i, np.nan)
        q = len(self.mean[0])
        given = inputs[-1] if len(inputs) == q else 0.0
        return values, np.append(inputs[: q - 1], 1.0), given

    def log_probability(self, value, eta, given, dispersion) -> np.ndarray:
        """log p(value | eta), eta the regression without exposure."""
        if self.kind == "log_linear":
            r, log_mean = 1 / dispersion, eta + given
            log_sum = np.logaddexp(np.log(r), log_mean)
            return (
                special.gammaln(value + r)
                - special.gammaln(r)
                - special.gammaln(value + 1)
                + value * (log_mean - log_sum)
                + r * (np.log(r) - log_sum)
            )
        n = given if self.kind == "binomial" else 1.0
        ways = special.gammaln([n + 1, value + 1, n - value + 1]) @ [1, -1, -1]
        return ways + value * special.log_expit(eta) + (n - value) * special.log_expit(-eta)

    def log_block(self, rows) -> np.ndarray:
        """log p(rows of one state), by the trapezoidal rule for every term."""
        total = 0.0
        q = len(self.mean[0])
        # (Gauss-Hermite quadrature of 80 points has five digits of some of the counts.)
        z = np.array([*product(np.arange(-8.5, 8.6, 0.2), repeat=q)]).T
        log_weight = stats.norm.logpdf(z).sum(axis=0) + q * np.log(0.2)
        for i in range(self.n_terms):
            inputs, intercept = self.precision[i]
            deviation = np.append(np.full(q - 1, inputs**-0.5), intercept**-0.5)
            beta = np.array(self.mean[i])[:, None] + deviation[:, None] * z
            log_p = log_weight.copy()
            for values, x, given in map(self.split, rows):
                if not np.isnan(values[i]):
                    dispersion = self.dispersion[i] if self.dispersion else None
                    log_p += self.log_probability(values[i], x @ beta, given, dispersion)
            total += special.logsumexp(log_p)
        return np.array([total])

    @cached_property
    def log_prior(self) -> np.ndarray:
        """Log probabilities of the points at which `log_block` is given."""
        return np.zeros(1)

    def log_points(self, x: Sequence, y) -> np.ndarray:
        """log p(y, point | x)."""
        return self.log_prior + self.log_blocks(x, y)

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{0: log p(y | x)}``."""
        return {0: float(special.logsumexp(self.log_points(x, y)))}

    def new_stats(self, y):
        """Compiled statistics of new observations: without weights."""
        return _conjugate_stats.conjugate_stats(
            self.kind,
            as_matrix(y),
            [self.mean, self.precision, self.dispersion],
            [self.mean, (self.unit,) * self.n_terms],
            self.draws,
            self.n_inputs,
            self.n_inputs,
            **self.fixed,
        )

    def stats(self, y):
        """Compiled statistics, with weights to start from."""
        found = self.new_stats(y)
        open_hidden(found, np.zeros(1, np.intp))
        return found


@dataclass(frozen=True)
class SampledRegression(Regression):
    """One term with an intercept only, some of whose hyperparameters are drawn.

    Means are N(mean, 1) and precisions Gamma(1, 1/10), both in a unit of the precisions,
    dispersions Gamma(1/2, 1/2).
    """

    draws: tuple = (False, True, False)

    @cached_property
    def points(self) -> tuple:
        """Points of mean, precision and dispersion, with logs of their weights."""
        ((mean,),), ((_, precision),) = self.mean, self.precision
        means = np.array([mean]), np.zeros(1)
        precisions = np.array([precision]), np.zeros(1)
        dispersions = np.array(self.dispersion or (1.0,)), np.zeros(1)
        if self.draws[0]:
            at, weight = np.polynomial.hermite_e.hermegauss(24)
            means = mean + at * self.unit**-0.5, np.log(weight / weight.sum())
        if self.draws[1]:
            at = np.arange(-9.0, 5.5, 0.3)
            log_weight = np.log(0.3 * 0.1) + at - 0.1 * np.exp(at)
            precisions = self.unit * np.exp(at), log_weight
        if self.draws[2]:
            at, weight = np.polynomial.legendre.leggauss(30)
            at = 0.01 + 3.5 * (1 + at)
            dispersions = at**2, np.log(3.5 * weight * np.sqrt(2 / np.pi)) - at**2 / 2
        return means, precisions, dispersions

    @cached_property
    def beta(self) -> np.ndarray:
        """Points of the intercept, denser around zero."""
        return np.sinh(np.arange(-7, 7, 0.04))

    @cached_property
    def kernel(self) -> np.ndarray:
        """Weights of the points by mean and precision."""
        (means, _), (precisions, _), _ = self.points
        width = 0.04 * np.cosh(np.arange(-7, 7, 0.04))
        v = precisions[:, None]
        off = 0.5 * v * (self.beta - means[:, None, None]) ** 2
        return np.exp(-off) * np.sqrt(v / (2 * np.pi)) * width

    @cached_property
    def log_prior(self) -> np.ndarray:
        (_, a), (_, b), (_, c) = self.points
        return (a[:, None, None] + b[:, None] + c).ravel()

    def log_block(self, rows) -> np.ndarray:
        dispersions = self.points[2][0][:, None]
        log_p = np.zeros((len(dispersions), len(self.beta)))
        for (value,), _, given in map(self.split, rows):
            if not np.isnan(value):
                log_p += self.log_probability(value, self.beta, given, dispersions)
        return np.log(np.maximum(self.kernel @ np.exp(log_p).T, 1e-300)).ravel()
