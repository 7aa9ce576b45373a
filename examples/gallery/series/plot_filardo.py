"""
Does a recession end sooner when the leading index rises?
=========================================================

Filardo (1994) let the probabilities of a Markov switching model depend on the index of
leading indicators (``exog_tvtp`` in statsmodels, whose test data contain the series).
Here the index is an *input of staying*: ``HCRPTransitions(input_features=...)``.
"""

# %%
# Monthly growth of industrial production in the United States, and growth of the
# leading index in the month before.

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import statsmodels

from skihmm import HCRPHMM
from skihmm.inspection import RegressionDisplay
from skihmm.metrics import frozen_log_likelihood
from skihmm.posterior import parameter_intervals
from skihmm.transitions import HCRPTransitions

folder = Path(statsmodels.__file__).parent / "tsa/regime_switching/tests/results"
table = pd.read_csv(folder / "mar_filardo.csv")
table.index = pd.period_range("1948-02", periods=len(table), freq="M")
X = pd.DataFrame({"growth": table["dlip"], "index": table["dmdlleading"].shift()}).iloc[1:]
train, test = X.iloc[:350], X.iloc[350:]

# %%
# The model should have two states, recession and expansion. A few months of each state
# are given as known. A label of -1 means unknown. ``new_states=False`` forbids further
# states.

states = pd.Series(-1, X.index)
states["1957-11":"1958-03"] = 0
states["1955-01":"1955-05"] = 1


def fitted(transitions, columns):
    hmm = HCRPHMM(
        emission="gaussian",
        transitions=transitions,
        new_states=False,
        n_burnin=300,
        n_draws=100,
        random_state=0,
    )
    return hmm.fit(train[columns], states=states.iloc[:350])


hmm = fitted(HCRPTransitions(input_features=["index"]), ["growth", "index"])
without = fitted("sticky", ["growth"])
print("mean growth, % a month:", hmm.emission_.means_.ravel().round(2))
gain = frozen_log_likelihood(hmm, test) - frozen_log_likelihood(without, test[["growth"]])
print(f"nats per later month gained by the index: {gain:.3f}")

# %%
# A higher index makes an expansion last longer, and a recession end sooner. No interval
# of a coefficient contains zero.

intervals = parameter_intervals(hmm, 0.9, inputs=[[-1.0], [0.0], [1.0]])
is_staying = intervals["parameter"].str.startswith("stay_")
print(intervals[is_staying].round(2).to_string(index=False))

# %%
# The probability that the state of a month continues into the next month, by the index,
# and the probability of a recession over time.

figure, axes = plt.subplots(2, 1, figsize=(7, 6), layout="constrained")
RegressionDisplay.from_estimator(hmm, output="staying", feature="index", ax=axes[0])
axes[1].plot(train.index.to_timestamp(), hmm.predict_proba(train)["state0"])
axes[1].set(ylabel="P(recession)", ylim=(0, 1))
plt.show()
