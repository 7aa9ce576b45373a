"""
Strategies of decisions: a GLM-HMM with an inferred number of states
====================================================================

A mouse turns a wheel to the left or to the right, by a stimulus on one side. Mice
change their strategy: an engaged mouse follows the stimulus, and at other times a mouse
prefers a side. Ashwood et al. (2022) fitted three strategies. Here the states are
logistic regressions of the choice on the stimulus, the last choice and the last
rewarded side. The model infers the number of states. The data are simulated, because
the data of the mice are not part of this package.
"""

# %%
# Sessions of 500 trials by three strategies. The first strategy is engaged.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import BernoulliRegression
from skihmm.inspection import RegressionDisplay, StateSequenceDisplay
from skihmm.metrics import frozen_log_likelihood

rng = np.random.default_rng(0)
inputs = ["stimulus", "previous choice", "previous reward"]
weights = np.array([[2.6, 0.2, 0.1], [0.8, 0.5, 0.2], [0.7, 0.6, 0.1]])
biases = np.array([-0.1, -1.8, 1.7])


def simulate(n_sessions):
    rows, strategies = [], []
    for session in range(n_sessions):
        strategy, choice, reward = rng.integers(3), 0, 0
        for _ in range(500):
            if rng.random() < 0.01:
                strategy = rng.integers(3)
            stimulus = rng.normal()
            x = [stimulus, choice, reward]
            log_odds = weights[strategy] @ x + biases[strategy]
            is_right = rng.random() < 1 / (1 + np.exp(-log_odds))
            rows.append([session, int(is_right), *x])
            choice = 2 * is_right - 1
            reward = int(np.sign(stimulus))
            strategies.append(strategy)
    return pd.DataFrame(rows, columns=["session", "right", *inputs]), np.array(strategies)


train, strategies = simulate(6)
test, _ = simulate(4)

# %%
# Sessions are sequences. The column of choices is observed, and all other columns are
# inputs.

emission = BernoulliRegression(input_features=inputs)
hmm = HCRPHMM(emission=emission, n_burnin=200, n_draws=50, random_state=0)
columns = ["right", *inputs]
hmm.fit(train[columns], groups=train["session"])
labels = hmm.predict(train[columns], groups=train["session"])
print("states:", hmm.n_states_)
print("agreement with the truth:", round(adjusted_rand_score(strategies, labels), 2))

# %%
# Coefficients with two posterior standard deviations, and psychometric curves: the
# probability of a turn to the right as a function of the stimulus.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
RegressionDisplay.from_estimator(hmm, ax=axes[0])
RegressionDisplay.from_estimator(hmm, feature="stimulus", ax=axes[1])

# %%
# Strategies in the first session.

first = train[train["session"] == 0].reset_index(drop=True)
StateSequenceDisplay.from_estimator(hmm, first[columns])

# %%
# New sessions, in nats per trial. The comparison is one logistic regression for all
# trials, without strategies.

score = frozen_log_likelihood(hmm, test[columns], groups=test["session"])
print(f"with strategies {score:.3f}")

model = LogisticRegression().fit(train[inputs], train["right"])
chances = model.predict_log_proba(test[inputs])
print(f"one regression  {chances[np.arange(len(test)), test['right']].mean():.3f}")
