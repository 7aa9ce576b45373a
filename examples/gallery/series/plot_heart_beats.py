"""
Heart beats: shapes, not levels
===============================

When does a heart change its rhythm? One sample of an electrocardiogram has no answer, since
every beat runs through all voltages. :class:`~skihmm.windows.WindowedHMM` describes windows of
two beats, infers the number of rhythms, and returns a state for every sample.

The recording is simulated: 250 samples a second, beats with a jitter of 4 %, and a baseline that
wanders with the breath.
"""

# %%
# Three rhythms: normal beats, broad beats without a first wave, and flutter.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.inspection import StateSequenceDisplay
from skihmm.windows import WindowedHMM

rng = np.random.default_rng(0)


def bump(u, place, width):
    return np.exp(-0.5 * ((u - place) / width) ** 2)


def beat(rhythm, u):
    if rhythm == "normal":
        wave = 0.15 * bump(u, 0.25, 0.03) - 0.2 * bump(u, 0.37, 0.01)
        return wave + 1.2 * bump(u, 0.4, 0.012) + 0.3 * bump(u, 0.7, 0.05)
    if rhythm == "broad":
        return 1.0 * bump(u, 0.4, 0.06) - 0.4 * bump(u, 0.65, 0.08)
    return 0.3 * np.sin(8 * np.pi * u) + 0.9 * bump(u, 0.4, 0.012)


order = ["normal", "flutter", "normal", "broad", "normal", "flutter"]
beats = [beat(r, np.linspace(0, 1, int(200 * (1 + 0.04 * rng.normal()))))
         for r in order for _ in range(25)]  # fmt: skip
voltage = np.concatenate(beats)
seconds = np.arange(len(voltage)) / 250
voltage += 0.05 * np.sin(2 * np.pi * seconds / 3.3) + 0.05 * rng.normal(size=len(voltage))
borders = np.cumsum([len(each) for each in beats])[24:-1:25] / 250

hmm = WindowedHMM(random_state=0).fit(voltage[:, None])
print(f"a beat of {hmm.period_ / 250:.2f} s, {hmm.n_states_} states")
print("changes found:", (hmm.segments().start[1:] / 250).round(1))
print("changes made: ", borders.round(1))

# %%
# Three seconds around the first change.

start = int(250 * borders[0]) - 375
part = slice(start, start + 750)
display = StateSequenceDisplay(
    hmm.labels_[part], X=voltage[part, None], column_names=["voltage"]
).plot()
display.figure_.set_size_inches(8, 3)
plt.show()

# %%
# A model of single samples has states for heights of the voltage, which repeat with every beat.
# The diagnosis says so, and names the model of windows.

rows = HCRPHMM(emission="gaussian", transitions="persistent", random_state=0)
rows.fit(voltage[::4, None])
found = rows.diagnose().findings[0]
print(f"{rows.n_states_} states. {found.seen}.")
assert hmm.n_states_ == 3
assert np.abs(hmm.segments().start[1:] / 250 - borders).max() < 0.5
assert found.kind == "cycle"
