"""
Comparing samplers
==================

All samplers draw from the same posterior.  They differ in the time that it takes to
get there: here from 20 random states, on letters whose states are hard to split.
"""

# %%
# The letters A B C D B C D E over and over, as in :doc:`plot_a_repeating_sequence`;
# every sampler makes three chains, and the whole way from the start counts.

import matplotlib.pyplot as plt

from skihmm import HCRPHMM
from skihmm.datasets import make_repeating_sequence
from skihmm.inspection import SamplerComparisonDisplay
from skihmm.metrics import mutual_information
from skihmm.samplers import (
    BlockedBeam,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StickBreakingBeam,
)

X, states = make_repeating_sequence(1000)
samplers = {
    "steps": (StepwiseGibbs(), 600),
    "steps, split-merge": (StepwiseGibbs(split_merge_rate=10), 300),
    "beam, split-merge": (BlockedBeam(block_size=10, split_merge_rate=10), 150),
    "direct assignment": (DirectAssignmentGibbs(), 600),
    "stick-breaking beam": (StickBreakingBeam(), 300),
}
fits = {
    name: HCRPHMM(
        sampler,
        init="random",
        n_burnin=0,
        n_draws=n_sweeps,
        thin=1,
        n_chains=3,
        random_state=0,
    ).fit(X)
    for name, (sampler, n_sweeps) in samplers.items()
}

# %%
# Mutual information with the true path, three bits at best; thick lines are medians
# of three chains.  Split-merge moves find in a moment what moves of single steps and
# blocks find late or never.

display = SamplerComparisonDisplay.from_estimators(
    fits,
    score=lambda path: mutual_information(states, path),
    score_name="mutual information (bits)",
    summary="median",
    log_time=True,
)
display.figure_.set_size_inches(8, 4.5)
plt.show()
