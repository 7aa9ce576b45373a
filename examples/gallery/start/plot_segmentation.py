"""
Segmentation of a signal
========================

A signal switches between regimes with different levels and different noise. The model
infers the number of regimes and the times of the changes.
"""

# %%
# Five regimes. Two of the regimes have the same level and different noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.inspection import EmissionDisplay, StateSequenceDisplay

rng = np.random.default_rng(3)
means, widths = np.array([0, 0, 4, 8, -5]), np.array([0.3, 1.5, 0.5, 1.0, 0.7])
regime = np.zeros(1000, dtype=int)
for t in range(1, 1000):
    regime[t] = rng.integers(5) if rng.random() < 0.02 else regime[t - 1]
X = rng.normal(means[regime], widths[regime])[:, None]

hmm = HCRPHMM(
    emission="diagonal_gaussian", transitions="sticky", n_burnin=300, n_chains=2, random_state=0
).fit(X)
print(f"{hmm.n_states_} regimes; adjusted Rand index with the true ones:")
print(f"{adjusted_rand_score(regime, hmm.labels_):.2f}")
assert hmm.n_states_ == 5

# %%
# The path of ``predict``. The height of a colour is the probability of the state.

StateSequenceDisplay.from_estimator(hmm, X)
plt.gcf().set_size_inches(8, 3.2)
plt.show()

# %%
# Posterior predictive densities of the regimes.

EmissionDisplay.from_estimator(hmm)
plt.gcf().set_size_inches(7, 3.2)
plt.show()
