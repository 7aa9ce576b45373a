"""Exact laws of coins with inputs, at given weights and summed over them.

Given one Polya-gamma weight per step, the probability of all stays and leaves of a state
is the integral of a normal density, from the textbook: no sequence of predictive
probabilities, and no matrix that is updated.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import gamma, halfcauchy, norm
from scipy.stats.qmc import Sobol

from reference.coins import DRAW, STAY, CoinModel, tables_of_draws, ways_to_enter
from reference.contexts import CoinContextModel
from reference.enumeration import START

DWELL = 10.0


def rows_of(model) -> np.ndarray:
    """Inputs of all steps, a missing one at its mean, and a one."""
    inputs = np.nan_to_num(np.array(model.inputs, dtype=float))
    inputs = inputs.reshape(model.n_steps, -1)
    return np.column_stack([inputs, np.ones(model.n_steps)])


def log_integral(rows, weights, stays, mean, variance) -> float:
    """Log of the integral over b of N(b; mean, variance) and the steps' likelihoods.

    A step has exp(kappa psi - omega psi^2 / 2) / 2, psi = b'x, kappa = 1/2 or -1/2.
    """
    precision = np.diag(1 / variance) + rows.T @ (weights[:, None] * rows)
    slope = mean / variance + rows.T @ (stays - 0.5)
    log_p = slope @ np.linalg.solve(precision, slope) - mean @ (mean / variance)
    log_p -= np.linalg.slogdet(precision)[1] + np.log(variance).sum()
    return 0.5 * log_p - len(stays) * math.log(2)


@dataclass(frozen=True)
class WithInputs:
    """A small model with inputs of staying, before another one in the order of bases."""

    inputs: tuple = ()
    # Of all steps, with the prior of the coefficients; or none: then all of these are
    # integrated out, by draws of the prior.
    weights: tuple | None = None
    mean: float = 0.8
    precision: float = 1.0
    scales: tuple = (1.4,)

    @property
    def variance(self) -> np.ndarray:
        return np.array([*np.square(self.scales), 1 / self.precision])

    def log_coins(self, labels, kinds) -> float:
        """Log probability of all stays and leaves, at the weights or summed over them."""
        labels, stays = np.array(labels), np.equal(kinds, STAY)
        later = np.array([t for t in range(len(labels)) if t not in self.starts], dtype=int)
        if self.weights is None:
            signs = np.where(stays[later], -1.0, 1.0)
            psi = self._drawn_psi[labels[later - 1], later]
            log_p = np.logaddexp(0.0, signs[:, None] * psi).sum(axis=0)
            log_p = math.log(np.exp(-log_p).mean())
        else:
            mean = np.append(np.zeros(len(self.scales)), self.mean)
            variance = np.array([*np.square(self.scales), 1 / self.precision])
            rows, weights, log_p = rows_of(self), np.array(self.weights), 0.0
            for k in set(labels[later - 1].tolist()):
                own = later[labels[later - 1] == k]
                given = rows[own], weights[own], stays[own]
                log_p += log_integral(*given, mean, variance)
        return log_p - self.penalty * sum(kinds[t] == DRAW for t in later)

    @cached_property
    def _drawn_psi(self) -> np.ndarray:
        """Draws of the prior of every state's psi at every step, labels first."""
        n_labels, n_inputs = self.n_steps, rows_of(self).shape[1] - 1
        n_own = n_labels * (n_inputs + 1)
        u = Sobol(3 + n_inputs + n_own, seed=0).random_base2(16)
        precision = gamma.ppf(u[:, 0], 1.5, scale=2.0)
        mean = math.log(DWELL - 1) + norm.ppf(u[:, 1])
        tau, scales = 0.5 * halfcauchy.ppf(u[:, 2]), halfcauchy.ppf(u[:, 3 : 3 + n_inputs])
        b = norm.ppf(u[:, -n_own:]).reshape(len(u), n_labels, -1)
        b[:, :, :-1] *= (tau[:, None] * scales)[:, None]
        b[:, :, -1] = mean[:, None] + b[:, :, -1] / np.sqrt(precision)[:, None]
        return np.einsum("nki,ti->ktn", b, rows_of(self))

    @property
    def law_options(self) -> dict:
        stays = {"expected_stay": DWELL}
        return super().law_options | {"stays": stays, "inputs": rows_of(self)[:, :-1]}

    def at_weights(self, arrays) -> dict:
        """Put the prior, and the weights, into the record of a chain."""
        prior = {
            "stay_mean": self.mean,
            "stay_precision": self.precision,
            "stay_shrinkage": 0.5,
            "stay_scale": np.array(self.scales),
        }
        arrays = {**arrays, "transitions": arrays["transitions"] | prior}
        return arrays | {"stay_weights": np.array(self.weights)}


@dataclass(frozen=True)
class InputCoinModel(WithInputs, CoinModel):
    """A small model with inputs of staying."""

    def law_of(self, x) -> dict:
        law: dict = defaultdict(float)
        before = [START if t in self.starts else x[t - 1] for t in range(len(x))]
        for kinds in ways_to_enter(x, self.starts):
            pairs = zip(before, x, kinds, strict=True)
            draws = Counter((j, k) for j, k, kind in pairs if kind == DRAW)
            log_p = self.log_coins(x, kinds)
            for m, p in tables_of_draws(draws, self.alpha, self.gamma, log_p).items():
                law[m + 8 * kinds.count(STAY)] += p
        return law


@dataclass(frozen=True)
class InputCoinContextModel(WithInputs, CoinContextModel):
    """The same with contexts, whose posterior asks for the model's coins too."""
