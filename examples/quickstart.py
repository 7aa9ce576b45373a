"""
Quick start: how many states does a sequence have?
==================================================

Fits the paper's Sequence 2, a noisy automaton whose letters do not determine its states,
and infers the number of states.  Runs offline in a few seconds.
"""

import time

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.metrics import ParticleFilterScorer, mutual_information

X, states = make_automaton_sequence(n_samples=3000, random_state=0)
X_train, X_test = X[:2500], X[2500:]

hmm = HCRPHMM(n_chains=2, random_state=0)
started = time.perf_counter()
hmm.fit(X_train)
elapsed = time.perf_counter() - started

draws = hmm.draws_
information = mutual_information(states[:2500], hmm.labels_)
entropy = mutual_information(states[:2500], states[:2500])
perplexity = ParticleFilterScorer(start="continue").perplexity(hmm, X_test)
seconds_per_sweep = draws.seconds.mean() / hmm.thin_

print(f"fitted {len(X_train)} steps in {elapsed:.1f} s")
print(f"states found: {hmm.n_states_} (true: {len(set(states))})")
print(f"states over all draws: {draws.n_states.min()} to {draws.n_states.max()}")
print(f"mutual information: {information:.2f} of {entropy:.2f} bits")
print(f"held-out perplexity of {len(X_test)} steps: {perplexity:.2f}")
print(f"acceptance rate: {draws.acceptance_rate.mean():.4f}")
print(f"CPU seconds per sweep: {seconds_per_sweep:.5f}")
