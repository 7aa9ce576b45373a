"""
Forecasts and imputation
========================

A signal alternates between a slow wave and a fast wave, with a gap of missing
observations. :meth:`~skihmm.HCRPHMM.impute` fills the gap, and
:meth:`~skihmm.HCRPHMM.predict_next` forecasts the steps after the end.
"""

# %%
# The data: 800 steps, of which 30 are missing. Each state is an autoregression of order
# two, which describes one wave.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.inspection import ForecastDisplay

rng = np.random.default_rng(0)
periods, damping = np.array([40, 12]), 0.99
coefficients = np.column_stack([2 * damping * np.cos(2 * np.pi / periods), [-(damping**2)] * 2])
waves = np.arange(800) // 100 % 2
X = np.zeros((800, 1))
for t in range(2, 800):
    X[t] = coefficients[waves[t]] @ X[[t - 1, t - 2], 0] + 0.15 * rng.normal()
truth = X.copy()
X[440:470] = np.nan

emission = AutoregressiveNormal(order=2)
hmm = HCRPHMM(emission=emission, n_burnin=200, n_draws=50, random_state=0).fit(X)
roots = [np.roots([1, *-row]) for row in hmm.emission_.coefficients_[:, 0]]
for k, pair in enumerate(roots):
    n_steps = (hmm.labels_ == k).sum()
    print(f"state {k}: a period of {2 * np.pi / np.angle(pair[0]):.1f} steps, {n_steps} steps")

# %%
# Forty imputations of the gap, drawn jointly with the path of states through the gap.
# The imputations join the waves on both sides, and differ most in the middle.

gap = np.arange(420, 490)
drawn = [hmm.impute(X, method="sample", random_state=i)[gap] for i in range(40)]
expected = hmm.impute(X)[gap]

fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for values in drawn:
    ax.plot(gap, values, color="#56B4E9", alpha=0.2)
ax.plot(gap, expected, color="#0072B2", lw=2, label="expectation")
ax.plot(gap, truth[gap], "k.", ms=4, label="lost, or observed")
ax.axvspan(439.5, 469.5, color="0.93", zorder=0)
ax.set(xlabel="step", ylabel="value", title="Imputations of the gap")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
plt.show()

# %%
# Sixty steps ahead, with one simulated path. The forecast goes on with the wave of the
# last steps. Phases of simulated paths drift apart, so the median approaches zero, and
# the bands approach the range of the signal.

display = ForecastDisplay.from_estimator(hmm, X, n_steps=60, n_past=60)
path = hmm.predict_next(X, n_steps=60).sample(random_state=0)[0, :, 0]
display.axes_[0].plot(np.arange(1, 61), path, color="0.4", lw=0.8)
display.figure_.set_size_inches(8, 3)
plt.show()
