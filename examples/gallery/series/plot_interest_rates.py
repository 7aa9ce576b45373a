"""
Interest rates: regimes of a policy rule
========================================

How does a central bank set its rate? By a common rule the rate moves with the last
rate, with inflation and with unemployment. Did one rule, with one variance, hold from
1959 to 2009? A switching regression infers the number of rules and the times of the
changes.

The quarterly series of the United States are part of statsmodels: the three-month
Treasury bill rate, inflation and unemployment.
"""

# %%
# The rate of a quarter is observed. All other columns are inputs, also the last rate.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from statsmodels.datasets import macrodata

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.inspection import RegressionDisplay
from skihmm.metrics import frozen_log_likelihood
from skihmm.posterior import align, n_states_distribution

series = macrodata.load_pandas().data
quarters = series["year"] + (series["quarter"] - 1) / 4
X = pd.DataFrame(
    {
        "rate": series["tbilrate"],
        "last rate": series["tbilrate"].shift(),
        "inflation": series["infl"].rolling(4).mean(),
        "unemployment": series["unemp"],
    }
).set_axis(quarters)[4:]
given = ["last rate", "inflation", "unemployment"]

# %%
# The rate moved far more from 1979 to 1982, when the Federal Reserve steered reserves
# and not the rate. (The quarters of 1979 begin at 1979, 1979.25, 1979.5 and 1979.75.)
# Policies are few and last for years, hence ``transitions="persistent"``. The default
# lets states change more quickly, and finds more states, some of which alternate.

emission = AutoregressiveNormal(order=0, input_features=given, noise="normal")
hmm = HCRPHMM(emission=emission, transitions="persistent", n_chains=4, random_state=0)
hmm.fit(X)
numbers, probabilities = n_states_distribution(hmm.draws_)
for number, probability in zip(numbers, probabilities, strict=True):
    print(f"{number} regimes: {probability:.2f}")
deviations = np.sqrt(hmm.emission_.covariances_[:, 0, 0])
for k, deviation in enumerate(deviations):
    rows = X.index[hmm.labels_ == k]
    print(
        f"regime {k}: {len(rows)} quarters, {rows[0]} to {rows[-1]}, "
        f"standard deviation {deviation:.2f}"
    )

# %%
# .. quoted
#
# The regime with the largest standard deviation, 1.73, has the 23 quarters from 1979.5 to
# 1985.0, longer than the reserves were steered. The most probable number is 5 regimes, with
# the probability 0.40.
#
# The picture has the rate, and the share of draws in which a quarter is in the regime
# of the end of 1980.

paths = align(hmm.draws_, reference=hmm.labels_)
special = hmm.labels_[np.flatnonzero(X.index == 1980.75)[0]]
assert special == deviations.argmax()
assert numbers[probabilities.argmax()] == 5
fig, axes = plt.subplots(2, 1, figsize=(8, 4.2), sharex=True, layout="constrained")
axes[0].plot(X.index, X["rate"], "k-", lw=0.8)
axes[0].set(ylabel="per cent")
axes[1].fill_between(X.index, (paths == special).mean(axis=0), step="mid", color="#56B4E9")
axes[1].set(ylabel="P(regime of 1980)", xlabel="year", ylim=(0, 1))
plt.show()

# %%
# The coefficients, with intervals over all draws. The variance separates the regimes.
# The regime of 1980 has too few quarters to show a different rule.

RegressionDisplay.from_estimator(hmm)
plt.show()

# %%
# Within a regime, large changes may be more frequent than under normal noise. The
# comparison is ``noise="student"``. Both models are fitted to the years before 1995,
# and scored on the later years. The scores are nearly equal.

scores = []
early, late = X.loc[:1994.75], X.loc[1995:]
for noise in ("normal", "student"):
    emission = AutoregressiveNormal(order=0, input_features=given, noise=noise)
    hmm = HCRPHMM(emission=emission, transitions="persistent", random_state=0)
    hmm.fit(early)
    scores.append(frozen_log_likelihood(hmm, late))
    print(f"{noise}: {hmm.n_states_} regimes, held-out {scores[-1]:.3f} nats a quarter")
assert abs(scores[0] - scores[1]) < 0.05
