"""
One letter, two meanings
========================

The letters A B C D B C D E, over and over.  B, C and D stand twice in a period and
are followed by different letters, so eight states say what comes next and five do
not.  This is "Sequence 1" of arXiv 1106.0474, on which samplers that move one step at
a time get stuck.
"""

# %%
# Five hundred letters, of which the model sees no more than that.

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
# To go from five states to eight, a state has to be split into two that look the same but
# for what follows.  Single steps hardly ever begin such a split; split-merge moves do,
# thirteen trials per sweep here.

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
# The way of three chains from where a particle filter starts them: each step of the log
# joint probability is a state that was split at the right place.  The circle is the
# selected draw, the one whose states differ least from all draws on average; it is the
# one that the graph below shows.

display = TraceDisplay.from_estimator(hmm, x="seconds", quantities=["lp", "n_states"])
display.figure_.set_size_inches(8, 4.5)
plt.show()

# %%
# In the end the eight states of the period are found: three bits, of three.

bits = [mutual_information(states, path) for path in hmm.draws_.states[:, -1]]
print("mutual information in the last draws:", np.round(bits, 2))

# %%
# A graph of the transitions: one round trip.

display = TransitionMatrixDisplay.from_estimator(
    hmm, kind="graph", order="cycle", threshold=0.1
)
display.figure_.set_size_inches(5, 5)
plt.show()

# %%
# What the eight states emit: B, C and D each have two.

for k in range(hmm.n_states_):
    shown, counts = np.unique(letters[hmm.labels_ == k], return_counts=True)
    print(k, dict(zip(shown, counts.tolist(), strict=True)))
