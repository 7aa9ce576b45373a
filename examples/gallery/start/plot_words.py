"""
Words of a book
===============

The words of *Alice's Adventures in Wonderland*, one per step. States become classes of
words in the same positions, such as articles.

This example needs the text. See :func:`skihmm.datasets.fetch_alice` for its location.
"""

# %%
# The first 12,000 words. The states share a base distribution over words, which gives
# rare words their probability.

import matplotlib.pyplot as plt
import numpy as np

from skihmm import HCRPHMM
from skihmm.datasets import fetch_alice
from skihmm.inspection import EmissionDisplay
from skihmm.metrics import ParticleFilterScorer

X = fetch_alice(download_if_missing=False).words[:12_000, None]
hmm = HCRPHMM(n_burnin=150, n_draws=10, random_state=0).fit(X[:11_000])
print(f"{hmm.n_states_} states, the largest of {np.bincount(hmm.labels_)[:8]} words")

# %%
# The model predicts held-out words as the continuation of the text. The frequencies of
# the words alone have a perplexity of about 300.

scorer = ParticleFilterScorer(start="continue", max_draws=5)
print(f"perplexity {scorer.perplexity(hmm, X[11_000:]):.0f}")

# %%
# The most probable words of the largest states.

display = EmissionDisplay.from_estimator(hmm, states=range(9), kind="top", n_top=7)
display.figure_.set_size_inches(8, 5)
plt.show()

# %%
# Simulated sentences.

words = hmm.sample(60, random_state=1)[0][:, 0]
print(" ".join(map(str, words)))
