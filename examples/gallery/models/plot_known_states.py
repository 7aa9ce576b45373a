"""
Known states for some steps
===========================

A model without labels finds states without names. A few labels are enough to name the
states: ``fit(X, states=...)`` samples the posterior given known states of some steps.
"""

# %%
# Three states. The first two have similar observations but different durations.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM

rng = np.random.default_rng(0)
transmat = np.array([[0.97, 0.02, 0.01], [0.3, 0.6, 0.1], [0.05, 0.05, 0.9]])
truth = np.zeros(1000, dtype=int)
for t in range(1, 1000):
    truth[t] = rng.choice(3, p=transmat[truth[t - 1]])
X = rng.normal(np.array([0.0, 1.2, 6.0])[truth])[:, None]

# %%
# More and more steps get a label, at random. ``labels_`` uses the numbers of
# ``states``, so accuracy needs no matching. States without a label count as wrong. The
# number of states is right without labels, too.

shares = [0.0, 0.01, 0.03, 0.1, 0.3]
accuracy = []
for share in shares:
    states = np.where(rng.random(1000) < share, truth, -1)
    hmm = HCRPHMM(emission="diagonal_gaussian", n_burnin=300, n_draws=20, random_state=0)
    hmm.fit(X, states=states)
    free = states < 0
    named = hmm.labels_[free] < len(hmm.known_states_)
    right = np.zeros(free.sum(), dtype=bool)
    right[named] = hmm.known_states_[hmm.labels_[free][named]] == truth[free][named]
    accuracy.append(right.mean())
    print(f"{share:4.0%} known: {hmm.n_states_} states, {accuracy[-1]:.2f} of others right")

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot([f"{share:.0%}" for share in shares], accuracy, "o-", color="#0072B2")
ax.set(
    xlabel="steps whose state is known",
    ylabel="share of other steps that are right",
    ylim=(0, 1),
)
ax.grid(axis="y", alpha=0.3)
plt.show()
