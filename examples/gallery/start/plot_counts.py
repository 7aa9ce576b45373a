"""
Counts: quiet and busy hours
============================

Calls per hour at two desks. The model infers levels of activity that both desks share,
durations of the levels, and transitions between the levels.
"""

# %%
# Three levels. The busiest level never follows the quiet level. Both desks are busy in
# the same hours, and the first desk has more calls.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skihmm import HCRPHMM
from skihmm.inspection import EmissionDisplay, StateSequenceDisplay, TransitionMatrixDisplay

rng = np.random.default_rng(0)
n_hours = 1500
transmat = np.array([[0.85, 0.15, 0.0], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
level = np.zeros(n_hours, dtype=int)
for t in range(1, n_hours):
    level[t] = rng.choice(3, p=transmat[level[t - 1]])
rates = np.array([[0.4, 0.2], [6.0, 2.0], [18.0, 9.0]])
calls = rng.poisson(rates[level])
X = pd.DataFrame(
    calls,
    columns=["desk 1", "desk 2"],
    index=pd.date_range("2026-03-02", periods=n_hours, freq="h"),
)

hmm = HCRPHMM(emission="poisson", n_burnin=200, n_draws=50, random_state=0).fit(X)
print(f"{hmm.n_states_} states of {np.bincount(hmm.labels_)} hours")

# %%
# States and calls of the first hundred hours.

StateSequenceDisplay.from_estimator(hmm, X, last=100)
plt.show()

# %%
# Distributions of the calls in an hour of each state.

EmissionDisplay.from_estimator(hmm)
plt.show()

# %%
# Transition probabilities. The busy state and the quiet state do not follow each other.

TransitionMatrixDisplay.from_estimator(hmm)
plt.show()

# %%
# Mean calls and mean durations of the states.

stay = np.diag(hmm.transmat_)
for k in range(hmm.n_states_):
    one, two = calls[hmm.labels_ == k].mean(axis=0)
    print(f"state {k}: {one:4.1f} and {two:4.1f} calls, {1 / (1 - stay[k]):4.1f} hours")
