"""
An automaton: uncertainty of states
===================================

Fifteen hidden states emit fifteen letters. Every three states share the same three
letters ("Sequence 2" of arXiv 1106.0474). A letter leaves three states possible, and
the neighbouring letters mostly leave one. The posterior shows where the state stays
uncertain.
"""

# %%
# Two chains of the default sampler.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.inspection import StateSequenceDisplay
from skihmm.metrics import mutual_information
from skihmm.posterior import coassignment, n_states_distribution

X, states = make_automaton_sequence(2500, random_state=0)
hmm = HCRPHMM(n_burnin=300, n_chains=2, random_state=0).fit(X)
for n, share in zip(*n_states_distribution(hmm.draws_), strict=True):
    print(f"{n} states: {share:.0%}")

# %%
# The last hundred steps. Colours are states of the point estimate, which minimises the
# expected variation of information. Heights are the proportion of draws that agree.
# States have the numbers of ``predict``.

StateSequenceDisplay.from_draws(hmm.draws_, reference=hmm.labels_, first=2400)
plt.gcf().set_size_inches(8, 2.6)
plt.show()

# %%
# The probability that two of the last 150 steps share a state, with steps of one state
# side by side. Solid blocks are certain.

steps = np.arange(2350, 2500)
steps = steps[np.argsort(hmm.labels_[steps], kind="stable")]
figure, ax = plt.subplots(figsize=(5.5, 4.6))
image = ax.imshow(coassignment(hmm.draws_, steps), cmap="cividis", vmin=0, vmax=1)
borders = np.flatnonzero(np.diff(hmm.labels_[steps])) + 0.5
ax.hlines(borders, -0.5, len(steps) - 0.5, color="white", linewidth=0.5)
ax.vlines(borders, -0.5, len(steps) - 0.5, color="white", linewidth=0.5)
ax.set(xlabel="step, by state", ylabel="step, by state")
figure.colorbar(image, label="probability of the same state")
plt.show()

# %%
# Mutual information of the draws with the true path, which is known here.

bits = [mutual_information(states, path) for path in hmm.draws_.states[0]]
print(f"{np.mean(bits):.2f} of {mutual_information(states, states):.2f} bits")
