"""
Forecasts and imputation
========================

A signal cycles through four levels, with a gap of missing observations.
:meth:`~skihmm.HCRPHMM.impute` fills in the gap, :meth:`~skihmm.HCRPHMM.predict_next`
forecasts the steps after the end.
"""

# %%
# The data: 400 steps, of which 40 in the middle are missing.  A sampler that moves
# blocks of steps suits gaps: single steps would have to pass through many improbable
# paths between two probable ones.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.samplers import BlockedGibbs

rng = np.random.default_rng(1)
levels = np.array([0.0, 3.0, 1.0, 6.0])
states = np.zeros(400, dtype=int)
for t in range(1, 400):
    states[t] = (states[t - 1] + (rng.random() < 0.1)) % 4
X = rng.normal(levels[states], 0.4)[:, None]
truth = X.copy()
X[200:240] = np.nan

hmm = HCRPHMM(
    sampler=BlockedGibbs(block_size=40, split_merge_rate=2),
    emission="diagonal_gaussian",
    n_burnin=300,
    n_draws=50,
    random_state=0,
).fit(X)
print(f"{hmm.draws_.n_states.mean():.1f} states on average")

# %%
# Forty imputations of the gap, drawn jointly with the path of states through it.
# They agree at the edges and differ in the middle: most pass once through all levels, as
# the true path does, some stay at one level.

gap = np.arange(195, 245)
drawn = [hmm.impute(X, method="sample", random_state=i)[gap] for i in range(40)]
expected = hmm.impute(X)[gap]

fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for values in drawn:
    ax.plot(gap, values, color="#56B4E9", alpha=0.2)
ax.plot(gap, expected, color="#0072B2", lw=2, label="expectation")
ax.plot(gap, truth[gap], "k.", ms=4, label="lost")
ax.set(xlabel="step", ylabel="value", title="Imputations of the gap")
ax.legend(loc="upper left")
plt.show()

# %%
# Sixty steps ahead: the next level is nearly certain, its time is not, and in the long
# run the forecast approaches the frequencies of the levels.

following = hmm.predict_next(X, n_steps=60)
futures = following.sample(2000, random_state=0)[:, :, 0]
steps = np.arange(400, 460)
fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for low, high in ((5, 95), (25, 75)):
    band = np.percentile(futures, [low, high], axis=0)
    ax.fill_between(steps, *band, color="#E69F00", alpha=0.35, lw=0)
ax.plot(steps, following.mean(), color="#D55E00", lw=2, label="mean")
ax.plot(steps, futures[0], color="0.4", lw=0.8, label="one future")
ax.plot(np.arange(360, 400), X[360:], "k.", ms=4, label="observed")
ax.set(xlabel="step", ylabel="value", title="Forecast: mean, 50 % and 90 % bands")
ax.legend(loc="upper left")
plt.show()
