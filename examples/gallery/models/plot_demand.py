"""
Electricity demand by temperature
=================================

Demand rises with heat in summer, where there is air conditioning, and with cold in
winter, where electricity heats houses. On holidays the level is lower. A switching
regression finds the regimes and their slopes: the state of a day is a linear regression
of the demand on the temperature. The data are simulated, four years of days.
"""

# %%
# The regimes are seasons, and a few weeks of holidays.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.inspection import RegressionDisplay

rng = np.random.default_rng(0)
day = np.arange(4 * 365)
season = -np.cos(2 * np.pi * day / 365)
temperature = 14 + 11 * season + rng.normal(scale=3, size=len(day))
slope = np.where(season > 0.3, 1.4, np.where(season < -0.3, -0.9, 0.0))
level = np.where(season > 0.3, 18, np.where(season < -0.3, 52, 40))
is_holiday = day % 365 < 14
demand = level + slope * temperature - 12 * is_holiday + rng.normal(scale=2, size=len(day))
X = pd.DataFrame({"demand": demand, "temperature": temperature})

# %%
# The model infers the number of regimes.

emission = AutoregressiveNormal(order=0, input_features=["temperature"])
hmm = HCRPHMM(emission=emission, n_burnin=300, n_draws=50, random_state=0).fit(X)
for k, (b, c) in enumerate(
    zip(hmm.emission_.coefficients_[:, 0, 0], hmm.emission_.intercepts_[:, 0], strict=True)
):
    n_days = (hmm.labels_ == k).sum()
    print(f"state {k}: demand = {c:.1f} + {b:.2f} temperature, {n_days} days")

# %%
# Days by their state, and the regressions.

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
display = RegressionDisplay.from_estimator(hmm, feature="temperature", ax=ax)
for k, line in zip(display.states_, display.lines_, strict=True):
    mine = hmm.labels_ == k
    ax.scatter(temperature[mine], demand[mine], s=6, color=line.get_color(), alpha=0.5)
ax.set_ylim(demand.min() - 5, demand.max() + 5)

# %%
# A forecast needs the temperatures of the next days.

coming = hmm.predict_next(X, 3, inputs=[[2.0], [5.0], [9.0]])
print(coming.mean().round(1).ravel())
