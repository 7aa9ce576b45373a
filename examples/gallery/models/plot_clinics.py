"""
Cases in twelve clinics
=======================

Twelve clinics report cases of a disease every week.  Epidemics are alike in all clinics.  The
number of people differs between clinics and is known: it is the ``exposure``.  How often a clinic
tests is not known: ``subject_feature`` finds a factor for every clinic.
"""

# %%
# Four simulated years.  An epidemic makes the rate five times as large; each clinic has its own.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import NegativeBinomialRegression
from skihmm.inspection import SubjectDisplay

rng = np.random.default_rng(0)
n_weeks, factors = 208, np.exp(rng.normal(0, 0.8, 12))
rows, epidemics = [], []
for clinic, factor in enumerate(factors):
    is_epidemic, people = False, rng.uniform(300, 3000)
    for week in range(n_weeks):
        if rng.random() < (0.12 if is_epidemic else 0.04):
            is_epidemic = not is_epidemic
        open_days = rng.integers(3, 6)
        exposure = people * open_days / 5
        mean = 0.003 * exposure * factor * (5 if is_epidemic else 1)
        cases = rng.poisson(mean * rng.gamma(10, 0.1))
        rows.append([f"clinic {clinic + 1}", week, cases, exposure])
        epidemics.append(is_epidemic)
table = pd.DataFrame(rows, columns=["clinic", "week", "cases", "exposure"])

# %%
# One model with factors of clinics, one without.

settings = {"n_burnin": 200, "n_draws": 50, "random_state": 0}
columns, groups = ["clinic", "cases", "exposure"], table["clinic"]
emission = NegativeBinomialRegression(exposure="exposure", subject_feature="clinic")
hmm = HCRPHMM(emission=emission, **settings).fit(table[columns], groups=groups)
other = HCRPHMM(emission=NegativeBinomialRegression(exposure="exposure"), **settings)
other.fit(table[columns[1:]], groups=groups)
for name, model in ("with factors", hmm), ("without", other):
    score = adjusted_rand_score(epidemics, model.labels_)
    print(f"{name}: {model.n_states_} states, adjusted Rand index {score:.2f}")

# %%
# The factors, of the mean clinic, with intervals on the scale of logarithms; crosses are the true
# ones.

display = SubjectDisplay.from_estimator(hmm)
logs = np.log(factors) - np.log(factors).mean()
display.ax_.plot(logs, np.arange(12), "x", color="k")
found = hmm.emission_.subject_offsets_[:, 0]
print("largest error of a factor:", round(float(np.exp(np.abs(found - logs).max())), 2))

# %%
# A clinic that was not in the fit: its factor is found by its rows.

new = table[groups == "clinic 1"][columns].assign(clinic="clinic 13")
path = hmm.predict(new)
print(
    "the same weeks as of the first clinic:",
    round(float((path == hmm.predict(table[columns], groups=groups)[:208]).mean()), 2),
)

# %%
# Weeks of the first three clinics, epidemics darker.

figure, axes = plt.subplots(3, 1, figsize=(8, 5), sharex=True, layout="constrained")
labels = hmm.labels_.reshape(12, n_weeks)
rates = (table["cases"] / table["exposure"]).to_numpy().reshape(12, n_weeks)
high = int(np.argmax([rates[labels == k].mean() for k in range(hmm.n_states_)]))
for c, ax in enumerate(axes):
    ax.bar(
        np.arange(n_weeks),
        1000 * rates[c],
        width=1,
        color=np.where(labels[c] == high, "#D55E00", "0.7"),
    )
    ax.set(ylabel="cases per 1,000", title=f"clinic {c + 1}")
plt.show()
