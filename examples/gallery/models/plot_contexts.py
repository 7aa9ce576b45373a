"""
Actions that decide where a state leads
=======================================

A marker on a ring of six places is seen with noise. A known action at every step moves
the marker forward, back or not at all. ``context_features`` names the column of the
actions. The transitions then depend on the actions, and the emission does not see the
actions.
"""

# %%
# The data: the place where the marker is seen, and the action of the step.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skihmm import HCRPHMM
from skihmm.inspection import TransitionMatrixDisplay
from skihmm.metrics import frozen_log_likelihood
from skihmm.transitions import HCRPTransitions

rng = np.random.default_rng(0)
moves = {"stay": 0, "forward": 1, "back": -1}
action = rng.choice(list(moves), 900)
place = np.cumsum([moves[a] for a in action]) % 6
seen = np.where(rng.random(900) < 0.8, place, rng.integers(6, size=900))
X = pd.DataFrame({"seen": seen, "action": action})
X.head()

# %%
# Fits to the first 600 steps, with and without the actions, and scores on the next 300
# steps.

train, test = X[:600], X[600:].reset_index(drop=True)
options = {"n_burnin": 200, "n_draws": 30, "random_state": 0}
transitions = HCRPTransitions(context_features=["action"])
with_actions = HCRPHMM(transitions=transitions, **options).fit(train)
without = HCRPHMM(**options).fit(train[["seen"]])
perplexity = np.exp(-frozen_log_likelihood(with_actions, test))
print(f"perplexity with actions    {perplexity:.2f}")
perplexity = np.exp(-frozen_log_likelihood(without, test[["seen"]]))
print(f"perplexity without actions {perplexity:.2f}")
print("states", with_actions.n_states_, "and", without.n_states_)

# %%
# Every action has its transition probabilities. The states are in the order of the
# ring, as "forward" goes round. The concentration ``context_alpha`` is small, so the
# actions matter.

ring = TransitionMatrixDisplay.from_estimator(with_actions, context="forward", order="cycle").order_
plt.close()
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for name, ax in zip(moves, axes, strict=True):
    TransitionMatrixDisplay.from_estimator(
        with_actions, context=name, order=ring, colorbar=False, ax=ax
    )
    ax.set_title(name)
print("context_alpha", with_actions.draws_.context_alpha.mean().round(2))
