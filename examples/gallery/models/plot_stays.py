"""
When does a regime end?
=======================

A thermostat heats until a room is warm, and rests until the room is cold. The
temperature alone has two regimes, rising and falling. The temperature before a step
predicts how soon the present regime ends. The temperature before is an *input of
staying*: ``HCRPTransitions(input_features=...)``.
"""

# %%
# The temperature drifts up or down, with noise. A warm room makes it likely that the
# heating is switched off, a cold room that the heating is switched on.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.inspection import RegressionDisplay
from skihmm.metrics import frozen_log_likelihood
from skihmm.transitions import HCRPTransitions

rng = np.random.default_rng(2)
n = 4001
temperature, heats = np.zeros(n), np.zeros(n, dtype=int)
for t in range(1, n):
    before = temperature[t - 1] if heats[t - 1] else -temperature[t - 1]
    stays = rng.random() < expit(4 - 3 * before)
    heats[t] = heats[t - 1] if stays else 1 - heats[t - 1]
    drift = 0.12 if heats[t] else -0.12
    temperature[t] = 0.95 * temperature[t - 1] + drift + 0.25 * rng.normal()

# %%
# The input of a step is the last observation: a second column, shifted by one row. A
# chain may miss the second state, so the fit has three chains, weighted by rank.

X = np.column_stack([temperature[1:], temperature[:-1]])
train, test = X[:3000], X[3000:]
hmm = HCRPHMM(
    emission=AutoregressiveNormal(1),
    transitions=HCRPTransitions(input_features=[1]),
    n_chains=3,
    n_burnin=300,
    n_draws=30,
    random_state=0,
).fit(train)
without = HCRPHMM(
    emission=AutoregressiveNormal(1),
    transitions="sticky",
    n_chains=3,
    n_burnin=300,
    n_draws=30,
    random_state=0,
).fit(train[:, :1])

states = hmm.predict_proba(train).argmax(axis=1)
print(f"{hmm.n_states_} states with the input, {without.n_states_} without")
print(f"adjusted Rand index: {adjusted_rand_score(heats[1:3001], states):.2f}")
gain = frozen_log_likelihood(hmm, test) - frozen_log_likelihood(without, test[:, :1])
print(f"nats per new step gained by the input: {gain:.3f}")

# %%
# The probability to stay in each state, by the temperature before the step, with bands
# of 95 %. One state lasts while the room is cold, and the second state while it
# is warm.

display = RegressionDisplay.from_estimator(hmm, output="staying", feature=0)
display.ax_.set(xlabel="temperature before")
plt.show()
