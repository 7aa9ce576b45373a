"""The rank of draws, by its terms, against enumeration for all kinds of transitions.

The law of the transitions under a draw is written here from the textbook, by the counts
in its record; that of observations is the model's, which other tests compare.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter

import numpy as np
import pytest
from reference.enumeration import tables_given_customers
from scipy.special import expit, logsumexp
from scipy.stats import norm

from skihmm import HCRPHMM
from skihmm._using.decoding import frozen_model, rank
from skihmm.emissions import HCRPCategorical
from skihmm.transitions import HCRPTransitions

STAY, DRAW = range(2)
STARTS = (0, 4)
SYMBOLS = np.array([0, 0, 1, 1, 0, 1, 1])
INPUTS = np.array([0.0, 1.0, -1.0, 2.5, -2.0, 0.5, 1.5])
# The context of one step is missing.
CONTEXTS = np.array([0.0, 1.0, 1.0, np.nan, 0.0, 0.0, 1.0])
KNOWN = np.array([-1, 0, -1, 1, -1, -1, -1])

COINS = {
    "no coins": {},
    "given prior": {"stay_prior": (1.0, 1.5)},
    "dwell": {"expected_dwell": 8},
    "inputs": {"input_features": [1]},
}
TREES = {
    "plain": {},
    "state first": {"context_features": [2]},
    "context first": {"context_features": [2], "context_order": "context"},
}
PENALTIES = {"free": {}, "penalised": {"switch_penalty": 0.7}}


def recipes():
    for names in itertools.product(COINS, TREES, PENALTIES):
        coins, _, penalty = names
        if coins == "no coins" and penalty == "penalised":
            continue
        options = {}
        for table, name in zip((COINS, TREES, PENALTIES), names, strict=True):
            options |= table[name]
        yield pytest.param(options, id=", ".join(names))
    yield pytest.param({"symbols_by": [2]}, id="symbols by context")


class FrozenLaw:
    """Transitions under the counts of a draw, with a new state last."""

    def __init__(self, draw, contexts):
        record = draw.transitions
        self.record, self.n = record, draw.n_states
        self._ways = {}
        self.contexts = contexts
        tree = record.get("contexts", {"n_before": 0, "parents": []})
        self.n_before, self.parents = tree["n_before"], tree["parents"]
        levels = [record, *record.get("levels", ())]
        self.levels = [Counter() for _ in levels]
        for cells, level in zip(self.levels, levels, strict=True):
            for j, k, n in zip(
                level["rows"].tolist(),
                level["dishes"].tolist(),
                level["n_customers"].tolist(),
                strict=True,
            ):
                cells[j, k] = n
        alphas = [*record.get("context_alpha", ())]
        alphas.insert(self.n_before, record["alpha"])
        self.alphas = alphas
        tables = np.bincount(record["dishes"], record["n_tables"], self.n + 1)
        tables[self.n] = record["gamma"]
        self.base = tables / tables.sum()

    def stride(self, depth):
        n_columns = depth - 1 if depth > self.n_before else depth
        return len(self.parents[n_columns - 1]) if n_columns else 1

    def draws(self, t, j):
        """Probabilities of the label of step t if it is drawn after label j."""
        depth, prefix = 1, 0
        if self.parents:
            depth, prefix = int(self.contexts.depths[t]), int(self.contexts.prefixes[t])
        # The start is the last row of a record; a new state has none.
        row = {self.n: None, -1: self.n}.get(j, j)
        path = []
        for d in range(depth, 0, -1):
            has_state = d > self.n_before
            path.append((d, has_state, prefix))
            n_columns = d - 1 if has_state else d
            above = d - 2 if d - 1 > self.n_before else d - 1
            if d > 1 and n_columns != above:
                prefix = int(self.parents[n_columns - 1][prefix])
        p = self.base
        for d, has_state, prefix in reversed(path):
            counts = np.zeros(self.n + 1)
            if not has_state or row is not None:
                v = row * self.stride(d) + prefix if has_state else prefix
                for k in range(self.n):
                    counts[k] = self.levels[d - 1][v, k]
            alpha = self.alphas[d - 1]
            p = (counts + alpha * p) / (counts.sum() + alpha)
        return p

    def stay(self, t, k):
        """Probability that step t stays in state k."""
        record = self.record
        if "stay_scale" in record:
            x = np.array([*self.contexts.inputs[t], 1.0])
            width = len(x)
            mean = np.append(np.zeros(width - 1), record["stay_mean"])
            variances = [*record["stay_scale"] ** 2, 1 / record["stay_precision"]]
            covariance = np.diag(variances)
            if k < self.n:
                mean, covariance = record["coins"][k, :width], np.zeros((width, width))
                i, j = np.tril_indices(width)
                covariance[i, j] = covariance[j, i] = record["coins"][k, width:]
            z = np.linspace(-9, 9, 2001)
            psi = x @ mean + np.sqrt(x @ covariance @ x) * z
            return float((expit(psi) * norm.pdf(z)).sum() / norm.pdf(z).sum())
        if "stay_prior" not in record:
            return 0.0
        kappa, omega = record["stay_prior"]
        if k == self.n:
            return kappa / (kappa + omega)
        leaves = record["draws"][k] if "draws" in record else 0
        if "draws" not in record:
            leaves = sum(n for (j, _), n in self.levels[0].items() if j == k)
        stays = record["stays"][k]
        return (kappa + stays) / (kappa + omega + stays + leaves)

    def ways(self, t, before, penalty):
        """``{(label, kind): probability}`` of step t after a label."""
        if (t, before) not in self._ways:
            self._ways[t, before] = self._find_ways(t, before, penalty)
        return self._ways[t, before]

    def _find_ways(self, t, before, penalty):
        if before is None:
            p = self.draws(t, -1)
            return {(k, DRAW): p[k] for k in range(self.n + 1)}
        stay = self.stay(t, before)
        found = {(before, STAY): stay} if stay else {}
        p = (1 - stay) * np.exp(-penalty) * self.draws(t, before)
        return found | {(k, DRAW): p[k] for k in range(self.n + 1)}

    def log_total(self, log_emission, penalty):
        """Log of the sum over all paths of all sequences, one after the other."""
        total = 0.0
        ends = [*STARTS[1:], len(log_emission)]
        for start, end in zip(STARTS, ends, strict=True):
            paths = [(None, 0.0)]
            for t in range(start, end):
                paths = [
                    (k, lp + np.log(p) + log_emission[t, k])
                    for before, lp in paths
                    for (k, _), p in self.ways(t, before, penalty).items()
                ]
            total += logsumexp([lp for _, lp in paths])
        return total

    def log_path(self, labels, kinds, penalty):
        """Log probability of a path; kinds None: summed over these."""
        lp = 0.0
        for t, k in enumerate(labels):
            before = None if t in STARTS else labels[t - 1]
            ways = self.ways(t, before, penalty)
            if kinds is None:
                lp += np.log(sum(p for (at, _), p in ways.items() if at == k))
            else:
                lp += np.log(ways[k, kinds[t]])
        return lp


def log_tables_of(record, n_dishes=None):
    """Log probability of the numbers of tables of a record, given its customers."""
    n = record["n_customers"].tolist()
    law = tables_given_customers(record["dishes"], n, record["alpha"], record["gamma"], n_dishes)
    return law[tuple(record["n_tables"].tolist())]


def kinds_of(labels, steps):
    """How every step is entered, from the flags of the chain."""
    stayed = steps.get("stayed", np.zeros(len(labels)))
    return [STAY if is_stay else DRAW for is_stay in stayed]


def fitted(options, seed, states=None):
    X = np.column_stack([SYMBOLS, INPUTS, CONTEXTS])
    options = dict(options)
    by = options.pop("symbols_by", None)
    used = [0, *options.get("input_features", []), *options.get("context_features", by or [])]
    names = {c: i for i, c in enumerate(used)}
    renamed = {
        key: [names[c] for c in value] if key.endswith("_features") else value
        for key, value in options.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HCRPHMM(
            emission=HCRPCategorical(context_features=by and [1]),
            transitions=HCRPTransitions(**renamed),
            init="random",
            n_burnin=6,
            n_draws=1,
            random_state=seed,
        ).fit(X[:, used], lengths=[4, 3], states=states)


@pytest.mark.parametrize("is_known", [False, True], ids=["", "known"])
@pytest.mark.parametrize("options", [*recipes()])
def test_terms_of_the_rank_against_enumeration(options, is_known):
    penalty, n_most = options.get("switch_penalty", 0.0), 0
    for seed in range(2):
        hmm = fitted(options, seed, KNOWN if is_known else None)
        data, draw = hmm._fitted.sequences, hmm._fitted.selected
        model = frozen_model(draw, data, hmm.emission_, penalty)
        law = FrozenLaw(draw, data.contexts)
        n = draw.n_states
        log_emission = np.array([model.log_mixtures(one) for one in whole(n)]).T
        labels = draw.states.tolist()
        steps = hmm._fit_state.chains[0].record["arrays"]
        kinds = kinds_of(labels, steps)
        # Stays without contexts are summed over.
        log_path = law.log_path(labels, kinds if law.parents else None, penalty)
        log_path += log_emission[range(len(labels)), labels].sum()
        log_total = law.log_total(log_emission, penalty)
        assert model.log_joint(draw.states) == pytest.approx(log_path, abs=1e-5)
        assert model.filter()[0].sum() == pytest.approx(log_total, abs=1e-5)
        # Table counts are summed out, those of a tree are not.
        log_tables = 0.0 if law.parents else log_tables_of(draw.transitions)
        (column,) = draw.emission["columns"]
        if not draw.emission.get("levels"):
            log_tables += log_tables_of({**draw.emission, **column}, 3)
        expected = draw.summed_lp - log_tables - (log_path - log_total)
        found = rank(draw, data, hmm.emission_, hmm.transitions_)
        assert found == pytest.approx(expected, abs=0.2)
        n_most = max(n_most, kinds.count(STAY))
    assert n_most or options.keys() <= {"context_features", "context_order", "symbols_by"}


def whole(n):
    """Certain states of all steps, a new one last."""
    for k in range(n + 1):
        one = np.zeros((len(SYMBOLS), n + 1))
        one[:, k] = 1.0
        yield one
