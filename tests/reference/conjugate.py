"""Conjugate emissions from their definitions: one predictive distribution after another.

The predictive distributions are SciPy's; nothing here is a closed form of a marginal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np
from scipy import special, stats

from skihmm.emissions._conjugate_stats import conjugate_stats
from skihmm.emissions._hidden_numbers import open_hidden


def as_matrix(y) -> np.ndarray:
    """Rows of numbers, missing ones as NaN."""
    rows = [row if isinstance(row, tuple) else (row,) for row in y]
    return np.array([[np.nan if v is None else v for v in row] for row in rows], float)


def stats_of(name, y, prior, **fixed):
    """Compiled statistics of a family with a fixed prior, one number per column."""
    y = as_matrix(y)
    units = np.ones((3, y.shape[1]))
    return conjugate_stats(name, y, prior, units, [False] * 3, **fixed)


class Blocks:
    """Base: log p(y | x) as a sum over the blocks of rows that have one state.

    Subclasses have ``log_block(rows)``, which is called once for all partitions.
    """

    @cached_property
    def _found(self) -> dict:
        return {}

    def block(self, rows: np.ndarray):
        """`log_block` of these rows."""
        key = rows.tobytes()
        if key not in self._found:
            self._found[key] = self.log_block(rows)
        return self._found[key]

    def log_blocks(self, x: Sequence, y):
        """The sum over states, one number or one by point of a prior."""
        rows = as_matrix(y)
        return sum(self.block(rows[np.equal(x, state)]) for state in set(x))


class ConjugateEmission(Blocks):
    """Base: log p(y | x) as a product of predictive probabilities."""

    def log_block(self, rows):
        """log p(rows of one state): that of the last after all before."""
        if len(rows) == 0:
            return 0.0
        return self.block(rows[:-1]) + self.log_predictive(rows[:-1], rows[-1])

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{0: log p(y | x)}``."""
        return {0: self.log_blocks(x, y)}


class Columns(ConjugateEmission):
    """Base: columns are independent, and single entries may be missing.

    Subclasses have ``log_value(values, value, c)``, log p(value | values seen) of column c.
    """

    def log_predictive(self, seen, row) -> float:
        """log p(row | rows seen)."""
        total = 0.0
        for c in np.flatnonzero(~np.isnan(row)):
            values = seen[:, c] if len(seen) else np.zeros(0)
            total += self.log_value(values[~np.isnan(values)], row[c], c)
        return total


@dataclass(frozen=True)
class DiagonalGaussian(Columns):
    """Normal-inverse-gamma prior."""

    mean: tuple
    strength: float
    shape: float
    scale: tuple

    def log_value(self, values, value, c):
        strength, mean, shape, scale = self.strength, self.mean[c], self.shape, self.scale[c]
        for v in values:  # one at a time
            scale += strength * (v - mean) ** 2 / (2 * (strength + 1))
            mean = (strength * mean + v) / (strength + 1)
            strength, shape = strength + 1, shape + 0.5
        width = np.sqrt(scale * (strength + 1) / (shape * strength))
        return stats.t.logpdf(value, 2 * shape, mean, width)

    def stats(self, y):
        """Compiled statistics."""
        n = len(self.mean)
        prior = [self.mean, np.full(n, self.strength), self.scale]
        return stats_of("normal_inverse_gamma", y, prior, shape=self.shape)


@dataclass(frozen=True)
class FullGaussian(ConjugateEmission):
    """Normal-inverse-Wishart prior; a row with a missing entry is missing.

    So it is in chains.  Frozen models weigh it by `log_observed`.
    """

    mean: tuple
    strength: float
    dof: float
    scale: tuple

    def log_predictive(self, seen, row) -> float:
        """log p(row | rows seen)."""
        return 0.0 if np.isnan(row).any() else self.log_observed(seen, row)

    def log_observed(self, seen, row) -> float:
        """log p(what is observed of the row | complete rows seen)."""
        d, at = len(row), np.flatnonzero(~np.isnan(row))
        if len(at) == 0:
            return 0.0
        mean, scale = np.array(self.mean, float), np.array(self.scale, float)
        strength, dof = self.strength, self.dof
        for v in seen:
            if np.isnan(v).any():
                continue
            scale = scale + strength / (strength + 1) * np.outer(v - mean, v - mean)
            mean = (strength * mean + v) / (strength + 1)
            strength, dof = strength + 1, dof + 1
        free = dof - d + 1
        shape = scale * (strength + 1) / (strength * free)
        part = shape[np.ix_(at, at)]
        return float(stats.multivariate_t.logpdf(row[at], mean[at], part, free))

    def stats(self, y):
        """Compiled statistics."""
        n = len(self.mean)
        prior = [self.mean, self.strength, np.array(self.scale)[np.tri(n, dtype=bool)]]
        return stats_of("normal_inverse_wishart", y, prior, dof=self.dof)


@dataclass(frozen=True)
class Autoregression(ConjugateEmission):
    """Regression on inputs: matrix-normal inverse-Wishart prior of standardised columns.

    Rows are values, then `order` earlier rows, then `given` inputs, which come
    standardised; one with a missing entry is missing.
    """

    order: int
    centre: tuple
    deviation: tuple
    mean: tuple
    strength: tuple
    dof: float
    scale: tuple
    given: int = 0

    def standardised(self, rows) -> tuple[np.ndarray, np.ndarray]:
        """Inputs, with the intercept's, and values of the rows that are not missing."""
        d, n_rows = len(self.centre), self.order + 1
        rows = np.asarray(rows, float).reshape(-1, d * n_rows + self.given)
        rows = rows[~np.isnan(rows).any(axis=1)]
        centre = np.append(np.tile(self.centre, n_rows), np.zeros(self.given))
        rows = (rows - centre) / np.append(np.tile(self.deviation, n_rows), np.ones(self.given))
        return np.hstack([rows[:, d:], np.ones((len(rows), 1))]), rows[:, :d]

    def posterior(self, seen):
        """Mean of A, root of the precision of its columns, scale and dof, given rows.

        By least squares on the rows and, for the prior, one more row per coefficient.
        """
        d = len(self.centre)
        x, y = self.standardised(seen)
        lags, others = np.split(np.array(self.strength), [self.order])
        roots = np.sqrt(np.append(np.repeat(lags, d), others))
        x = np.vstack([np.diag(roots), x])
        y = np.vstack([roots[:, None] * np.array(self.mean).T, y])
        A = np.linalg.lstsq(x, y, rcond=None)[0]
        residuals = y - x @ A
        scale = np.array(self.scale) + residuals.T @ residuals
        return A.T, np.linalg.qr(x, mode="r"), scale, self.dof + len(x) - len(roots)

    def log_predictive(self, seen, row) -> float:
        """log p(row | rows seen)."""
        if np.isnan(row).any():
            return 0.0
        A, root, scale, dof = self.posterior(seen)
        x, y = self.standardised(row)
        free = dof - len(A) + 1
        spread = 1 + (np.linalg.solve(root.T, x[0]) ** 2).sum()
        law = stats.multivariate_t(A @ x[0], scale * spread / free, free)
        return float(law.logpdf(y[0]) - np.log(self.deviation).sum())

    def stats(self, y, name="autoregressive_normal", *more):
        """Compiled statistics; the prior may have more numbers."""
        n = len(self.centre)
        scale = np.array(self.scale)[np.tri(n, dtype=bool)]
        return conjugate_stats(
            name,
            as_matrix(y),
            [self.mean, self.strength, scale, *more],
            [self.centre, self.deviation],
            [False] * (3 + len(more)),
            n * self.order + self.given,
            self.given,
            dof=self.dof,
        )


@dataclass(frozen=True)
class StudentAutoregression(Autoregression):
    """With Student's t noise; `log_predictive` is that of rows that end in a weight.

    Without the factor that a weight has under all states.  With weights integrated out,
    by quadrature: rows of one number, an intercept only, `log_points` by the degrees of
    freedom, of which the prior is Gamma(2, 1/10) from 1 to 1000, or which are fixed.
    """

    noise_dof: float = 10.0
    is_fixed: bool = False
    counts_tables = False

    def standardised(self, rows):
        """As that of the base, times the root of the weight."""
        rows = np.asarray(rows, float)
        rows = rows.reshape(-1, len(self.centre) * (self.order + 1) + self.given + 1)
        rows = rows[~np.isnan(rows).any(axis=1)]
        roots = np.sqrt(rows[:, -1:])
        return tuple(roots * part for part in super().standardised(rows[:, :-1]))

    @cached_property
    def points(self) -> tuple:
        """Degrees of freedom, and logs of their weights."""
        if self.is_fixed:
            return np.array([self.noise_dof]), np.zeros(1)
        at, weight = np.polynomial.legendre.leggauss(40)
        u = 0.5 * np.log(1000) * (1 + at)
        log_p = np.log(weight) + 2 * u - 0.1 * np.exp(u)
        return np.exp(u), log_p - special.logsumexp(log_p)

    @cached_property
    def _densities(self) -> dict:
        return {}

    def log_density(self, value) -> np.ndarray:
        """log p(value) by degrees of freedom, variance, mean; of NaN, the log prior."""
        if value in self._densities:
            return self._densities[value]
        log_variance, z = np.arange(-9, 14, 0.25)[:, None], np.arange(-8, 8.1, 0.2)
        shape, scale = self.dof / 2, self.scale[0][0] / 2
        if np.isnan(value):
            log_p = np.log(0.25) - shape * log_variance - scale * np.exp(-log_variance)
            log_p = log_p + shape * np.log(scale) - special.gammaln(shape)
            return log_p + stats.norm.logpdf(z) + np.log(0.2)
        deviation = self.deviation[0] * np.exp(log_variance / 2)
        mean = self.centre[0] + self.deviation[0] * self.mean[0][0]
        at = mean + z * deviation / np.sqrt(self.strength[0])
        dof = self.points[0][:, None, None]
        found = stats.t.logpdf((value - at) / deviation, dof) - np.log(deviation)
        return self._densities.setdefault(value, found)

    def log_block(self, rows) -> np.ndarray:
        """log p(rows of one state), of one number by degrees of freedom."""
        if rows.shape[1] > 1:
            return super().log_block(rows)
        seen = rows[~np.isnan(rows)].tolist()
        total = sum(map(self.log_density, seen), self.log_density(np.nan)[None])
        found = special.logsumexp(total, axis=(1, 2))
        return np.broadcast_to(found, len(self.points[0]))

    def log_points(self, x: Sequence, y) -> np.ndarray:
        """log p(y, degrees of freedom | x)."""
        return self.points[1] + self.log_blocks(x, y)

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{0: log p(y | x)}``, of rows with weights given these."""
        if len(as_matrix(y).T) == 1:
            return {0: float(special.logsumexp(self.log_points(x, y)))}
        return super().log_likelihood_by_tables(x, y)

    def new_stats(self, y):
        """Compiled statistics of new observations: without weights."""
        return super().stats(y, "autoregressive_student", [self.noise_dof])

    def stats(self, y):
        """Compiled statistics, with weights to start from."""
        found = self.new_stats(y)
        open_hidden(found, np.zeros(1, np.intp))
        return found


@dataclass(frozen=True)
class Poisson(Columns):
    """Gamma prior."""

    shape: tuple
    rate: tuple

    def log_value(self, values, value, c):
        shape, rate = self.shape[c] + values.sum(), self.rate[c] + len(values)
        return stats.nbinom.logpmf(value, shape, rate / (rate + 1))

    def stats(self, y):
        """Compiled statistics."""
        return stats_of("gamma_poisson", y, [self.shape, self.rate])


@dataclass(frozen=True)
class Bernoulli(Columns):
    """Beta prior."""

    a: float
    b: float

    def log_value(self, values, value, c):
        p = (self.a + values.sum()) / (self.a + self.b + len(values))
        return stats.bernoulli.logpmf(value, p)

    def stats(self, y):
        """Compiled statistics."""
        n = as_matrix(y).shape[1]
        return stats_of("beta_bernoulli", y, np.repeat([[self.a], [self.b]], n, axis=1))


class Dispersed(Columns):
    """Base of columns whose states have a dispersion in common."""

    def stats(self, y):
        """Compiled statistics."""
        n = as_matrix(y).shape[1]
        prior = [np.broadcast_to(v, n) for v in astuple(self)]
        return stats_of(self.law, y, prior, period=2 * np.pi)


@dataclass(frozen=True)
class NegativeBinomial(Dispersed):
    """Beta prior of the probability r / (r + mean)."""

    shape: tuple
    rate: tuple
    dispersion: tuple
    law = "negative_binomial"

    def log_value(self, values, value, c):
        r = 1 / self.dispersion[c]
        a = r * self.rate[c] + r * len(values)
        b = self.shape[c] + values.sum()
        log_ways = special.gammaln(r + value) - special.gammaln(r) - special.gammaln(value + 1)
        return log_ways + special.betaln(a + r, b + value) - special.betaln(a, b)


@dataclass(frozen=True)
class Gamma(Dispersed):
    """Gamma prior of the inverse mean."""

    shape: tuple
    scale: tuple
    dispersion: tuple
    law = "gamma"

    def log_value(self, values, value, c):
        power = 1 / self.dispersion[c]
        a = self.shape[c] + power * len(values)
        rate = self.scale[c] * self.dispersion[c] + values.sum()
        return stats.betaprime.logpdf(value, power, a, scale=rate)


@dataclass(frozen=True)
class Angles(Dispersed):
    """Von Mises columns, mean directions uniform."""

    dispersion: tuple
    law = "von_mises"

    def log_value(self, values, value, c):
        kappa = 1 / self.dispersion[c]
        before = kappa * abs(np.exp(1j * values).sum())
        after = kappa * abs(np.exp(1j * np.append(values, value)).sum())
        log_ratio = np.log(special.i0e(after) / special.i0e(before)) + after - before
        return log_ratio - np.log(2 * np.pi * special.i0e(kappa)) - kappa


@dataclass(frozen=True)
class Waiting(ConjugateEmission):
    """Exponential columns with a Gamma prior; `emission` is the recipe in Python."""

    shape: float
    rate: float
    emission: type

    def log_predictive(self, seen, row) -> float:
        """log p(row | rows seen)."""
        if np.isnan(row).any():
            return 0.0
        total = 0.0
        for c, value in enumerate(row):
            values = [v[c] for v in seen if not np.isnan(v).any()]
            shape, rate = self.shape + len(values), self.rate + sum(values)
            total += stats.lomax.logpdf(value, shape, scale=rate)
        return total

    def stats(self, y):
        """Statistics of the recipe."""
        X = as_matrix(y)
        return self.emission(self.shape, self.rate).fit(X).make_stats(X)
