"""Chains of regimes, sets of states that alternate at random, and their evidence.

Noise of another shape than the emission's is covered by several states.  Given the
regime, the next of these states does not depend on the state now:

    P[k, l] = Q[r(k), r(l)] q[l],        q sums to one within every regime r,

so the model is an HMM of regimes with mixtures of the states' emissions.  Partitions of
the states are compared by the evidence of the data, with labels summed out and the
emissions of a draw (Cheeseman and Stutz 1996):

    log p(y) = log p(y | Q, q) + log p(S) - log p(S | Q, q)

S are the counts that are expected given y, Q and q.  Counts of sampled labels would not
do: labels confirm the transitions by which they were drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from skihmm._typing import Flags, Floats, Integers
from skihmm._using.stays import fitted_regressions, regression_probabilities
from skihmm.core._regime_passes import RegimePasses

# Updates of the parameters before the evidence; 0 to 5 give the same regimes.
_N_UPDATES = 1
# Updates of regressions of staying on inputs.
_N_REGRESSIONS = 5
# Pseudo-count of a state in its regime.  With 1 / n_states splitting a regime would be
# favoured: the white noise of a gamma distribution had three.
HALF = 0.5
# Rows of Q are Dirichlet(alpha base + kappa [same]), as in the sticky HDP-HMM.
_ALPHAS = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
_KAPPAS = np.array([0.3, 1.0, 3.0, 10.0, 30.0, 100.0])
# Least log likelihood of a state relative to the best state of a step.
_LEAST_LOG = -700.0


def log_dirichlet(counts: Floats, pseudo_count: float) -> Floats:
    """Log marginal likelihood of counts (last axis) by a symmetric Dirichlet prior."""
    n_cells, a = counts.shape[-1], pseudo_count
    total = gammaln(a * n_cells) - gammaln(a * n_cells + counts.sum(axis=-1))
    return np.asarray(total + (gammaln(counts + a) - gammaln(a)).sum(axis=-1))


def _log_likelihood(counts: Floats, probs: Floats) -> float:
    return float((counts * np.log(np.where(counts > 0, probs, 1.0))).sum())


def _row_evidences(moves: Floats, base: Floats, kappas: Floats, is_read: bool) -> Floats:
    """Log evidence of transitions by alpha and kappa, (n_alphas, n_kappas).

    A base that is read off the counts is paid for: its data are the tables, the expected
    numbers of draws from it.  Rows that are all alike would cost nothing otherwise.
    """
    shared = _ALPHAS[:, None] * base
    # Kappa matters on the diagonal only: (n_alphas, n_kappas, n_regimes).
    own, stays = shared[:, None] + kappas[:, None], moves.diagonal()

    def off_diagonal(function: np.ufunc) -> Floats:
        cells = function(shared[:, None] + moves) - function(shared)[:, None]
        return np.asarray(cells.sum(axis=1) - np.diagonal(cells, axis1=1, axis2=2))

    totals = _ALPHAS[:, None] + kappas
    values = len(moves) * gammaln(totals)
    values -= gammaln(totals[..., None] + moves.sum(axis=1)).sum(axis=-1)
    values += off_diagonal(gammaln).sum(axis=-1)[:, None]
    values += (gammaln(own + stays) - gammaln(own)).sum(axis=-1)
    if is_read:
        drawn = off_diagonal(digamma)[:, None] + digamma(own + stays) - digamma(own)
        tables = shared[:, None] * drawn
        values += log_dirichlet(tables, HALF) - (tables * np.log(base)).sum(axis=-1)
    return np.asarray(values)


def row_prior(moves: Floats) -> tuple[Floats, float]:
    """Best pseudo-counts of transitions between regimes, and their log evidence."""
    n, into = len(moves), moves.sum(axis=0) + HALF
    bases = [(np.full(n, 1.0 / n), np.append(0.0, _KAPPAS), False)]
    if n > 1:
        from_others = into - moves.diagonal()
        bases.append((into / into.sum(), np.zeros(1), True))
        bases.append((from_others / from_others.sum(), _KAPPAS, True))
    found = []
    for base, kappas, is_read in bases:
        values = _row_evidences(moves, base, kappas, is_read)
        a, k = np.unravel_index(values.argmax(), values.shape)
        found.append((float(values[a, k]), _ALPHAS[a] * base, kappas[k]))
    value, shared, kappa = max(found, key=lambda one: one[0])
    return shared + kappa * np.eye(n), value


@dataclass(frozen=True)
class Counts:
    """Expected, or seen, numbers: of first states, of transitions, of steps of states."""

    first: Floats
    moves: Floats
    steps: Floats

    @classmethod
    def of_path(cls, path: Integers, starts: Integers, n_states: int) -> Counts:
        """Counts of a path, whose sequences begin at `starts`."""
        follows = np.delete(np.arange(len(path)), starts)
        moves = np.zeros((n_states, n_states))
        np.add.at(moves, (path[follows - 1], path[follows]), 1)
        first = np.bincount(path[starts], minlength=n_states)
        steps = np.bincount(path, minlength=n_states)
        return cls(first.astype(float), moves, steps.astype(float))

    def lumped(self, groups: Integers) -> Counts:
        """Counts of first regimes and transitions between them; steps stay of states."""
        Z = np.eye(groups.max() + 1)[groups]
        return Counts(self.first @ Z, Z.T @ self.moves @ Z, self.steps)


@dataclass(frozen=True)
class Likelihoods:
    """Probabilities of the observations in every state, over the largest of a step.

    Attributes
    ----------
    values : ndarray of shape (n_steps, n_states)
    log_factors : ndarray of shape (n_steps,)
        What was taken out of the steps, nats.
    first : ndarray of shape (n_steps,), bool
        Whether a step begins a sequence.
    """

    values: Floats
    log_factors: Floats
    first: Flags

    @classmethod
    def of_terms(cls, terms: Floats, starts: Integers) -> Likelihoods:
        """Take the likelihoods from their logarithms, which are overwritten."""
        top = terms.max(axis=1)
        terms -= top[:, None]
        first = np.zeros(len(terms), dtype=bool)
        first[starts] = True
        np.maximum(terms, _LEAST_LOG, out=terms)
        return cls(np.exp(terms, out=terms), top, first)


def penalised(transmat: Floats, switch_penalty: float) -> Floats:
    """Transition probabilities, with changes weighed by a penalty in nats."""
    changes = 1 - np.eye(len(transmat))
    return transmat * np.exp(-switch_penalty * changes)


class RegimeChain:
    """HMM of the regimes `groups` (one for every state).

    Parameters
    ----------
    groups : ndarray of shape (n_states,), int
        From 0 on, without a gap.
    counts : Counts
        By state, of which the parameters are posterior means.

    Attributes
    ----------
    startprob : ndarray of shape (n_regimes,)
    transmat : ndarray of shape (n_regimes, n_regimes)
    weights : ndarray of shape (n_states,)
        Shares of the states in their regimes.
    evidence : float
        Of :meth:`fit`, nats.
    """

    def __init__(self, groups: Integers, counts: Counts) -> None:
        self.groups = groups.astype(np.int32)
        self.n_regimes = int(groups.max()) + 1
        self.evidence = np.nan
        self._update(counts.lumped(groups))

    def _update(self, counts: Counts) -> None:
        moves = row_prior(counts.moves)[0] + counts.moves
        self.transmat = moves / moves.sum(axis=1, keepdims=True)
        first = counts.first + 1.0 / self.n_regimes
        self.startprob = first / first.sum()
        steps = counts.steps + HALF
        self.weights = steps / np.bincount(self.groups, steps)[self.groups]

    def passes(
        self, seen: Likelihoods, switch_penalty: float = 0.0, stays: Floats | None = None
    ) -> RegimePasses:
        """Passes along data, transitions weighed by a penalty of changes of regime.

        Every step may have its own probabilities to stay.
        """
        transmat = penalised(self.transmat, switch_penalty)
        return RegimePasses(
            seen.values, seen.first, self.groups, self.weights, self.startprob, transmat, stays
        )

    def regressions(self, seen: Likelihoods, inputs: Floats) -> Floats:
        """Logistic regressions of staying on inputs, by expectation and maximisation."""
        after = np.flatnonzero(~seen.first)
        stays = np.tile(self.transmat.diagonal(), (len(inputs), 1))
        for _ in range(_N_REGRESSIONS):
            passes = self.passes(seen, stays=stays)
            probs = passes.filter()[1]
            kept = passes.smooth(probs)[2]
            coefficients = fitted_regressions(inputs[after], kept[after], probs[after - 1])
            stays = regression_probabilities(coefficients, inputs)
        return coefficients

    def expected(self, seen: Likelihoods) -> tuple[float, Counts]:
        """Log likelihood of the data, and counts given them."""
        passes = self.passes(seen)
        log_predictive, probs = passes.filter()
        moves, steps, _ = passes.smooth(probs)
        log_p = float((log_predictive + seen.log_factors).sum())
        return log_p, Counts(probs[seen.first].sum(axis=0), moves, steps)

    def fit(self, seen: Likelihoods) -> Counts:
        """Update the parameters and compute the evidence; return the expected counts."""
        for _ in range(_N_UPDATES):
            self._update(self.expected(seen)[1])
        log_p, counts = self.expected(seen)
        log_prior = row_prior(counts.moves)[1]
        log_prior += float(log_dirichlet(counts.first, 1.0 / self.n_regimes))
        for r in range(self.n_regimes):
            log_prior += float(log_dirichlet(counts.steps[self.groups == r], HALF))
        log_seen = _log_likelihood(counts.moves, self.transmat)
        log_seen += _log_likelihood(counts.first, self.startprob)
        log_seen += _log_likelihood(counts.steps, self.weights)
        self.evidence = log_p + log_prior - log_seen
        return counts
