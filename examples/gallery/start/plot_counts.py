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

from skihmm import HCRPHMM

rng = np.random.default_rng(0)
hours = np.arange(1500)
transmat = np.array([[0.85, 0.15, 0.0], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
level = np.zeros(len(hours), dtype=int)
for t in hours[1:]:
    level[t] = rng.choice(3, p=transmat[level[t - 1]])
rates = np.array([[0.4, 0.2], [6.0, 2.0], [18.0, 9.0]])
X = rng.poisson(rates[level])

hmm = HCRPHMM(emission="poisson", n_burnin=200, n_draws=50, random_state=0).fit(X)
print(f"{hmm.n_states_} states of {np.bincount(hmm.labels_)} hours")

# %%
# Mean counts of the states, and the states of the first hundred hours.

means = np.array([X[hmm.labels_ == k].mean(axis=0) for k in range(hmm.n_states_)])
order = np.argsort(means[:, 0])
colors = ["#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "0.4", "0.7"]

fig, axes = plt.subplots(
    2, 1, figsize=(8, 5), sharex=True, layout="constrained", height_ratios=[3, 1]
)
shown = slice(0, 100)
axes[0].step(hours[shown], X[shown], where="mid", label=["desk 1", "desk 2"])
axes[0].set(ylabel="calls per hour")
axes[0].legend()
for rank, k in enumerate(order):
    here = hmm.labels_[shown] == k
    if here.any():
        text = f"{means[k, 0]:.1f} and {means[k, 1]:.1f} calls"
        axes[1].bar(hours[shown][here], 1, width=1, color=colors[rank % len(colors)], label=text)
axes[1].set(yticks=[], xlabel="hour")
axes[1].legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.5))
plt.show()

# %%
# Mean durations of the states, and the transition matrix without the new state.

stay = np.diag(hmm.transmat_)[order]
for k, n_hours in zip(order, 1 / (1 - stay), strict=True):
    print(f"{means[k, 0]:5.1f} and {means[k, 1]:4.1f} calls: {n_hours:4.1f} hours")
print(hmm.transmat_[np.ix_(order, order)].round(2))
