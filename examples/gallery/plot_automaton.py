"""
An automaton: how sure is a state?
==================================

Fifteen hidden states write over five letters ("Sequence 2" of arXiv 1106.0474).  Not
every step can be told apart from every other: the posterior says which.
"""

# %%
# Two chains of the default sampler.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.inspection import PosteriorSimilarityDisplay, StateSequenceDisplay
from skihmm.metrics import mutual_information
from skihmm.posterior import n_states_distribution

X, states = make_automaton_sequence(2500, random_state=0)
hmm = HCRPHMM(n_burnin=300, n_chains=2, random_state=0).fit(X)
for n, share in zip(*n_states_distribution(hmm.draws_), strict=True):
    print(f"{n} states: {share:.0%}")

# %%
# The last hundred steps: colours are states of the point estimate that minimises the
# expected variation of information, their height the share of draws that agree.  States
# are called as ``predict`` calls them.

StateSequenceDisplay.from_draws(hmm.draws_, reference=hmm.labels_, first=2400)
plt.gcf().set_size_inches(8, 2.6)
plt.show()

# %%
# How probably two of the last 150 steps are in the same state, steps of one state
# side by side.  Solid blocks are certain.

PosteriorSimilarityDisplay.from_estimator(hmm, steps=range(2350, 2500))
plt.gcf().set_size_inches(5.5, 4.6)
plt.show()

# %%
# The truth is known here: bits of the hidden path that the draws share with it.

found = [mutual_information(states, path) for path in hmm.draws_.states[0]]
print(f"{np.mean(found):.2f} of {mutual_information(states, states):.2f} bits")
