"""
Forecasts and imputation
========================

A signal cycles through four levels, with a gap of missing observations.
:meth:`~skihmm.HCRPHMM.impute` fills the gap, and :meth:`~skihmm.HCRPHMM.predict_next`
forecasts the steps after the end.
"""

# %%
# The data: 400 steps, of which 40 in the middle are missing. A sampler that moves
# blocks of steps suits gaps. Single steps would have to pass through many improbable
# paths between two probable paths.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.inspection import ForecastDisplay
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
# Forty imputations of the gap, drawn jointly with the path of states through the gap.
# The imputations agree at the edges and differ in the middle. Some pass once through
# all levels, like the true path. The rest stay at the level of both edges.

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
# Sixty steps ahead. The next level is nearly certain, but its time is not. In the long
# run the forecast approaches the frequencies of the levels.

display = ForecastDisplay.from_estimator(hmm, X, n_steps=60, n_past=40)
path = hmm.predict_next(X, n_steps=60).sample(random_state=0)[0, :, 0]
display.axes_[0].plot(np.arange(1, 61), path, color="0.4", lw=0.8)
display.figure_.set_size_inches(8, 3)
plt.show()
