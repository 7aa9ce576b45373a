"""
One letter, two states
======================

The letters A B C D B C D E, repeated. B, C and D occur twice in a period with different
successors, so eight states predict the next letter, and five states do not. This is
"Sequence 1" of arXiv 1106.0474, on which samplers that move one step at a time get
stuck.
"""

# %%
# Five hundred letters.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.datasets import make_repeating_sequence
from skihmm.inspection import TraceDisplay, TransitionMatrixDisplay
from skihmm.metrics import mutual_information
from skihmm.samplers import StepwiseGibbs

X, states = make_repeating_sequence(500)
letters = np.array(list("ABCDE"), dtype=object)[X]
print("".join(letters[:24, 0]))

# %%
# To get from five states to eight, a sampler has to split a state into two states with
# the same emissions and different successors. Single steps rarely make such a split.
# Split-merge moves do, with thirteen trials per sweep here.

hmm = HCRPHMM(
    sampler=StepwiseGibbs(split_merge_rate=13),
    n_burnin=0,
    n_draws=300,
    thin=40,
    n_chains=3,
    n_jobs=2,
    random_state=0,
).fit(letters)

# %%
# The traces of three chains, from the paths of a particle filter. Each jump of the log
# joint probability is a successful split. The circle is the selected draw, which
# minimises the mean distance to all draws. The graph below shows the selected draw.

display = TraceDisplay.from_estimator(hmm, x="seconds", quantities=["lp", "n_states"])
display.figure_.set_size_inches(8, 4.5)
plt.show()

# %%
# At the end the chains have found all eight states of the period: three of three bits.

bits = [mutual_information(states, path) for path in hmm.draws_.states[:, -1]]
print("mutual information in the last draws:", np.round(bits, 2))

# %%
# The graph of the transitions is one cycle.

display = TransitionMatrixDisplay.from_estimator(hmm, kind="graph", order="cycle", threshold=0.1)
display.figure_.set_size_inches(5, 5)
plt.show()

# %%
# Emissions of the eight states. B, C and D have two states each.

for k in range(hmm.n_states_):
    shown, counts = np.unique(letters[hmm.labels_ == k], return_counts=True)
    print(k, dict(zip(shown, counts.tolist(), strict=True)))
