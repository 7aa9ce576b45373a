"""
Earthquakes: how many regimes?
==============================

Are there quiet and restless times of the earth, and how many kinds of times? The counts
are earthquakes of magnitude 7 or more in each year from 1900 to 2006. The counts are
the first example of the textbook of Zucchini and MacDonald on hidden Markov models. The
textbook runs EM with one to four Poisson states, and both AIC and BIC choose three.

The catalogue is from the U.S. Geological Survey (public domain), as printed in W.
Zucchini and I. L. MacDonald, *Hidden Markov Models for Time Series*, 2009. The counts
of 2007 to 2011, used at the end, are from the Survey's "Earthquake Facts and
Statistics".
"""

# %%
# The fit gets no number of states. Two further models are defensible as well: regimes
# that last (``"sticky"``), and counts that vary more within a regime than Poisson
# counts (``"negative_binomial"``).

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skihmm import HCRPHMM
from skihmm.inspection import ForecastDisplay
from skihmm.posterior import draw_parameters, n_states_distribution

counts = """
13 14 8 10 16 26 32 27 18 32 36 24 22 23 22 18 25 21 21 14 8 11 14 23 18 17 19 20 22 19
13 26 13 14 22 24 21 22 26 21 23 24 27 41 31 27 35 26 28 36 39 21 17 22 17 19 15 34 10 15
22 18 15 20 15 22 19 16 30 27 29 23 20 16 21 21 25 16 18 15 18 14 10 15 8 15 6 11 8 7 18
16 13 12 13 20 15 16 12 18 15 16 13 15 16 11 11
"""
years = np.arange(1900, 2007)
index = pd.period_range("1900", periods=107, freq="Y")
X = pd.DataFrame({"earthquakes": [int(count) for count in counts.split()]}, index=index)
models = {
    "Poisson": {"emission": "poisson"},
    "Poisson, sticky": {"emission": "poisson", "transitions": "sticky"},
    "negative binomial": {"emission": "negative_binomial"},
}
fits = {
    name: HCRPHMM(**model, n_chains=4, thin=10, random_state=0).fit(X)
    for name, model in models.items()
}
for name, hmm in fits.items():
    found = dict(zip(*n_states_distribution(hmm.draws_), strict=True))
    print(f"{name:18}", *(f"{n}: {found.get(n, 0):.2f} " for n in range(2, 7)))

# %%
# .. quoted
#
# Three is the most probable number of the default, with a probability of 0.45. The
# assumption that regimes last makes four the most probable number, 0.31 for 0.27.
#
# The textbook's choice is not firmer. Its BIC is 701.0 with three states and 703.3 with
# two. A hundred years do not determine the number of regimes.
#
# The rates hardly depend on the number. EM finds the rates 13.1, 19.7 and 29.7 for
# three states. The states of the selected draw have similar rates:

hmm = fits["Poisson"]
for rate, size in sorted(
    (X["earthquakes"][hmm.labels_ == k].mean(), (hmm.labels_ == k).sum())
    for k in range(hmm.n_states_)
):
    print(f"{rate:.1f} a year in {size} years")

# %%
# The rate of every year is an average over draws with different numbers of states. The
# rate is nearly the same with and without regimes that last. The band has 90 % of the
# draws of the first model.

fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.plot(years, X["earthquakes"], "k.", ms=4)
n_chains, n_draws = hmm.draws_.shape
for name, style in {"Poisson, sticky": "--", "Poisson": "-"}.items():
    draws = [draw_parameters(fits[name], (c, d)) for c in range(n_chains) for d in range(n_draws)]
    rates = np.array([p.emission_.rates_[p.states, 0] for p in draws])
    ax.plot(years, rates.mean(axis=0), style, color="#0072B2", label=name)
low, high = np.quantile(rates, [0.05, 0.95], axis=0)
ax.fill_between(years, low, high, color="#56B4E9", alpha=0.4, lw=0)
ax.set(xlabel="year", ylabel="earthquakes of magnitude ≥ 7")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
plt.show()

# %%
# A forecast from 2006, with the counts that came later as open circles. All five years
# are in the band of 90 %. The band leaves room for an end of the quiet regime since
# 1980.

display = ForecastDisplay.from_estimator(hmm, X, n_steps=5, n_past=30)
display.axes_[0].plot(np.arange(1, 6), [18, 12, 17, 24, 20], "ko", mfc="none")
display.figure_.set_size_inches(8, 3)
plt.show()
