"""
The dishonest casino: how many dice?
====================================

A casino has a fair die and a loaded die, which shows a six in half of its throws. The
casino exchanges the dice now and then. This is the textbook's hidden Markov model with
two states. Do more data lead to two states?
"""

# %%
# The throws, and the die of every throw.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.inspection import EmissionDisplay
from skihmm.posterior import n_states_distribution, occupancy_bands

rng = np.random.default_rng(0)
dice = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
stay = np.array([0.95, 0.9])
loaded = np.zeros(6000, dtype=int)
for t in range(1, len(loaded)):
    loaded[t] = loaded[t - 1] ^ (rng.random() > stay[loaded[t - 1]])
throws = np.array([rng.choice(6, p=dice[state]) for state in loaded])[:, None] + 1

# %%
# The posterior of the number of states, for the first 300, the first 1,500 and all
# throws.

models = {}
fig, axes = plt.subplots(1, 3, figsize=(8, 2.6), sharey=True, layout="constrained")
for n_steps, ax in zip((300, 1500, 6000), axes, strict=True):
    hmm = HCRPHMM(n_chains=2, random_state=0).fit(throws[:n_steps])
    models[n_steps] = hmm
    ax.bar(*n_states_distribution(hmm.draws_), color="#0072B2")
    ax.set(title=f"{n_steps} throws", xlabel="states", xlim=(0.4, 12), xticks=range(2, 13, 2))
axes[0].set_ylabel("posterior probability")
plt.show()
for n_steps, hmm in models.items():
    found = dict(zip(*n_states_distribution(hmm.draws_), strict=True))
    print(f"{n_steps:5} throws:", *(f"P({n}) {found.get(n, 0):.2f}" for n in range(1, 5)))

# %%
# .. quoted
#
# Two is the most probable number for 300 and for 6000 throws, with the probabilities 0.37
# and 0.60. With 1500 throws the two chains end in different numbers of states: a single
# state has the probability 0.36, and two states have 0.23. ``diagnose`` reports such chains
# as stuck.
#
# The sizes of the states are more informative. With 300 and with 6000 throws, two states
# have nearly all steps, with any number of states.

for n_steps, hmm in models.items():
    _, median, _ = occupancy_bands(hmm.draws_)
    print(f"{n_steps:5} throws, shares of the largest states:", end=" ")
    print((median[:4] / n_steps).round(2))

# %%
# A player asks: how probable is a six now? The answer does not depend on the number of
# states. The solid line averages over the states by their probabilities. The dashed
# line is for a player who knows the two dice and the rate of exchanges.

shown = slice(0, 400)
hmm = models[6000]
of_states = EmissionDisplay.from_estimator(hmm).columns[0].probabilities
plt.close()
six = hmm.predict_proba(throws) @ of_states[:, 5]

forward, backward = np.zeros((2, len(throws), 2))
transmat = np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
given = dice[:, throws[:, 0] - 1].T
forward[0], backward[-1] = [1, 0] * given[0], 1
for t in range(1, len(throws)):
    forward[t] = forward[t - 1] @ transmat * given[t]
    forward[t] /= forward[t].sum()
for t in range(len(throws) - 1, 0, -1):
    backward[t - 1] = transmat @ (given[t] * backward[t])
    backward[t - 1] /= backward[t - 1].sum()
known = forward * backward
known = known / known.sum(axis=1, keepdims=True) @ dice[:, 5]

fig, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
ax.fill_between(np.arange(400), 0, 0.6, where=loaded[shown] == 1, color="#E69F00", alpha=0.3, lw=0)
ax.plot(six[shown], color="#0072B2", label=f"{hmm.n_states_} states inferred")
ax.plot(known[shown], "k--", lw=0.8, label="the dice known")
ax.set(xlabel="throw (shaded: loaded die)", ylabel="probability of a six")
ax.set(xlim=(0, 400), ylim=(0, 0.6))
ax.legend(loc="upper right")
plt.show()
print(f"correlation with the known dice: {np.corrcoef(six, known)[0, 1]:.2f}")
