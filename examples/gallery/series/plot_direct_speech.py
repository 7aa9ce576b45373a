"""
Does it matter who speaks?  Words with a context
================================================

In *Alice's Adventures in Wonderland* the narrator and the characters use the same words
in another order. Direct speech is marked in the text, so it can be a context of the
transitions, like an action, a treatment or a subject. Does the context help?

This example needs the text. See :func:`skihmm.datasets.fetch_alice` for its location.
"""

# %%
# One row per word of the first four chapters: the word, as a code, and whether the word
# is in direct speech.

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.model_selection import GroupKFold, cross_val_score

from skihmm import HCRPHMM
from skihmm.datasets import fetch_alice
from skihmm.emissions import HCRPCategorical
from skihmm.inspection import EmissionDisplay
from skihmm.metrics import frozen_log_likelihood
from skihmm.transitions import HCRPTransitions

alice = fetch_alice(download_if_missing=False)
first = alice.chapter <= 4
X = np.c_[alice.data, alice.spoken][first]
chapter = alice.chapter[first]
print(f"{len(X)} words, {X[:, 1].mean():.0%} of them in direct speech")

# %%
# Three models. In the first model, narration and speech have similar distributions for
# every state ("state first"). In the second model, narration and speech differ in the
# states they use ("context first"). The third model does not see the context. Chapters
# are sequences, and stay together in cross-validation.

emission = HCRPCategorical(categories=[np.arange(len(alice.vocabulary))])
options = {"emission": emission, "n_burnin": 100, "n_draws": 10, "random_state": 0}
models = {
    "ignored": HCRPHMM(**options),
    "state first": HCRPHMM(transitions=HCRPTransitions(context_features=[1]), **options),
    "context first": HCRPHMM(
        transitions=HCRPTransitions(context_features=[1], context_order="context"),
        **options,
    ),
}
scores = {}
with sklearn.config_context(enable_metadata_routing=True):
    for name, hmm in models.items():
        scores[name] = cross_val_score(
            hmm,
            X[:, :1] if name == "ignored" else X,
            cv=GroupKFold(3),
            scoring=frozen_log_likelihood,
            params={"groups": chapter},
            error_score="raise",
        )
        print(f"{name:14}{scores[name].mean():.3f} nats per word")

# %%
# Chapters differ more than models, so the picture compares the models within each fold.

gain = {name: scores[name] - scores["ignored"] for name in list(scores)[1:]}
fig, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
for row, values in enumerate(gain.values()):
    ax.plot(values, np.full(len(values), row), "o", color="#0072B2", alpha=0.6)
    ax.plot(values.mean(), row, "|", color="#D55E00", ms=22, mew=2)
ax.axvline(0, color="0.6", lw=0.8)
ax.set_yticks(range(len(gain)), gain)
ax.set(ylim=(-0.6, len(gain) - 0.4))
ax.set_xlabel("nats per word better than without the context (line: mean)")
plt.show()

# %%
# States that narration and speech use differently. The numbers are words of each state
# in narration and in speech.

words = np.empty((len(X), 2), dtype=object)
words[:, 0], words[:, 1] = alice.words[first], alice.spoken[first]
transitions = HCRPTransitions(context_features=[1], context_order="context")
hmm = HCRPHMM(transitions=transitions, n_burnin=150, n_draws=10, random_state=0)
hmm.fit(words, groups=chapter)
spoken = alice.spoken[first]
sizes = [np.bincount(hmm.labels_[s], minlength=hmm.n_states_) for s in (~spoken, spoken)]
share = np.array([(size + 1) / size.sum() for size in sizes])
large = np.flatnonzero(np.sum(sizes, axis=0) > 100)
order = large[np.argsort(share[1, large] / share[0, large])]
typical = [*order[:3], *order[-3:]]
for state in typical:
    print(f"state {state}: {sizes[0][state]} narrated words, {sizes[1][state]} spoken")
display = EmissionDisplay.from_estimator(hmm, states=typical, kind="top", n_top=7)
display.figure_.set_size_inches(8, 4)
plt.show()
