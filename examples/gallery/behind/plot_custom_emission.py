"""
An emission of your own
=======================

Waiting times are exponential, and this package has no exponential emission. A few lines
of Python define the emission. It works with every sampler, with missing data and in
mixed data.
"""

# %%
# The sufficient statistics of a state are the number and the sum of its observations.
# With a Gamma prior on the rate, the predictive distribution is a Lomax distribution.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import gammaln

from skihmm import HCRPHMM
from skihmm.emissions import ConjugateEmission


class Exponential(ConjugateEmission):
    """Waiting times; a Gamma(shape, rate) prior on the rate of every state."""

    def __init__(self, shape=1.0, rate=1.0):
        self.shape = shape
        self.rate = rate

    def empty(self):
        return np.array([self.shape, self.rate])

    def add(self, stats, y):
        return stats + np.array([1.0, y[0]])

    def remove(self, stats, y):
        return stats - np.array([1.0, y[0]])

    def log_predictive(self, stats, y):
        shape, rate = stats.T
        return np.log(shape / rate) - (shape + 1) * np.log1p(y[0] / rate)

    def log_marginal(self, stats):
        shape, rate = stats.T
        prior = self.shape * np.log(self.rate) - gammaln(self.shape)
        return prior + gammaln(shape) - shape * np.log(rate)


# %%
# Times between visitors: rush hours, ordinary hours, nights.

rng = np.random.default_rng(0)
mean_wait = np.array([0.5, 5.0, 60.0])
hour = np.repeat([1, 0, 1, 2, 1, 0, 1, 2, 1], [40, 120, 40, 15, 60, 150, 30, 12, 33])
X = rng.exponential(mean_wait[hour])[:, None]
hmm = HCRPHMM(emission=Exponential(), n_burnin=50, n_draws=20, random_state=0).fit(X)

# %%
# The mean waiting time of the state of every visitor.

waits = np.array([X[hmm.labels_ == k].mean() for k in range(hmm.n_states_)])
fig, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.semilogy(X, ".", color="0.6", ms=4, label="waiting times")
ax.step(range(len(X)), mean_wait[hour], color="k", lw=3, alpha=0.4, label="true means")
ax.step(range(len(X)), waits[hmm.labels_], color="#D55E00", label="mean of the state")
ax.set(xlabel="visitor", ylabel="minutes since the one before")
ax.legend(loc="lower right", ncols=3)
plt.show()
print(f"{hmm.n_states_} states, mean waits {np.round(np.sort(waits), 1)}")
