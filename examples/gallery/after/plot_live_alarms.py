"""
Live rows of a pump: states and alarms
======================================

A pump idles or works, and two sensors report pressure and temperature once a second. A
model of 25 healthy minutes follows the next ten minutes row by row. In which state is
the pump, and is the new row normal?
"""

# %%
# The data are simulated, with noise that is correlated in time.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM, OnlineFilter

rng = np.random.default_rng(4)


def simulate(n):
    works = np.repeat(np.arange(n // 60) % 2, 60)
    X, noise = np.empty((n, 2)), np.zeros(2)
    for t in range(n):
        noise = 0.6 * noise + rng.normal(size=2) * [0.1, 0.4]
        X[t] = 2 + 1.5 * works[t] + noise[0], 40 + 6 * works[t] + noise[1]
    return X


healthy, coming = simulate(1500), simulate(600)

# %%
# A wrong temperature, twenty seconds without a report, and a leak from the 400th second
# on. The leak lowers the pressure a little more every second.

coming[100, 1] += 6
coming[200:220] = np.nan
coming[400:, 0] -= 0.01 * np.arange(200)

# %%
# One call per row. ``live`` holds a summary of all earlier rows.

hmm = HCRPHMM(emission="autoregressive", n_burnin=200, random_state=0).fit(healthy)
live = OnlineFilter(hmm, level=1e-3)
rows = [live.update(row[None]) for row in coming]

names = ("probs", "surprise", "joint_surprise", "is_alarm")
probs, surprise, joint, is_alarm = (np.concatenate([row[name] for row in rows]) for name in names)
largest, limit = np.maximum(surprise, joint), -np.log(live.level / 2)
assert (is_alarm == (largest > limit)).all()
assert is_alarm[100]
print("alarms:", np.flatnonzero(is_alarm))
is_new = probs[:, -1] > 0.5
print("in a new state from second", np.flatnonzero(~is_new)[-1] + 1, "on")

# %%
# An alarm is a row whose largest surprise, of one column or of both together, exceeds a limit
# that one of 1,000 right rows exceeds. The wrong value is an alarm. The leak is not a single
# event. A state that the fit has not seen takes over, and alarms go on, because the rows are far
# from all states of the fit. Watch both signals: alarms, and the probability of a new state.

fig, axes = plt.subplots(3, 1, figsize=(8, 5), sharex=True, layout="constrained")
axes[0].plot(coming[:, 0], "k", lw=0.7)
axes[0].vlines(np.flatnonzero(is_alarm), 0, 4, color="#D55E00", lw=1)
axes[0].set(ylabel="pressure")
axes[1].plot(largest, "k", lw=0.7)
axes[1].axhline(limit, color="#D55E00", lw=1)
axes[1].set(ylabel="largest surprise, nats")
axes[2].fill_between(np.arange(600), probs[:, -1], step="mid", color="#56B4E9")
axes[2].set(ylabel="P(new state)", xlabel="second", ylim=(0, 1))
plt.show()

# %%
# A forecast from the last row on: lower limit, median and upper limit of the pressure.

following = live.predict_next(5)
lower, upper = following.interval(0.9)
print(np.column_stack([lower[:, 0], following.quantile(0.5)[:, 0], upper[:, 0]]).round(2))
