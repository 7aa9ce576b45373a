"""
Motion capture: states with dynamics
====================================

Twelve joint angles of persons who do exercises. An exercise is not a place in the space
of angles, but a way of moving. The states are therefore vector autoregressions.

This example needs the data. See :func:`skihmm.datasets.fetch_mocap6` for their
location.
"""

# %%
# Six sequences, ten rows a second. Autoregressive states need no further setting.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from skihmm import HCRPHMM
from skihmm.datasets import fetch_mocap6
from skihmm.inspection import ForecastDisplay

mocap6 = fetch_mocap6(download_if_missing=False)
X, groups = StandardScaler().fit_transform(mocap6.data), mocap6.groups
hmm = HCRPHMM(emission="autoregressive", n_burnin=300, n_draws=50, random_state=0)
hmm.fit(X, groups=groups)
large = (np.bincount(hmm.labels_) >= 0.01 * len(X)).sum()
print(f"{large} states of at least one per cent of the steps")
rand_index = adjusted_rand_score(mocap6.target, hmm.labels_)
print(f"adjusted Rand index with the annotated actions: {rand_index:.2f}")

# %%
# States over time, with the annotation. The colour of a state is the colour of its most
# frequent action.

table = np.zeros((hmm.n_states_, 12))
np.add.at(table, (hmm.labels_, mocap6.target), 1)
colour = table.argmax(axis=1)
palette = "0072B2 E69F00 009E73 CC79A7 56B4E9 D55E00 F0E442 4B2100 1A3646 F4D48C E0AFCA 808080"
colours = ListedColormap([f"#{code}" for code in palette.split()])
fig, axes = plt.subplots(6, 1, figsize=(8, 5), layout="constrained")
for sequence, ax in enumerate(axes):
    here = groups == sequence
    rows = np.stack([mocap6.target[here], colour[hmm.labels_[here]]])
    ax.imshow(rows, aspect="auto", cmap=colours, vmin=0, vmax=11, interpolation="none")
    borders = np.flatnonzero(np.diff(hmm.labels_[here])) + 0.5
    ax.vlines(borders, 0.5, 1.5, color="white", lw=0.8)
    ax.set_yticks([0, 1], ["action", "state"])
    ax.set_xticks([])
axes[-1].set_xlabel("time")
plt.show()

# %%
# The dynamics of four states. The modulus of an eigenvalue of the companion matrix is
# the speed at which a movement dies out, and its angle is a frequency.

emission = hmm.emission_
n_features = X.shape[1]
order = emission.coefficients_.shape[2] // n_features
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for state in range(4):
    companion = np.eye(n_features * order, k=-n_features)
    companion[:n_features] = emission.coefficients_[state]
    values = np.linalg.eigvals(companion)
    values = values[values.imag >= 0]
    hertz = 10 * np.angle(values) / (2 * np.pi)
    ax.plot(hertz, abs(values), "o", alpha=0.7, label=f"state {state}")
ax.axhline(1, color="0.7", lw=0.8)
ax.set(xlabel="frequency, 1/s", ylabel="modulus")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
plt.show()

# %%
# A forecast moves in time by the dynamics of the states.

ForecastDisplay.from_estimator(hmm, X, 20, groups=groups, columns=[0, 2], n_past=40)
plt.show()
