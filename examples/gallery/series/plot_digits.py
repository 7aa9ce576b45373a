"""
Handwritten digits in counting order
====================================

A sequence of digits counts upwards, sometimes repeats a digit, and sometimes restarts
at a random digit. Every step is an image of its digit. The model is fitted to principal
components of scikit-learn's images, without the digits or their number.
"""

# %%
# 1,500 images in counting order.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import NormalInverseWishart

rng = np.random.default_rng(0)
images, labels = load_digits(return_X_y=True)
digits = np.zeros(1500, dtype=int)
for t in range(1, 1500):
    step = digits[t - 1] + (rng.random() < 0.9)
    digits[t] = (rng.integers(10) if rng.random() < 0.05 else step) % 10
X = images[[rng.choice(np.flatnonzero(labels == digit)) for digit in digits]]
Z = PCA(10, random_state=0).fit_transform(X)

# %%
# The prior sets the variance of a state to half of the variance of the data. Narrower
# states would separate the ways of writing a digit.

scale = 0.5 * 19 * np.diag(Z.var(axis=0))  # 19 = dof - n_features - 1
hmm = HCRPHMM(
    emission=NormalInverseWishart(strength=0.1, dof=30, scale=scale),
    n_burnin=150,
    n_draws=20,
    random_state=0,
).fit(Z)
print(f"{hmm.n_states_} states, adjusted Rand index with the digits:")
print(f"{adjusted_rand_score(digits, hmm.labels_):.2f}")

# %%
# The mean image of every state, by size, with the most frequent digit of the state and
# its share.

n_states = min(hmm.n_states_, 20)
fig, axes = plt.subplots(2, 10, figsize=(8, 2.6), layout="constrained")
for ax in axes.flat:
    ax.axis("off")
for k, ax in zip(range(n_states), axes.flat, strict=False):
    mine = hmm.labels_ == k
    counts = np.bincount(digits[mine], minlength=10)
    ax.imshow(X[mine].mean(axis=0).reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{counts.argmax()}: {counts.max() / mine.sum():.0%}", fontsize=9)
plt.show()

# %%
# The transition matrix shows the counting, with states in the order of their digits.

digit_of = [np.bincount(digits[hmm.labels_ == k]).argmax() for k in range(hmm.n_states_)]
order = np.argsort(digit_of, kind="stable")
fig, ax = plt.subplots(figsize=(4.6, 4), layout="constrained")
shown = ax.imshow(hmm.transmat_[np.ix_(order, order)], cmap="cividis", vmin=0, vmax=1)
ticks = np.arange(len(order))
ax.set_xticks(ticks, [digit_of[k] for k in order], fontsize=7)
ax.set_yticks(ticks, [digit_of[k] for k in order], fontsize=7)
ax.set(xlabel="next state's digit", ylabel="state's digit")
fig.colorbar(shown, label="probability")
plt.show()
