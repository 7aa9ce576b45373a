"""Emissions whose hyperparameters have priors, integrated over points of these priors.

The points are quasi-random and equally weighted, so the integral over the hyperparameters
is a mean.  Given these, marginal likelihoods are the textbook's closed forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln, i0e, logsumexp, multigammaln

from reference.conjugate import Blocks, as_matrix
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.emissions._conjugate_stats import conjugate_stats


def gamma_quantile(u, unit):
    """Quantile of Gamma(1/2, rate 1/2) in a unit."""
    return unit * stats.gamma.ppf(u, 0.5, scale=2.0)


def stats_of(name, y, prior, units, **fixed):
    """Compiled statistics of a family, all of whose hyperparameters are drawn."""
    is_drawn = [True] * len(prior)
    return conjugate_stats(name, as_matrix(y), prior, units, is_drawn, **fixed)


@dataclass(frozen=True)
class SampledPrior(Blocks):
    """Base: log p(y | x) with the hyperparameters integrated out.

    Subclasses have ``dimension``, the number of hyperparameters; ``from_unit(u)``, their
    values at points of the unit cube by the quantiles of their priors;
    ``log_marginal(values, points)`` of one state's observations; and ``stats(y)``.
    """

    n_points: int = 2**13

    @cached_property
    def points(self) -> dict:
        sobol = stats.qmc.Sobol(self.dimension, seed=0)
        return self.from_unit(sobol.random(self.n_points).T)

    def log_block(self, rows) -> np.ndarray:
        """log p(rows of one state) at every point."""
        return self.log_marginal(rows, self.points)

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{0: log p(y | x)}``."""
        return {0: float(logsumexp(self.log_blocks(x, y)) - np.log(self.n_points))}

    def with_points(self, n_points: int):
        return replace(self, n_points=n_points)


@dataclass(frozen=True)
class SampledDiagonalGaussian(SampledPrior):
    """One column; mean, strength and scale have priors."""

    shape: float = 1.5
    centre: float = 1.0
    variance: float = 2.0
    dimension = 3

    def from_unit(self, u) -> dict:
        return {
            "mean": self.centre + np.sqrt(self.variance) * stats.norm.ppf(u[0]),
            "strength": gamma_quantile(u[1], 1.0),
            "scale": gamma_quantile(u[2], self.variance) / 2,
        }

    def log_marginal(self, values, points):
        y = values[:, 0][~np.isnan(values[:, 0])]
        n = len(y)
        if n == 0:
            return np.zeros(self.n_points)
        mean, strength, scale = (points[k] for k in ("mean", "strength", "scale"))
        off = strength * n * (y.mean() - mean) ** 2 / (2 * (strength + n))
        after = scale + ((y - y.mean()) ** 2).sum() / 2 + off
        return (
            gammaln(self.shape + n / 2)
            - gammaln(self.shape)
            + self.shape * np.log(scale)
            - (self.shape + n / 2) * np.log(after)
            + 0.5 * np.log(strength / (strength + n))
            - n / 2 * np.log(2 * np.pi)
        )

    def stats(self, y):
        units = [self.centre, 1.0, self.variance]
        return stats_of("normal_inverse_gamma", y, [0.0, 1.0, 1.0], units, shape=self.shape)

    def read(self, numbers) -> dict:
        return dict(zip(("mean", "strength", "scale"), numbers[[0, 1, 2]], strict=True))


@dataclass(frozen=True)
class SampledFullGaussian(SampledPrior):
    """Two columns; means, strength and the diagonal of the scale have priors."""

    dof: float = 4.0
    centre: tuple = (1.0, -0.5)
    variance: tuple = (2.0, 0.5)
    dimension = 5

    def from_unit(self, u) -> dict:
        return {
            "mean": np.array(self.centre)[:, None]
            + np.sqrt(self.variance)[:, None] * stats.norm.ppf(u[:2]),
            "strength": gamma_quantile(u[2], 1.0),
            "scale": gamma_quantile(u[3:], np.array(self.variance)[:, None]),
        }

    def log_marginal(self, values, points):
        y = values[~np.isnan(values).any(axis=1)]
        n, d = len(y), 2
        if n == 0:
            return np.zeros(self.n_points)
        mean, strength, scale = (points[k] for k in ("mean", "strength", "scale"))
        off = y.mean(axis=0)[:, None] - mean
        scatter = (y - y.mean(axis=0)).T @ (y - y.mean(axis=0))
        pull = strength * n / (strength + n)
        a = scale[0] + scatter[0, 0] + pull * off[0] ** 2
        b = scale[1] + scatter[1, 1] + pull * off[1] ** 2
        c = scatter[0, 1] + pull * off[0] * off[1]
        return (
            multigammaln((self.dof + n) / 2, d)
            - multigammaln(self.dof / 2, d)
            - n * d / 2 * np.log(np.pi)
            + self.dof / 2 * np.log(scale[0] * scale[1])
            - (self.dof + n) / 2 * np.log(a * b - c**2)
            + d / 2 * np.log(strength / (strength + n))
        )

    def stats(self, y):
        prior = [[0.0, 0.0], 1.0, [1.0, 0.0, 1.0]]
        units = [self.centre, [1.0, 1.0], self.variance]
        return stats_of("normal_inverse_wishart", y, prior, units, dof=self.dof)

    def read(self, numbers) -> dict:
        return {"mean": numbers[:2], "strength": numbers[2], "scale": numbers[[3, 5]] ** 2}


@dataclass(frozen=True)
class SampledAutoregression(SampledPrior):
    """Standardised columns; strength, scale and maybe the mean of the prior are drawn."""

    columns: int = 1
    order: int = 1
    draws_mean: bool = True
    dof: float = 5.0
    # Inputs that are given, which have one strength together.
    given: int = 0

    @property
    def first(self) -> np.ndarray:
        """Prior mean of the mean: the identity for the latest row."""
        width = self.columns * self.order + self.given + 1
        return np.eye(self.columns, width) * (self.order > 0)

    @property
    def sizes(self) -> list[int]:
        """Columns of A by strength."""
        return [self.columns] * self.order + [self.given] * (self.given > 0) + [1]

    @property
    def scale(self) -> np.ndarray:
        """Scale, up to the factor that is drawn."""
        return np.eye(self.columns) + 0.4 * (1 - np.eye(self.columns))

    @property
    def dimension(self) -> int:
        """Number of hyperparameters."""
        return self.first.size * self.draws_mean + len(self.sizes) + 1

    def from_unit(self, u) -> dict:
        points = {
            "scale": gamma_quantile(u[0], 1.0),
            "strength": stats.expon.ppf(u[1 : len(self.sizes) + 1], scale=10.0),
        }
        if self.draws_mean:
            u = u[len(self.sizes) + 1 :]
            points["mean"] = self.first.ravel()[:, None] + stats.norm.ppf(u)
        return points

    def log_marginal(self, values, points):
        values = values[~np.isnan(values).any(axis=1)]
        n, d = len(values), self.columns
        if n == 0:
            return np.zeros(self.n_points)
        x, y = np.hstack([values[:, d:], np.ones((n, 1))]), values[:, :d]
        M = self.first
        if self.draws_mean:
            M = points["mean"].T.reshape(-1, *M.shape)
        precisions = np.repeat(points["strength"], self.sizes, axis=0).T
        psi = points["scale"][:, None, None] * self.scale
        weighted = M * precisions[:, None, :]
        S_xx = x.T @ x + precisions[:, :, None] * np.eye(x.shape[1])
        S_yx = y.T @ x + weighted
        S_yy = psi + y.T @ y + weighted @ np.swapaxes(M, -1, -2)
        after = S_yy - S_yx @ np.linalg.solve(S_xx, S_yx.swapaxes(1, 2))
        return (
            multigammaln((self.dof + n) / 2, d)
            - multigammaln(self.dof / 2, d)
            - n * d / 2 * np.log(np.pi)
            + self.dof / 2 * np.log(np.linalg.det(psi))
            - (self.dof + n) / 2 * np.log(np.linalg.det(after))
            + d / 2 * np.log(precisions.prod(axis=1) / np.linalg.det(S_xx))
        )

    def stats(self, y):
        n = self.columns
        return conjugate_stats(
            "autoregressive_normal",
            as_matrix(y),
            [self.first, np.ones(len(self.sizes)), self.scale[np.tri(n, dtype=bool)]],
            [np.zeros(n), np.ones(n)],
            [self.draws_mean, True, True],
            n * self.order + self.given,
            self.given,
            dof=self.dof,
        )

    def read(self, numbers) -> dict:
        n = self.first.size
        found = {"scale": numbers[-1], "strength": numbers[n:-1]}
        return {**found, "mean": numbers[:n]} if self.draws_mean else found


class SampledScales(SampledPrior):
    """Base of one column whose hyperparameters are positive and have units."""

    def from_unit(self, u) -> dict:
        return {
            name: gamma_quantile(one, unit)
            for name, one, unit in zip(self.names, u, self.units, strict=True)
        }

    @property
    def dimension(self) -> int:
        return len(self.names)

    def stats(self, y):
        return stats_of(self.law, y, self.units, self.units, period=2 * np.pi)

    def read(self, numbers) -> dict:
        return dict(zip(self.names, numbers, strict=True))


@dataclass(frozen=True)
class SampledPoisson(SampledScales):
    """Shape and rate have priors."""

    units: tuple = (1.0, 0.25)
    names = ("shape", "rate")
    law = "gamma_poisson"

    def log_marginal(self, values, points):
        y = values[:, 0][~np.isnan(values[:, 0])]
        n, total = len(y), y.sum()
        shape, rate = points["shape"], points["rate"]
        return (
            gammaln(shape + total)
            - gammaln(shape)
            + shape * np.log(rate)
            - (shape + total) * np.log(rate + n)
            - gammaln(y + 1).sum()
        )


@dataclass(frozen=True)
class SampledNegativeBinomial(SampledScales):
    """Shape, rate and dispersion have priors."""

    units: tuple = (1.0, 0.25, 0.5)
    names = ("shape", "rate", "dispersion")
    law = "negative_binomial"

    def log_marginal(self, values, points):
        y = values[:, 0][~np.isnan(values[:, 0])]
        shape, rate, dispersion = (points[name] for name in self.names)
        r = 1 / dispersion
        return (
            sum(gammaln(r + v) - gammaln(r) - gammaln(v + 1) for v in y)
            + betaln(r * (rate + len(y)), shape + y.sum())
            - betaln(r * rate, shape)
        )


@dataclass(frozen=True)
class SampledGamma(SampledScales):
    """Shape, scale and dispersion have priors."""

    units: tuple = (1.0, 2.0, 0.5)
    names = ("shape", "scale", "dispersion")
    law = "gamma"

    def log_marginal(self, values, points):
        y = values[:, 0][~np.isnan(values[:, 0])]
        n, shape, scale, dispersion = len(y), *(points[name] for name in self.names)
        c, rate = 1 / dispersion, scale * dispersion
        return (
            gammaln(shape + n * c)
            - gammaln(shape)
            - n * gammaln(c)
            + shape * np.log(rate)
            - (shape + n * c) * np.log(rate + y.sum())
            + (c - 1) * np.log(y).sum()
        )


@dataclass(frozen=True)
class SampledAngles(SampledScales):
    """The dispersion has a prior."""

    units: tuple = (1.0,)
    names = ("dispersion",)
    law = "von_mises"

    def log_marginal(self, values, points):
        y = values[:, 0][~np.isnan(values[:, 0])]
        kappa = 1 / np.maximum(points["dispersion"], 1e-8)
        both = kappa * abs(np.exp(1j * y).sum())
        one = np.log(2 * np.pi * i0e(kappa)) + kappa
        return np.log(i0e(both)) + both - len(y) * one


@dataclass(frozen=True)
class SampledBernoulli(SampledScales):
    """a and b have priors."""

    units: tuple = (1.0, 1.0)
    names = ("a", "b")
    law = "beta_bernoulli"

    def log_marginal(self, values, points):
        y = values[:, 0][~np.isnan(values[:, 0])]
        ones, zeros = y.sum(), len(y) - y.sum()
        a, b = points["a"], points["b"]
        return betaln(a + ones, b + zeros) - betaln(a, b)


@dataclass(frozen=True)
class SampledDirichlet(SampledPrior):
    """One column of symbols; the pseudo-count has a prior."""

    n_symbols: int = 4
    dimension = 1

    def from_unit(self, u) -> dict:
        return {"concentration": gamma_quantile(u[0], 1.0)}

    def log_marginal(self, values, points):
        symbols = values[:, 0][~np.isnan(values[:, 0])].astype(int)
        counts = np.bincount(symbols, minlength=self.n_symbols)[:, None]
        a = points["concentration"]
        total = self.n_symbols * a
        return (
            gammaln(total)
            - gammaln(total + counts.sum())
            + (gammaln(a + counts) - gammaln(a)).sum(axis=0)
        )

    def stats(self, y):
        codes = np.nan_to_num(as_matrix(y), nan=-1).astype(np.int32)
        return categorical_stats(codes, [self.n_symbols], 1.0, 1.0, False, draws_pseudo_count=True)

    def read(self, record) -> dict:
        return {"concentration": record}
