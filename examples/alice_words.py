"""
Words of a book
===============

Fits the words of Alice's Adventures in Wonderland and reports during the fit sweep,
number of states, log joint probability and the perplexity of the last 1,000 words.

The text is read from the folder in the environment variable SKIHMM_DATA (``alice.txt``),
or downloaded once from Project Gutenberg.  Options: ``python examples/alice_words.py
--help``.
"""

import argparse
import time
from collections import Counter, defaultdict

import numpy as np

from skihmm import HCRPHMM
from skihmm.datasets import fetch_alice
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import ParticleFilterScorer

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
parser.add_argument("--seconds", type=float, default=60, help="CPU seconds of sampling")
parser.add_argument("--sweeps", type=int, default=100, help="sweeps between reports")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument(
    "--states",
    type=int,
    default=0,
    help="start from this many random states instead of a particle filter's path",
)
args = parser.parse_args()

alice = fetch_alice()
X_train, X_test = alice.data[: -alice.n_test], alice.data[-alice.n_test :]
print(f"{len(alice.data)} words, {len(alice.vocabulary)} types, {alice.n_test} held out")


def kneser_ney(train, test, n_words, order=3, discount=0.85):
    """Probabilities of test words by interpolated Kneser-Ney smoothing."""
    # Words by context, shortest contexts first; shorter ones count different words before.
    tables = [defaultdict(Counter) for _ in range(order)]
    for i in range(order - 1, len(train)):
        tables[-1][tuple(train[i - order + 1 : i])][train[i]] += 1
    for shorter, longer in zip(tables[-2::-1], tables[:0:-1], strict=True):
        for context, words in longer.items():
            shorter[context[1:]].update(words.keys())
    text, probs = train[-order + 1 :] + test, []
    for i in range(order - 1, len(text)):
        prob = 1 / n_words
        for length, table in enumerate(tables):
            words = table.get(tuple(text[i - length : i]), Counter())
            if words:
                kept = max(words[text[i]] - discount, 0)
                prob = (kept + discount * len(words) * prob) / words.total()
        probs.append(prob)
    return np.array(probs)


# What a model has to be better than: frequencies of words, and of pairs of words.
shares = np.bincount(X_train[:, 0], minlength=len(alice.vocabulary)) + 0.5
shares /= shares.sum()
pairs = np.zeros((len(shares), len(shares)))
np.add.at(pairs, (X_train[:-1, 0], X_train[1:, 0]), 1)
before, after = np.r_[X_train[-1], X_test[:-1, 0]], X_test[:, 0]
smoothed = (pairs[before, after] + 100 * shares[after]) / (pairs[before].sum(axis=1) + 100)
triples = kneser_ney(X_train[:, 0].tolist(), X_test[:, 0].tolist(), len(shares))
for name, probs in (
    ("words", shares[after]),
    ("smoothed pairs", smoothed),
    ("triples by Kneser and Ney", triples),
):
    print(f"perplexity of {name}: {np.exp(-np.log(probs).mean()):.1f}")

init = "particle_filter"
if args.states:
    init = np.random.default_rng(args.seed).integers(args.states, size=len(X_train))

hmm = HCRPHMM(
    # Vocabulary of the whole text, so that no word of the test part is unknown.
    emission=HCRPCategorical(categories=[np.arange(len(alice.vocabulary))]),
    init=init,
    n_burnin=0,
    n_draws=1,
    thin=args.sweeps,
    warm_start=True,
    store_states=False,
    random_state=args.seed,
)
scorer = ParticleFilterScorer(max_draws=1, start="continue")
history = []
sampling = 0.0
print("  sweep  CPU s  states  log joint  perplexity: this draw, averaged over draws")
while sampling < args.seconds:
    # With warm_start every fit continues the last one and adds one draw.
    hmm.fit(X_train)
    sampling = float(hmm.draws_.seconds.sum())
    history.append(scorer.score_samples(hmm, X_test))
    # Draws of the second half of the run, averaged at every word before the logarithm.
    kept = history[len(history) // 2 :]
    mean = np.logaddexp.reduce(kept, axis=0) - np.log(len(kept))
    draw = hmm.draws_[0, -1]
    print(
        f"{len(history) * args.sweeps:7d} {sampling:6.1f} {draw.n_states:7d} "
        f"{draw.lp:10.0f}  {np.exp(-history[-1].mean()):.2f} {np.exp(-mean.mean()):.2f}",
        flush=True,
    )
sweeps = len(history) * args.sweeps
print(f"{sampling / sweeps:.5f} CPU seconds per sweep ({time.strftime('%Y-%m-%d')})")
