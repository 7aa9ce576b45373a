"""
Perplexity of the last words of Alice against CPU time, all samplers at equal time.

    SKIHMM_DATA=folder python benchmarks/perplexity.py --seconds 60

Every chain starts from a particle filter, or by --init, and reports after 1, 2, 5, ...
CPU seconds of sampling: sweeps made, states, log joint, and the perplexity of the test
words by an adaptive particle filter that continues the training text, averaged inside
the logarithm over (at most 16) draws spread over the second half of the time.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import SAMPLERS, load_alice
from joblib import Parallel, delayed
from sklearn.base import clone

from skihmm import HCRPHMM
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import FranchiseSampler

N_DRAWS = 16


def run(sampler, alice, seconds, seed, init):
    """``[(CPU seconds, sweeps, states, log joint, perplexity)]``."""
    X_train, X_test, n_symbols = alice
    hmm = HCRPHMM(
        sampler,
        HCRPCategorical(categories=[np.arange(n_symbols)]),
        n_burnin=0,
        n_draws=1,
        store_states=False,
        warm_start=True,
        init=init,
        random_state=seed,
    )
    scorer = ParticleFilterScorer(max_draws=1, start="continue")
    marks = [m for m in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if m < seconds]
    reports, densities, used, scored, n_sweeps = [], [], 0.0, 0.0, 0
    thin = 1
    for mark in [*marks, seconds]:
        while used < mark:
            # One draw per fit of about 0.2 s.
            hmm.set_params(thin=thin).fit(X_train)
            spent = float(hmm.draws_.seconds[0, -1])
            n_sweeps += thin
            used += spent
            thin = max(1, int(0.2 * thin / spent))
            if used - scored >= mark / (2 * N_DRAWS):
                densities.append((used, np.exp(scorer.score_samples(hmm, X_test))))
                scored = used
        late = [density for when, density in densities if when > mark / 2]
        perplexity = np.exp(-np.log(np.mean(late, axis=0)).mean())
        draws = hmm.draws_
        reports.append((used, n_sweeps, draws.n_states[0, -1], draws.lp[0, -1], perplexity))
    return reports


def with_trials(sampler, rate):
    """Sampler with `rate` split-merge trials per sweep; the baselines have none."""
    sampler = clone(sampler)
    return sampler.set_params(split_merge_rate=rate) if rate else sampler


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rates", type=float, nargs="*", default=[0])
    parser.add_argument("--init", default="particle_filter", help="or auto")
    parser.add_argument("--samplers", nargs="*", default=list(SAMPLERS), choices=SAMPLERS)
    args = parser.parse_args()
    alice = load_alice()
    if alice is None:
        raise SystemExit("set SKIHMM_DATA to the folder that has alice.txt")
    print("sampler | rate | seed | CPU s | sweeps | s/sweep | K | log joint | perplexity")
    cases = [
        (name, rate, seed)
        for rate in args.rates
        for name in args.samplers
        for seed in range(args.seeds)
        if rate == 0 or isinstance(SAMPLERS[name], FranchiseSampler)
    ]
    for case, reports in zip(
        cases,
        Parallel(n_jobs=-1, return_as="generator")(
            delayed(run)(
                with_trials(SAMPLERS[name], rate),
                alice,
                args.seconds,
                seed,
                args.init,
            )
            for name, rate, seed in cases
        ),
        strict=True,
    ):
        name, rate, seed = case
        for used, n_sweeps, n_states, lp, perplexity in reports:
            print(
                f"{name} | {rate:g} | {seed} | {used:.1f} | {n_sweeps} | "
                f"{used / n_sweeps:.4f} | {n_states} | {lp:.0f} | {perplexity:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
