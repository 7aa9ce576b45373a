"""
Comparing samplers
==================

All samplers draw from the same posterior.  They differ in the time to convergence: here
from the path of a particle filter, on letters whose states are hard to split.
"""

# %%
# The letters A B C D B C D E repeated, as in :doc:`plot_a_repeating_sequence`; every
# sampler makes three chains of about a second, without a burn-in.

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

X, states = make_repeating_sequence(500)
samplers = {  # with the number of sweeps per draw
    "steps": (StepwiseGibbs(), 200),
    "steps, split-merge": (StepwiseGibbs(split_merge_rate=13), 25),
    "beam, split-merge": (BlockedBeam(block_size=10, split_merge_rate=13), 20),
    "direct assignment": (DirectAssignmentGibbs(), 150),
    "stick-breaking beam": (StickBreakingBeam(), 150),
}
fits = {
    name: HCRPHMM(
        sampler,
        n_burnin=0,
        n_draws=200,
        thin=thin,
        n_chains=3,
        n_jobs=2,
        random_state=0,
    ).fit(X)
    for name, (sampler, thin) in samplers.items()
}

# %%
# Mutual information with the true path, three bits at best; thick lines are medians of
# three chains.  One state per letter is 2.25 bits, where samplers without split-merge
# moves stay.

display = SamplerComparisonDisplay.from_estimators(
    fits,
    score=lambda path: mutual_information(states, path),
    score_name="mutual information (bits)",
    summary="median",
    log_time=True,
)
display.figure_.set_size_inches(8, 4.5)
plt.show()
