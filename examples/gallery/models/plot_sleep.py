"""
Stages of sleep in several nights
=================================

Features of a night of sleep depend on the stage and on the sleeper. Electrodes, skulls
and amplifiers give every night its own level and scale. The stages are common to all
nights. The data are simulated: twelve nights, five stages, four features.
"""

# %%
# A night has 300 epochs. Its offsets are as large as the differences between stages.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import NormalInverseGamma
from skihmm.inspection import StateSequenceDisplay, SubjectDisplay

STAGES = ("wake", "N1", "N2", "N3", "REM")
rng = np.random.default_rng(0)
means = np.array(
    [
        [2.6, 2.2, 1.4, 2.4],
        [1.2, 0.7, 0.2, 0.2],
        [0.0, 0.0, 0.0, -1.0],
        [-2.6, -1.2, -1.9, -1.9],
        [0.7, -1.9, 1.2, -0.7],
    ]
)
transmat = np.array(
    [
        [0.93, 0.06, 0.01, 0.00, 0.00],
        [0.06, 0.80, 0.12, 0.00, 0.02],
        [0.02, 0.01, 0.92, 0.04, 0.01],
        [0.01, 0.00, 0.05, 0.94, 0.00],
        [0.02, 0.02, 0.02, 0.00, 0.94],
    ]
)
night = np.repeat(np.arange(12), 300)
stage = np.zeros(len(night), dtype=int)
for t in range(1, len(night)):
    if night[t] == night[t - 1]:
        stage[t] = rng.choice(5, p=transmat[stage[t - 1]])
offsets, scales = rng.normal(0, 1.2, (12, 4)), np.exp(rng.normal(0, 0.25, (12, 4)))
values = means[stage] + rng.normal(0, 0.6, (len(night), 4))
names = ["delta", "theta", "alpha", "muscle"]
X = pd.DataFrame(offsets[night] + scales[night] * values, columns=names)
X["night"] = [f"night {n + 1}" for n in night]

# %%
# Without the nights, the model has states of single nights. With the nights, the model
# finds the stages.

settings = {"n_burnin": 200, "n_draws": 40, "random_state": 0}
ignored = HCRPHMM(emission="diagonal_gaussian", **settings).fit(X[names], groups=night)
emission = NormalInverseGamma(subject_feature="night", subject_scale=True)
hmm = HCRPHMM(emission=emission, **settings).fit(X, groups=night)
for name, fitted in (("ignored", ignored), ("with nights", hmm)):
    score = adjusted_rand_score(stage, fitted.labels_)
    print(f"{name}: {fitted.n_states_} states, adjusted Rand index {score:.2f}")

# %%
# The first night, and the levels and scales of all nights in the first feature.

first = X[night == 0]
StateSequenceDisplay.from_estimator(hmm, first)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
SubjectDisplay.from_estimator(hmm, ax=axes[0])
SubjectDisplay.from_estimator(hmm, kind="scale", ax=axes[1])
plt.show()
