"""
Comparing samplers
==================

All samplers draw from the same posterior. Samplers differ in the time to convergence.
Here all chains start from the path of a particle filter, on letters whose states are
hard to split.
"""

# %%
# The letters A B C D B C D E repeated, as in :doc:`plot_a_repeating_sequence`. Every
# sampler makes three chains of about a second, without a burn-in.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.datasets import make_repeating_sequence
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
# Mutual information with the true path, three bits at best, against the CPU seconds of
# the sweeps of one chain. Thick lines are medians over the chains of their latest
# draws. One state per letter is 2.25 bits, where samplers without split-merge moves
# stay.

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for i, (name, hmm) in enumerate(fits.items()):
    seconds = np.cumsum(hmm.draws_.seconds, axis=1)
    scores = np.array(
        [[mutual_information(states, path) for path in paths] for paths in hmm.draws_.states]
    )
    ax.plot(seconds.T, scores.T, color=f"C{i}", linewidth=0.7, alpha=0.5)
    # From when the last chain begins until the first one ends.
    times = np.geomspace(seconds[:, 0].max(), seconds[:, -1].min(), 200)
    latest = [
        chain_scores[np.searchsorted(chain_seconds, times, "right") - 1]
        for chain_seconds, chain_scores in zip(seconds, scores, strict=True)
    ]
    ax.plot(times, np.median(latest, axis=0), color=f"C{i}", linewidth=2.5, label=name)
ax.set(xscale="log", xlabel="CPU seconds per chain", ylabel="mutual information (bits)")
figure.legend(fontsize="small", loc="outside right upper")
plt.show()
