"""
Symbols of a known automaton, beside programs that infer, choose or know its size.

    pip install hmmlearn
    python benchmarks/choosing.py

2,500 steps of ``make_automaton_sequence``, 15 states, every three with the same symbols;
2,500 more are scored.  hmmlearn: n_components from 3 to 24 by three, five restarts each;
chosen by BIC, by the score of the last fifth of the training steps (and then fitted to
all), or told the truth, 15.  Reported: CPU seconds of all fits that it takes, number of
states, adjusted Rand index of the training states (paths of ``predict``) and held-out
perplexity with frozen parameters.

More programs with ``--programs``; one that cannot be imported is left out.  As not all
can be installed beside skihmm, ``--data FOLDER`` writes the data to files, and reads them
where skihmm is missing:

    python benchmarks/choosing.py --data FOLDER
    python-of-another-environment benchmarks/choosing.py --data FOLDER --programs pyhsmm

dynamax: EM from draws of its prior, the number chosen as for hmmlearn.  pyhsmm (0.1.7:
Python 3.7, SciPy 1.2, headers of Eigen put into ``deps``): weak-limit HDP-HMM, at most 24
states, 1,000 sweeps; states of the last one, the probabilities of the next step averaged
over every fifth of the last 500; started again if it stops.  bnpy (0.1.7: Python 3.10,
NumPy 1.23): variational HDP-HMM, at most 24 states, merges after 50 laps, best bound of
five starts, in sequences of 50 steps (it starts no more states than there are sequences).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

N_STEPS, N_SYMBOLS, N_RESTARTS = 2500, 15, 5
GRID = range(3, 25, 3)
LARGEST = GRID[-1]


def predictive(start, transmat, emission, X):
    """Probability of every symbol given those before it, under fixed parameters."""
    alpha, out = start, np.empty(len(X))
    for t, x in enumerate(X[:, 0]):
        alpha = alpha * emission[:, x]
        out[t] = alpha.sum()
        alpha = alpha / out[t] @ transmat
    return out


def perplexity(probability):
    return np.exp(-np.log(probability).mean())


# Each program yields rows: name, CPU seconds, states, path of training steps, perplexity.


def run_skihmm(seed, train, test):
    from skihmm import HCRPHMM
    from skihmm.metrics import frozen_log_likelihood

    for name, options in (
        ("skihmm", {}),
        ("skihmm, longer", {"n_chains": 4, "n_burnin": 5000}),
    ):
        started = time.process_time()
        hmm = HCRPHMM(random_state=seed, **options).fit(train)
        seconds = time.process_time() - started
        score = np.exp(-frozen_log_likelihood(hmm, test))
        yield name, seconds, hmm.n_states_, hmm.predict(train), score


class Hmmlearn:
    """EM of one number of states from one start."""

    def __init__(self, n_states, X, seed):
        from hmmlearn.hmm import CategoricalHMM

        self.model = CategoricalHMM(n_states, n_iter=100, random_state=seed)
        self.model.n_features = N_SYMBOLS
        self.model.fit(X)
        self.score, self.predict = self.model.score, self.model.predict


class Dynamax:
    """Likewise; its priors keep probabilities from zero."""

    def __init__(self, n_states, X, seed):
        import jax
        from dynamax.hidden_markov_model import CategoricalHMM

        hmm = CategoricalHMM(n_states, emission_dim=1, num_classes=N_SYMBOLS)
        params, props = hmm.initialize(jax.random.PRNGKey(seed))
        params, _ = hmm.fit_em(params, props, X, num_iters=100, verbose=False)
        self.score = lambda X: float(hmm.marginal_log_prob(params, X))
        self.predict = lambda X: np.asarray(hmm.most_likely_states(params, X))


def best_of_restarts(make, n_states, X):
    """Best of the restarts by training likelihood, and their CPU seconds."""
    started = time.process_time()
    fitted = []
    for seed in range(N_RESTARTS):
        model = make(n_states, X, seed)
        fitted.append((model.score(X), seed, model))
    return max(fitted)[2], time.process_time() - started


def bic(n_states, model, X):
    n_free = n_states**2 - 1 + n_states * (N_SYMBOLS - 1)
    return n_free * np.log(len(X)) - 2 * model.score(X)


def run_em(name, make, seed, train, test):
    early, late = train[: N_STEPS * 4 // 5], train[N_STEPS * 4 // 5 :]
    make(2, early[:100], 0)  # imports are not counted
    full = {n: best_of_restarts(make, n, train) for n in GRID}
    part = {n: best_of_restarts(make, n, early) for n in GRID}
    by_bic = min(GRID, key=lambda n: bic(n, full[n][0], train))
    by_score = max(GRID, key=lambda n: part[n][0].score(late))
    cost = sum(seconds for _, seconds in full.values())
    cost_of_score = sum(seconds for _, seconds in part.values())
    for rule, n, seconds in (
        ("BIC", by_bic, cost),
        ("held-out", by_score, cost_of_score + full[by_score][1]),
        ("told 15", 15, full[15][1]),
    ):
        model = full[n][0]
        score = np.exp(-model.score(test) / len(test))
        yield f"{name}, {rule}", seconds, n, model.predict(train), score


def weak_limit_draws(train):
    from pyhsmm.basic.distributions import Categorical
    from pyhsmm.models import WeakLimitHDPHMM

    model = WeakLimitHDPHMM(
        alpha_a_0=1.0,
        alpha_b_0=1.0,
        gamma_a_0=1.0,
        gamma_b_0=1.0,
        init_state_concentration=1.0,
        obs_distns=[Categorical(alpha_0=1.0, K=N_SYMBOLS) for _ in range(LARGEST)],
    )
    model.add_data(train[:, 0])
    draws = []
    for sweep in range(1000):
        model.resample_model()
        if sweep >= 500 and sweep % 5 == 4:
            emission = np.array([d.weights for d in model.obs_distns])
            start = model.init_state_distn.pi_0.copy()
            draws.append((start, model.trans_distn.trans_matrix.copy(), emission))
    return model.stateseqs[0], draws


def run_pyhsmm(seed, train, test):
    import pyhsmm  # noqa: F401 (its import is not counted)

    np.random.seed(seed)  # noqa: NPY002 (it has no other)
    started, draws = time.process_time(), None
    while draws is None:
        # Draws of small concentrations may become NaN, which an assertion finds.
        with contextlib.suppress(AssertionError):
            path, draws = weak_limit_draws(train)
    seconds = time.process_time() - started
    score = perplexity(np.mean([predictive(*draw, test) for draw in draws], axis=0))
    yield "pyhsmm", seconds, len(set(path)), path, score


def run_bnpy(seed, train, test):
    import bnpy

    words = bnpy.data.BagOfWordsData(
        word_id=train[:, 0],
        word_count=np.ones(len(train)),
        doc_range=np.arange(0, len(train) + 1, 50),
        vocab_size=N_SYMBOLS,
    )
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        model, _ = bnpy.run(
            words,
            "HDPHMM",
            "Mult",
            "memoVB",
            K=LARGEST,
            initname="randomlikewang",
            moves="merge",
            m_startLap=50,
            nLap=200,
            nBatch=1,
            nTask=N_RESTARTS,
            taskid=seed * N_RESTARTS + 1,
            lam=0.1,
            output_path=folder,
            doWriteStdOut=False,
        )
    seconds = time.process_time() - started
    emission, transmat = model.obsModel.Post.lam, model.allocModel.get_trans_prob_matrix()
    start = model.allocModel.get_init_prob_vector()
    emission, transmat, start = (
        p / p.sum(axis=-1, keepdims=True) for p in (emission, transmat, start)
    )
    path = model.calc_local_params(words)["resp"].argmax(axis=1)
    score = perplexity(predictive(start, transmat, emission, test))
    yield "bnpy", seconds, len(set(path)), path, score


PROGRAMS = {
    "skihmm": run_skihmm,
    "hmmlearn": partial(run_em, "hmmlearn", Hmmlearn),
    "dynamax": partial(run_em, "dynamax", Dynamax),
    "pyhsmm": run_pyhsmm,
    "bnpy": run_bnpy,
}


def load(seed, folder):
    file = folder and folder / f"automaton-{seed}.npz"
    try:
        from skihmm.datasets import make_automaton_sequence
    except ImportError:
        if not file:
            raise
        with np.load(file) as data:
            return data["X"], data["states"]
    X, states = make_automaton_sequence(2 * N_STEPS, random_state=seed)
    if file:
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(file, X=X, states=states)
    return X, states


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=["skihmm", "hmmlearn"])
    args = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")  # the old ones have many
    print("seed | program | CPU s | states | adjusted Rand index | held-out perplexity")
    for seed in args.seeds:
        X, states = load(seed, args.data)
        train, test, truth = X[:N_STEPS], X[N_STEPS:], states[:N_STEPS]
        for program in args.programs:
            try:
                for name, seconds, n_states, path, score in PROGRAMS[program](seed, train, test):
                    rand = adjusted_rand_score(truth, path)
                    print(
                        f"{seed} | {name} | {seconds:.1f} | {n_states} | {rand:.2f} | {score:.3f}",
                        flush=True,
                    )
            except ImportError as error:
                print(f"{seed} | {program} is left out: {error}", flush=True)


if __name__ == "__main__":
    main()
