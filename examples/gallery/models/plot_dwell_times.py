"""
States that last
================

Where observations are ambiguous, a path jumps between similar states, unless states
have a preference to stay. The fit learns the dwell times, and a picture checks whether
dwell times are geometric, as the model assumes.
"""

# %%
# States that last for 15 to 60 steps on average, at levels that overlap. Neighbouring
# levels are one and a half standard deviations apart.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.datasets import make_hcrp_hmm
from skihmm.inspection import DwellTimeDisplay, StateSequenceDisplay
from skihmm.samplers import BlockedGibbs

rng = np.random.default_rng(0)
prior = {"alpha": 4, "gamma": 0.8, "dwell": [15, 30, 60]}
_, states = make_hcrp_hmm(1500, **prior, random_state=11)
X = rng.normal(1.5 * states)[:, None]
print(f"{states.max() + 1} states, {np.count_nonzero(np.diff(states)) + 1} segments")


def fit(X, transitions):
    return HCRPHMM(
        sampler=BlockedGibbs(block_size=20, split_merge_rate=3),
        emission="gaussian",
        transitions=transitions,
        n_burnin=300,
        n_draws=50,
        random_state=0,
    ).fit(X)


# %%
# The number of segments (stretches of the path in one state) of the posterior draws,
# without and with a probability to stay for each state.

fits = {name: fit(X, name) for name in ("hcrp", "sticky")}
for name, hmm in fits.items():
    n_segments = np.count_nonzero(np.diff(hmm.draws_.states), axis=-1).mean() + 1
    print(f"{name:>6}: {hmm.n_states_} states, {n_segments:.0f} segments")

fig, axes = plt.subplots(2, 1, figsize=(8, 3.6), sharex=True, layout="constrained")
for ax, (name, hmm) in zip(axes, fits.items(), strict=True):
    StateSequenceDisplay.from_draws(hmm.draws_, columns=[], last=700, ax=ax)
    ax.set_title(f'transitions="{name}"', fontsize="medium")
plt.show()

# %%
# ``dwell_times_`` has the dwell time that the model expects of each state. The picture
# compares the dwell times with the segments. The observed shares stay inside the bands.

print(fits["sticky"].dwell_times_.round(1))
DwellTimeDisplay.from_estimator(fits["sticky"], X)
plt.show()

# %%
# New data with less noise, in which every state lasts for twelve steps or more. The
# observed line stays above the band at first: the dwell times vary less than geometric
# dwell times.

_, states = make_hcrp_hmm(1500, **prior, min_dwell=12, random_state=2)
regular = fit(rng.normal(4.0 * states)[:, None], "sticky")
DwellTimeDisplay.from_draws(regular.draws_)
plt.show()
