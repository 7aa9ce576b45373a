"""
Words of a book
===============

The words of *Alice's Adventures in Wonderland*, one per step.  States are classes of
words that stand in the same places: nobody told the model what an article is.

This example needs the text: :func:`skihmm.datasets.fetch_alice` says where it is
looked for.
"""

# %%
# The first 12,000 words; every state's distribution over words is drawn around one
# that all states share, so that rare words borrow from it.

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
# Held-out words are predicted as the continuation of the text.  A model that knows
# only how frequent each word is has a perplexity of about 300.

scorer = ParticleFilterScorer(start="continue", max_draws=5)
print(f"perplexity {scorer.perplexity(hmm, X[11_000:]):.0f}")

# %%
# The most probable words of the largest states.

display = EmissionDisplay.from_estimator(hmm, states=range(9), kind="top", n_top=7)
display.figure_.set_size_inches(8, 5)
plt.show()

# %%
# Sentences of the model's own.

words = hmm.sample(60, random_state=1)[0][:, 0]
print(" ".join(map(str, words)))
