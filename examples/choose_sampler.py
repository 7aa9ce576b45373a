"""
Choosing a sampler by score
===========================

Searches over block size and split-merge rate on the words of Alice's Adventures in
Wonderland, and prints mean and standard error of the score and the CPU seconds of every
candidate.  Either chapters are separate sequences (``--split chapters``), or the book is
one sequence whose later parts are predicted from the earlier ones (``--split end``).

The text is read from the folder in the environment variable SKIHMM_DATA (``alice.txt``);
``--download`` fetches it from Project Gutenberg.  The defaults take 95 to 120 seconds of
one core; ``--chapters 4`` takes the beginning only.
"""

import argparse
import sys
import time

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, TimeSeriesSplit

from skihmm import HCRPHMM
from skihmm.datasets import fetch_alice
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import BlockedBeam, StepwiseGibbs


def seconds(estimator, X, y=None):
    """CPU seconds per 1,000 sweeps, towards the end of the chain."""
    return 1000 * estimator.draws_.seconds.mean() / estimator.thin_


parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
parser.add_argument("--split", choices=["chapters", "end"], default="chapters")
parser.add_argument("--chapters", type=int, default=12, help="use this many chapters")
parser.add_argument("--folds", type=int, default=3)
parser.add_argument("--burnin", type=int, default=400, help="sweeps per fit")
parser.add_argument("--draws", type=int, default=10, help="draws per fit, every 5 sweeps")
parser.add_argument("--jobs", type=int, default=1)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--download", action="store_true", help="fetch the text if missing")
args = parser.parse_args()

try:
    alice = fetch_alice(download_if_missing=args.download)
except OSError as error:
    sys.exit(
        f"{error}\nSet SKIHMM_DATA to a folder with alice.txt, the plain text of Project "
        "Gutenberg's ebook 11, or let --download fetch it."
    )
# Every chapter begins with its heading.
chapter = np.cumsum(alice.words == "chapter")
X = alice.data[chapter <= args.chapters]
chapter = chapter[chapter <= args.chapters]
print(f"{len(X)} words in {len(np.unique(chapter))} chapters")

model = HCRPHMM(
    # Vocabulary of the whole book, so that no word of a fold is unknown.
    emission=HCRPCategorical(categories=[np.arange(len(alice.vocabulary))]),
    # A start that leaves much to do for the samplers.
    init="particle_filter",
    n_burnin=args.burnin,
    n_draws=args.draws,
    store_states=False,
    random_state=args.seed,
)
rates = [0, 2, 13]
grid = [
    {"sampler": [StepwiseGibbs()], "sampler__split_merge_rate": rates},
    {
        "sampler": [BlockedBeam()],
        "sampler__block_size": [4, 16],
        "sampler__split_merge_rate": rates,
    },
]
# Frozen scores are exact, without particle noise, and fast.
scorer = ParticleFilterScorer(adaptive=False)
if args.split == "chapters":
    fit_params = {"groups": chapter}
    cv = GroupKFold(args.folds)
else:
    fit_params = {}
    cv = TimeSeriesSplit(args.folds, test_size=1000)
    scorer.set_params(start="continue")

started = time.process_time()
# With metadata routing the chapters reach fit and score as well as the splitter.
with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        model,
        grid,
        scoring={"score": scorer, "seconds": seconds},
        cv=cv,
        refit=False,
        n_jobs=args.jobs,
        error_score="raise",
    ).fit(X, **fit_params)

results = search.cv_results_
scores = np.array([results[f"split{i}_test_score"] for i in range(args.folds)])
errors = scores.std(axis=0, ddof=1) / np.sqrt(args.folds)
# Folds differ more than candidates: compare candidates within each fold.
differences = scores - scores[:, [np.argmax(scores.mean(axis=0))]]
paired = differences.std(axis=0, ddof=1) / np.sqrt(args.folds)

print("\n| sampler | score, nats | behind the best | perplexity | CPU s per 1,000 sweeps |")
print("|---|---|---|---|---|")
for i in np.argsort(-scores.mean(axis=0)):
    parameters = results["params"][i]
    kind = type(parameters["sampler"])
    nested = {
        name.removeprefix("sampler__"): value
        for name, value in parameters.items()
        if name != "sampler"
    }
    mean = scores[:, i].mean()
    print(
        f"| `{kind(**nested)!r}` | {mean:.3f} ± {errors[i]:.3f} "
        f"| {differences[:, i].mean():.3f} ± {paired[i]:.3f} "
        f"| {np.exp(-mean):.1f} | {results['mean_test_seconds'][i]:.1f} |"
    )
print(f"\n{time.process_time() - started:.0f} CPU seconds in all")
