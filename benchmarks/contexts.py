"""
Does it help to know the context?  Held-out perplexity with contexts and without.

    python benchmarks/contexts.py                     # simulated
    python benchmarks/contexts.py --real              # words of Alice, motion capture

Simulated: 5 states (8 for the last two kinds), 10 symbols, 1500 steps to fit and 1500 to
score, geometric means over the seeds.

actions, actions10: 3 or 10 contexts, drawn anew at every step, with transition
distributions around those of their state.  ring: actions stay, forward and back,
which share nothing.  subjects: 10 sequences of 150 steps, each with transitions of its
own around those of the states; "new" scores 3 subjects that were not in the fit.  few:
the same, but every subject uses few of the states.

Real: words of Alice with direct speech as context, and with the chapter; motion capture
with the recording as context.  "seen" scores the last fifth of every chapter or
recording, "new" is the cross-validated score over groups of them (GroupKFold).

"one each" fits a model to every context alone.  "true" are the parameters of the
simulation.  In parentheses: the number of states at the end of the fit.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from skihmm import HCRPHMM
from skihmm.datasets import fetch_alice, fetch_mocap6
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import frozen_log_likelihood
from skihmm.transitions import HCRPTransitions

N_STEPS, N_SYMBOLS = 1500, 10
KINDS = ("actions", "actions10", "ring", "subjects", "few")


def draw_rows(kind, n_contexts, rng):
    """Transition probabilities (context, state, state)."""
    if kind == "ring":
        eye = np.eye(5)
        return np.array([eye, np.roll(eye, 1, axis=1), np.roll(eye, -1, axis=1)]) * (0.96) + (
            0.04 / 5
        )
    n_states = 8 if kind == "few" else 5
    usage = rng.dirichlet(np.full(n_states, 3.0))
    if kind == "few":
        own = np.array([rng.dirichlet(0.5 * n_states * usage) for _ in range(n_contexts)])
        return np.array(
            [[rng.dirichlet(3 * usage_of + 1e-3) for _ in range(n_states)] for usage_of in own]
        )
    states = [rng.dirichlet(4 * usage) for _ in range(n_states)]
    concentration = 10.0 if kind == "actions10" else 4.0
    return np.array(
        [[rng.dirichlet(concentration * row + 1e-3) for row in states] for _ in range(n_contexts)]
    )


class Simulation:
    """Data of one seed: columns are the symbol and the context."""

    def __init__(self, kind, seed):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        self.has_subjects = kind in ("subjects", "few")
        n_contexts = 13 if self.has_subjects else 10 if kind == "actions10" else 3
        self.rows = draw_rows(kind, n_contexts, rng)
        n_states = self.rows.shape[1]
        self.symbols = rng.dirichlet(np.full(N_SYMBOLS, 0.1), n_states)
        if self.has_subjects:
            seen = np.repeat(np.arange(10), N_STEPS // 10)
            self.train, self.test = self.draw(seen, rng), self.draw(seen, rng)
            self.new = self.draw(np.repeat([10, 11, 12], N_STEPS // 10), rng)
        else:
            self.train, self.test = (
                self.draw(rng.integers(n_contexts, size=N_STEPS), rng) for _ in range(2)
            )
            self.new = None

    def draw(self, contexts, rng):
        x, symbols = 0, []
        for u in contexts:
            x = rng.choice(self.rows.shape[1], p=self.rows[u, x])
            symbols.append(rng.choice(N_SYMBOLS, p=self.symbols[x]))
        return np.c_[symbols, contexts]

    def groups(self, X):
        return X[:, 1] if self.has_subjects else None

    def true_perplexity(self, X):
        log_likelihood, before = 0.0, None
        for symbol, u in X:
            if before is None or (self.has_subjects and u != before):
                weights = np.full(self.rows.shape[1], 1 / self.rows.shape[1])
            weights = weights @ self.rows[u] * self.symbols[:, symbol]
            log_likelihood += np.log(weights.sum())
            weights /= weights.sum()
            before = u
        return np.exp(-log_likelihood / len(X))


def make_models(n_features, settings):
    """Name, estimator and columns of the models; the last column is the context."""
    every, observed = list(range(n_features)), list(range(n_features - 1))
    for name, columns, options in (
        ("state first", every, {"context_features": [-1]}),
        (
            "context first",
            every,
            {"context_features": [-1], "context_order": "context"},
        ),
        ("ignored", observed, {}),
    ):
        yield name, HCRPHMM(transitions=HCRPTransitions(**options), **settings), columns


def each_log_likelihood(train, test, groups, settings):
    """Mean log-likelihood of one model for every context."""
    total = 0.0
    for u in np.unique(train[:, -1]):
        own, held = train[:, -1] == u, test[:, -1] == u
        hmm = HCRPHMM(**settings).fit(train[own][:, :-1])
        total += held.sum() * frozen_log_likelihood(hmm, test[held][:, :-1])
    return total / len(test)


def compare_simulated(kind, n_seeds, n_burnin, n_draws):
    """One row of the table, as text."""
    results = {}
    states = {}
    for seed in range(n_seeds):
        data = Simulation(kind, seed)
        settings = {
            "emission": HCRPCategorical(categories=[np.arange(N_SYMBOLS)]),
            "n_burnin": n_burnin,
            "n_draws": n_draws,
            "thin": 5,
            "random_state": seed,
        }
        parts = {"": data.test} | ({} if data.new is None else {" new": data.new})
        for part, X in parts.items():
            results.setdefault("true" + part, []).append(np.log(data.true_perplexity(X)))
        for name, hmm, columns in make_models(2, settings):
            hmm.fit(data.train[:, columns], groups=data.groups(data.train))
            states.setdefault(name, []).append(hmm.n_states_)
            for part, X in parts.items():
                score = frozen_log_likelihood(hmm, X[:, columns], groups=data.groups(X))
                results.setdefault(name + part, []).append(-score)
        if data.has_subjects:
            score = each_log_likelihood(data.train, data.test, None, settings)
            results.setdefault("one each", []).append(-score)
    return "  ".join(
        f"{name} {np.exp(np.mean(values)):.3f}"
        + (f" ({np.mean(states[name]):.1f})" if name in states else "")
        for name, values in results.items()
    )


def load_real():
    """Name, data with the context as last column, groups, emission of real data sets."""
    alice = fetch_alice()
    emission = HCRPCategorical(categories=[np.arange(len(alice.vocabulary))])
    words = alice.data[:, 0]
    yield "Alice, speech", np.c_[words, alice.spoken], alice.chapter, emission
    yield "Alice, chapter", np.c_[words, alice.chapter], alice.chapter, emission
    mocap6 = fetch_mocap6()
    X = StandardScaler().fit_transform(mocap6.data)
    yield "mocap6, recording", np.c_[X, mocap6.groups], mocap6.groups, "gaussian"


def compare_real(name, X, groups, emission, seed, n_burnin, n_draws):
    """Print what the models reach on one data set."""
    settings = {
        "emission": emission,
        "n_burnin": n_burnin,
        "n_draws": n_draws,
        "thin": 5,
        "random_state": seed,
    }
    position = np.concatenate([np.arange(n) / n for n in np.unique(groups, return_counts=True)[1]])
    early = position < 0.8
    for name_of_model, hmm, columns in make_models(X.shape[1], settings):
        started = time.process_time()
        hmm.fit(X[early][:, columns], groups=groups[early])
        seconds = time.process_time() - started
        alpha = hmm.draws_.context_alpha
        seen = frozen_log_likelihood(hmm, X[~early][:, columns], groups=groups[~early])
        new = 0.0
        for train, test in GroupKFold(3).split(X, groups=groups):
            hmm.fit(X[train][:, columns], groups=groups[train])
            score = frozen_log_likelihood(hmm, X[test][:, columns], groups=groups[test])
            new += score * len(test) / len(X)
        print(
            f"{name}, {name_of_model}: seen {-seen:.3f}, new {-new:.3f} nats a step, "
            f"{hmm.n_states_} states, {seconds:.0f} s"
            + ("" if alpha is None else f", context_alpha {alpha.mean():.1f}"),
            flush=True,
        )
    if not name.endswith("speech"):
        score = each_log_likelihood(X[early], X[~early], None, settings)
        print(f"{name}, one each: seen {-score:.3f} nats a step", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--burnin", type=int, default=300)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--real", action="store_true", help="real data, one seed")
    args = parser.parse_args()
    if args.real:
        for data in load_real():
            compare_real(*data, 0, args.burnin, args.draws)
    else:
        for kind in args.kinds:
            print(
                f"{kind}: " + compare_simulated(kind, args.seeds, args.burnin, args.draws),
                flush=True,
            )
