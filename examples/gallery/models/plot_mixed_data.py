"""
Mixed data: words, counts and numbers at once
=============================================

A patient's diary: a word for the day, steps walked, hours slept, with many missing
entries. Every column has its own emission, and the columns share the states.
"""

# %%
# Days come in spells: good, bad and ordinary spells.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skihmm import HCRPHMM
from skihmm.emissions import NormalInverseGamma, ProductEmission

rng = np.random.default_rng(0)
spell = np.zeros(500, dtype=int)
for t in range(1, 500):
    spell[t] = rng.integers(3) if rng.random() < 0.08 else spell[t - 1]
words = np.array(["fine", "tired", "awful"])
chances = np.array([[0.8, 0.2, 0.0], [0.3, 0.5, 0.2], [0.0, 0.3, 0.7]])
diary = pd.DataFrame(
    {
        "mood": [words[rng.choice(3, p=chances[k])] for k in spell],
        "walked": rng.poisson(np.array([9, 5, 1])[spell]),
        "slept": rng.normal(np.array([7.5, 7.0, 5.0])[spell], 0.8),
    }
)
complete = diary.copy()
diary = diary.mask(rng.random(diary.shape) < 0.3)
print(diary.head())

# %%
# One emission per group of columns, by the names of the columns.

emission = ProductEmission(
    [
        ("mood", "dirichlet", ["mood"]),
        ("walked", "poisson", ["walked"]),
        ("slept", NormalInverseGamma(), ["slept"]),
    ]
)
hmm = HCRPHMM(emission=emission, n_burnin=300, n_draws=50, random_state=0).fit(diary)
for k in range(hmm.n_states_):
    mine = diary[hmm.labels_ == k]
    shares = mine["mood"].value_counts(normalize=True)
    print(
        f"state {k}, {len(mine)} days: {shares.index[0]} ({shares.iloc[0]:.0%}), "
        f"{mine['walked'].mean():.1f} km, {mine['slept'].mean():.1f} h"
    )

# %%
# Imputations of the missing entries, given all observed entries.

filled = hmm.impute(diary)
lost = diary.isna()
right = (filled["mood"] == complete["mood"])[lost["mood"]].mean()
common = (complete["mood"].mode()[0] == complete["mood"])[lost["mood"]].mean()
print(f"mood: {right:.0%} right (the most frequent word: {common:.0%})")
fig, axes = plt.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained")
for ax, name, unit in zip(axes, ["walked", "slept"], ["km", "h"], strict=True):
    there, guess = complete[name][lost[name]], filled[name][lost[name]].astype(float)
    jitter = rng.normal(scale=0.12, size=len(there)) if name == "walked" else 0
    ax.plot(there + jitter, guess + jitter, ".", color="#0072B2", alpha=0.6)
    ax.axline((there.mean(), there.mean()), slope=1, color="0.5", ls=":")
    error = np.sqrt(((there - guess) ** 2).mean())
    ax.set(xlabel=f"{name} ({unit}), lost", ylabel="imputed")
    ax.set_title(f"error {error:.2f}, of the mean {there.std():.2f}", fontsize=10)
plt.show()
