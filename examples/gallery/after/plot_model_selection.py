"""
Choosing by score: which emission?
==================================

Scores on held-out data compare models of different kinds. Here two columns are strongly
correlated inside every state. An emission with independent columns needs several states
to cover one elongated cloud. The score shows that this model is worse, and the number
of states alone does not.
"""

# %%
# Three states with elongated clouds, and six sequences.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

from skihmm import HCRPHMM
from skihmm.metrics import ParticleFilterScorer

rng = np.random.default_rng(0)
states = np.zeros(1200, dtype=int)
for t in range(1, 1200):
    states[t] = rng.integers(3) if rng.random() < 0.1 else states[t - 1]
centres = np.array([[0.0, 0.0], [4.0, -3.0], [7.0, 4.0]])
slopes = np.array([[1.0, 0.95], [1.0, 0.9], [1.0, -0.9]])
along = rng.normal(scale=1.5, size=1200)
X = centres[states] + along[:, None] * slopes[states] + 0.3 * rng.normal(size=(1200, 2))
groups = np.arange(1200) // 200

# %%
# A grid over emissions and, for each emission, over the strength of the prior mean.
# With metadata routing, ``groups`` reach the splitter, ``fit`` and the scorer. No
# sequence is then cut in two or joined to another sequence.

sklearn.set_config(enable_metadata_routing=True)
search = GridSearchCV(
    HCRPHMM(n_burnin=100, n_draws=20, random_state=0),
    [
        {"emission": [name], "emission__strength": [0.01, 0.1, 1.0]}
        for name in ("diagonal_gaussian", "gaussian")
    ],
    scoring=ParticleFilterScorer(adaptive=False),
    cv=GroupKFold(3),
).fit(X, groups=groups)
sklearn.set_config(enable_metadata_routing=False)

results = pd.DataFrame(search.cv_results_)
columns = ["param_emission", "param_emission__strength", "mean_test_score"]
print(results[[*columns, "std_test_score"]].round(3).to_string(index=False))

# %%
# The states of both emissions, refitted on all data.

colors = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"]
colors += ["#444444", "#999999", "#7B3294", "#A6611A", "#018571"]
fig, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True, layout="constrained")
for ax, name in zip(axes, ("diagonal_gaussian", "gaussian"), strict=True):
    hmm = HCRPHMM(emission=name, n_burnin=100, n_draws=20, random_state=0)
    hmm.fit(X, groups=groups)
    score = results.loc[results["param_emission"] == name, "mean_test_score"].max()
    for k in range(hmm.n_states_):
        mine = hmm.labels_ == k
        ax.plot(*X[mine].T, ".", ms=3, color=colors[k % len(colors)])
    ax.set_title(f"{name}: {hmm.n_states_} states\n{score:.2f} nats per step", fontsize=10)
    ax.set(xlabel="first column")
axes[0].set(ylabel="second column")
plt.show()
