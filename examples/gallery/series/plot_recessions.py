"""
Recessions: when did the economy shrink?
========================================

Hamilton (1989) let the growth of an economy switch between two regimes. The dates of
the switches were close to the recessions of the National Bureau of Economic Research
(NBER). Here the number of regimes is not given.

The data are Hamilton's: quarterly growth of the real gross national product of the
United States from the second quarter of 1951 to the end of 1984, in per cent.
"""

# %%
# The NBER dates the last quarter before a recession, and the last quarter of a
# recession.

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

from skihmm import HCRPHMM
from skihmm.posterior import draw_parameters

per_cent = """
2.59 2.20 0.46 0.97 -0.24 0.90 2.05 1.73 0.94 -0.46 -0.81 -1.40 -0.40 1.19 1.46 2.12
1.09 1.32 0.87 -0.20 0.45 0.07 1.10 0.82 -0.06 0.58 -1.56 -2.05 0.54 2.34 2.34 1.23 1.89
-0.46 0.85 1.70 -0.29 0.10 -0.86 1.03 1.24 1.42 2.22 1.30 1.04 0.93 -0.17 1.34 1.38 1.73
0.72 2.21 0.85 1.00 0.43 2.14 1.44 1.58 2.27 1.96 0.26 1.02 0.49 0.56 0.60 1.43 0.56
1.15 1.69 0.77 -0.10 1.40 0.14 0.55 -0.40 -0.62 -0.09 1.21 -0.91 2.65 -0.01 0.51 0.00
2.17 1.93 1.04 1.86 2.32 0.26 -0.10 0.89 -0.56 0.28 -1.31 -0.88 -1.97 1.01 1.68 1.38
1.86 0.44 0.41 0.99 1.36 1.60 1.99 -0.26 0.88 3.11 0.85 1.23 0.00 -0.09 0.90 -0.19 1.00
-2.39 0.07 1.26 1.92 -0.33 0.44 -1.41 -1.52 0.30 -0.80 0.15 0.99 2.13 1.34 1.62 2.71
1.24 0.51 0.15
"""
growth = np.array(per_cent.split(), dtype=float)
quarters = 1951.25 + np.arange(len(growth)) / 4
recessions = [
    (1953.25, 1954.25),
    (1957.5, 1958.25),
    (1960.25, 1961.0),
    (1969.75, 1970.75),
    (1973.75, 1975.0),
    (1980.0, 1980.5),
    (1981.5, 1982.75),
]
is_dated = np.any([(a < quarters) & (quarters <= b) for a, b in recessions], axis=0)

# %%
# A recession lasts for some quarters, so states have a probability to stay
# (``"sticky"``). A quarter is weak in a draw if its state grows by less than one per cent
# a year. The probability of a recession is the share of draws in which a quarter is weak.
# The probability needs neither the number of states nor their labels.

X = growth[:, None]


def probability(transitions):
    """Share of the draws in which the state of a quarter grows by less than 1/4 %."""
    hmm = HCRPHMM(emission="gaussian", transitions=transitions, n_chains=4, random_state=0).fit(X)
    n_chains, n_draws = hmm.draws_.shape
    draws = [draw_parameters(hmm, (c, d)) for c in range(n_chains) for d in range(n_draws)]
    is_weak = [draw.emission_.means_[draw.states, 0] < 0.25 for draw in draws]
    print(f"{hmm.n_states_} states in the selected draw")
    return np.mean(is_weak, axis=0)


recession = probability("sticky")
print(f"agreement with the NBER: {np.mean((recession > 0.5) == is_dated):.2f}")

# %%
# The penalty of ``"persistent"`` for every change of state is made for regimes of many
# rows. Here the penalty outweighs the information of 135 quarters. The fit has one
# state, hence no recession, which is right in the quarters without a recession.

never = probability("persistent")
print(f"agreement with the NBER: {np.mean((never > 0.5) == is_dated):.2f}")

# %%
# statsmodels gets the number of regimes: two, here with a common variance.

model = sm.tsa.MarkovRegression(growth, k_regimes=2)
result = model.fit()
means = result.params[[name.startswith("const") for name in model.param_names]]
smoothed = result.smoothed_marginal_probabilities[:, means.argmin()]
print(f"agreement with the NBER: {np.mean((smoothed > 0.5) == is_dated):.2f}")

# %%
# The probabilities, with the recessions of the NBER in grey.

fig, axes = plt.subplots(3, 1, figsize=(8, 4.5), sharex=True, layout="constrained")
panels = {"growth, %": growth, "skihmm": recession, "statsmodels": smoothed}
for ax, (name, values) in zip(axes, panels.items(), strict=True):
    for first, last in recessions:
        ax.axvspan(first + 0.125, last + 0.125, color="0.85", lw=0)
    ax.plot(quarters, values, "k-", lw=0.8)
    ax.set(ylabel=name)
axes[-1].set(xlabel="year", xlim=(quarters[0], quarters[-1]))
plt.show()
