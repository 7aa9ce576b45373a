"""
The Nile: a change of level and a forecast
==========================================

How much water does the Nile carry next year? The volume at Aswan was measured in every
year from 1871 to 1970. A dam and less rain lowered the volume near the turn of the
century. A hidden Markov model infers the number of levels and the time of the change,
and makes forecasts.

The hundred numbers are from G. W. Cobb, Biometrika 65(2), 1978.
"""

# %%
# Few, long regimes: ``transitions="persistent"``.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skihmm import HCRPHMM
from skihmm.inspection import ForecastDisplay
from skihmm.posterior import align, n_states_distribution

volume = """
1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958
1140 1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020
1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040
759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744
749 838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740
"""
years = np.arange(1871, 1971)
index = pd.period_range("1871", periods=100, freq="Y")
X = pd.DataFrame({"volume": [float(value) for value in volume.split()]}, index=index)
hmm = HCRPHMM(
    emission="gaussian", transitions="persistent", n_chains=4, thin=10, random_state=0
).fit(X)
for number, probability in zip(*n_states_distribution(hmm.draws_), strict=True):
    print(f"{number} levels: {probability:.2f}")

# %%
# The share of draws in which a year has the level of 1871. The share drops within a few
# years. The literature also has the change between 1898 and 1899, when the building of
# a dam at Aswan began.

paths = align(hmm.draws_, reference=hmm.labels_)
is_early = (paths == hmm.labels_[0]).mean(axis=0)
fig, axes = plt.subplots(2, 1, figsize=(8, 4.2), sharex=True, layout="constrained")
axes[0].plot(years, X["volume"], "k.-", lw=0.6)
level = np.array([X["volume"][hmm.labels_ == k].mean() for k in range(hmm.n_states_)])
axes[0].step(years, level[hmm.labels_], where="mid", color="#D55E00")
axes[0].set(ylabel="10⁸ cubic metres")
axes[1].fill_between(years, is_early, step="mid", color="#56B4E9")
axes[1].set(ylabel="P(level of 1871)", xlabel="year", ylim=(0, 1))
plt.show()

# %%
# A forecast of twenty years. The bands contain a return to the higher level, or a new
# level. Either change becomes more probable from year to year.

display = ForecastDisplay.from_estimator(hmm, X, n_steps=20, n_past=60)
display.figure_.set_size_inches(8, 3)
plt.show()
