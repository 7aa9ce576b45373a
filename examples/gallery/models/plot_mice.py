"""
Ten mice, their biases and their strategies
===========================================

Mice choose between left and right by a stimulus.  All of them use the same strategies, but
every mouse has a bias to one side, whatever its strategy.  A model without subjects makes
strategies of biases; ``subject_feature`` gives every mouse an offset of the log odds.  How
long a strategy lasts depends on the reward of late: *inputs of staying* beside it.
"""

# %%
# Ten simulated mice, two sessions of 150 trials each.  There are three strategies: to follow
# the stimulus, to prefer the left, and to repeat a choice that was rewarded.  The first one
# lasts while reward is usual, the second one while it is rare.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import BernoulliRegression
from skihmm.inspection import RegressionDisplay, SubjectDisplay
from skihmm.transitions import HCRPTransitions

rng = np.random.default_rng(0)
inputs = ["stimulus", "choice before", "rewarded choice"]
weights = np.array([[4.0, 0.1, 0.0], [0.9, 0.3, 0.0], [0.6, 0.0, 2.5]])
intercepts = np.array([0.0, -2.2, 0.0])
stay, slope = np.array([3.2, 2.6, 2.6]), np.array([1.5, -0.5, 0.0])
biases = rng.normal(0, 1.0, 10)

rows, strategies = [], []
for mouse in range(10):
    for session in range(2):
        strategy, before, rewarded, late = rng.integers(3), 0, 0, 0.6
        for trial in range(150):
            recent = (late - 0.65) / 0.15
            if trial and rng.random() > expit(stay[strategy] + slope[strategy] * recent):
                strategy = (strategy + rng.integers(1, 3)) % 3
            stimulus = rng.choice([-1, -0.5, -0.25, 0.25, 0.5, 1])
            x = np.array([stimulus, before, rewarded])
            right = rng.random() < expit(
                weights[strategy] @ x + intercepts[strategy] + biases[mouse]
            )
            reward = int(right == (stimulus > 0))
            rows.append([f"m{mouse}", 2 * mouse + session, int(right), *x, recent])
            strategies.append(strategy)
            before = 2 * int(right) - 1
            rewarded, late = before * reward, 0.9 * late + 0.1 * reward
trials = pd.DataFrame(rows, columns=["mouse", "session", "right", *inputs, "reward"])

# %%
# The mouse and the reward are columns of X, which are given.

transitions = HCRPTransitions(input_features=["reward"])
emission = BernoulliRegression(input_features=inputs, subject_feature="mouse")
settings = {"transitions": transitions, "n_burnin": 100, "n_draws": 50, "random_state": 0}
columns, groups = ["right", *inputs, "reward"], trials["session"]
hmm = HCRPHMM(emission=emission, **settings).fit(trials[["mouse", *columns]], groups=groups)
other = HCRPHMM(emission=BernoulliRegression(input_features=inputs), **settings)
other.fit(trials[columns], groups=groups)
n_found, scores = [], []
for name, model, X in [
    ("with biases", hmm, trials[["mouse", *columns]]),
    ("without", other, trials[columns]),
]:
    found = np.asarray(model.predict_proba(X, groups=groups)).argmax(axis=1)
    scores.append(adjusted_rand_score(strategies, found))
    n_found.append((np.bincount(found) > 0.05 * len(found)).sum())
    print(f"{name}: {n_found[-1]} strategies of a twentieth of the trials or more,", end=" ")
    print(f"adjusted Rand index {scores[-1]:.2f}")
# Without the mice, biases are strategies.
assert n_found[0] == 3 < n_found[1]
assert scores[0] > scores[1]

# %%
# Left: the biases, in log odds, with intervals. Crosses are true biases. Middle: the
# coefficients of the strategies. Right: rewards of the last trials end a strategy.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
SubjectDisplay.from_estimator(hmm, ax=axes[0])
axes[0].plot(biases - biases.mean(), np.arange(10), "x", color="k")
RegressionDisplay.from_estimator(hmm, ax=axes[1])
RegressionDisplay.from_estimator(hmm, output="staying", feature="reward", ax=axes[2])
error = hmm.emission_.subject_offsets_[:, 0] - biases + biases.mean()
print(f"root mean square error of the biases: {np.sqrt((error**2).mean()):.2f}")
plt.show()
