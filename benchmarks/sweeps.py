"""
Seconds per sweep, with the quality of the result beside every time.

    python benchmarks/sweeps.py                        # Sequence 2
    SKIHMM_DATA=folder python benchmarks/sweeps.py     # and the words of Alice

``--sampler`` chooses one of stepwise, exact, slice, blocked, beam (blocks of 10 steps)
and the baselines direct, sb_gibbs, sb_beam; the default is all.  At equilibrium every
sampler also runs for ``--mixing`` CPU seconds, for the effective samples per second of
the number of states K and of the log joint.
``--against COMMAND`` times another program alternately, from the same state, and
prints the ratio round by round.  In COMMAND, {ids} is replaced by a file with one symbol
per line, {states} by one with the state of every step, {sweeps} by the number of sweeps,
{sampler} by the sampler's name (NAMES_THERE); the program has to print
``secs_per_sweep=NUMBER``.  Machines are noisy: only ratios from one run mean anything.
``--states 8 70 400`` prints only states, transitions, sampler and ns/step on simulations.
"""

from __future__ import annotations

import argparse
import re
import shlex
import statistics
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import common
import numpy as np
from common import SAMPLERS, effective_samples, load_alice, start_chain, time_sweeps

from skihmm._data.contexts import StepContexts
from skihmm._fitting.chain import begin_chain
from skihmm.datasets import make_automaton_sequence
from skihmm.transitions import HCRPTransitions

NAMES_THERE = {"stepwise": "gibbs", "exact": "gibbs"}
BASELINES = ("direct", "sb_gibbs", "sb_beam")  # the other program has none of these
TRANSITIONS = {
    "plain": HCRPTransitions(),
    "sticky": HCRPTransitions(expected_dwell=10),
    "state first": HCRPTransitions(context_features=[1]),
    "context first": HCRPTransitions(context_features=[1], context_order="context"),
}


def time_other(command, codes, states, n_sweeps):
    """Seconds per sweep of another program from the same state."""
    with tempfile.TemporaryDirectory() as folder:
        ids, path = Path(folder, "ids.txt"), Path(folder, "states.txt")
        np.savetxt(ids, codes, fmt="%d")
        np.savetxt(path, states, fmt="%d")
        words = shlex.split(command.format(ids=ids, states=path, sweeps=n_sweeps))
        printed = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(re.search(r"secs_per_sweep=(\S+)", printed.stdout)[1])


def time_transitions(n_states, chosen, n_rounds, seed, n_steps=25_000):
    """Print nanoseconds per step; three contexts have rows around their state's."""
    rng = np.random.default_rng(seed)
    contexts, path = rng.integers(3, size=(n_steps, 1)), np.zeros(n_steps, dtype=int)
    means = rng.dirichlet(np.full(n_states, 1.0), n_states)
    rows = [[rng.dirichlet(4 * row + 1e-3) for row in means] for _ in range(3)]
    for t in range(1, n_steps):
        path[t] = rng.choice(n_states, p=rows[contexts[t, 0]][path[t - 1]])
    symbols = rng.dirichlet(np.full(10 * n_states, 0.01), n_states)
    codes = np.array([[rng.choice(10 * n_states, p=symbols[k])] for k in path])
    for name, transitions in TRANSITIONS.items():
        sequences, settings = common.make_model(codes, 10 * n_states, path)
        settings = replace(settings, transitions=transitions)
        if transitions.context_features is not None:
            own = StepContexts.of_fit(contexts, int(transitions.context_order != "state"))
            sequences = replace(sequences, contexts=own)
        record = begin_chain(sequences, settings, np.random.SeedSequence(seed)).record()
        for sampler in [s for s in chosen if name == "plain" or s not in BASELINES]:
            args = SAMPLERS[sampler], record, sequences, settings, 5
            ns = 1e9 / n_steps * min(time_sweeps(*args)[0] for _ in range(n_rounds))
            print(f"{n_states} | {name} | {sampler} | {ns:.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--against", help="command of another program, see above")
    parser.add_argument("--sampler", choices=[*SAMPLERS, "all"], default="all")
    parser.add_argument("--mixing", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--states", type=int, nargs="+", help="see above")
    args = parser.parse_args()
    chosen = SAMPLERS if args.sampler == "all" else [args.sampler]
    if args.states:
        for n_states in args.states:
            time_transitions(n_states, chosen, args.rounds, args.seed)
        return

    X, _ = make_automaton_sequence(2500, random_state=args.seed)
    # name, symbols, vocabulary, initial states, sweeps before, sweeps timed here and
    # there, rounds (a sweep of the other program may take minutes)
    r = args.rounds
    cases = [("Sequence 2", X, 15, "particle_filter", 500, 200, 200, r)]
    alice = load_alice()
    if alice is not None:
        X, _, n_symbols = alice
        cases += [
            ("Alice, equilibrium", X, n_symbols, "particle_filter", 4000, 20, 5, r),
            ("Alice, from 350 states", X, n_symbols, 350, 60, 20, 5, r),
            ("Alice, from 3000 states", X, n_symbols, 3000, 20, 10, 1, 1),
        ]
    print(
        "case | sampler | K | s/sweep | ns/step | accepted | ESS/s of K, of log joint | "
        "log joint | MB | ratio"
    )
    for name, codes, n_symbols, init, before, n_ours, n_theirs, n_rounds in cases:
        chain, sequences, settings = start_chain(codes, n_symbols, init, before, args.seed)
        record = chain.record()
        for sampler in chosen:
            ours, ratios = [], []
            for _ in range(n_rounds):
                seconds, accepted, after = time_sweeps(
                    SAMPLERS[sampler], record, sequences, settings, n_ours
                )
                ours.append(seconds)
                if args.against and sampler not in BASELINES:
                    command = args.against.replace("{sampler}", NAMES_THERE.get(sampler, sampler))
                    states = record["arrays"]["states"]
                    ratios.append(time_other(command, codes, states, n_theirs) / seconds)
            seconds = statistics.median(ours)
            ratio = "-"
            if ratios:
                middle, span = statistics.median(ratios), (min(ratios), max(ratios))
                ratio = f"{middle:.1f} ({span[0]:.1f} to {span[1]:.1f})"
            mixing = "-"
            if init == "particle_filter" and args.mixing > 0:
                sizes = effective_samples(
                    SAMPLERS[sampler], record, sequences, settings, args.mixing
                )
                mixing = ", ".join(f"{value:.2f}" for value in sizes)
            state = after.state
            n_bytes = state.n_bytes()
            if hasattr(after.kernel, "n_bytes"):
                n_bytes += after.kernel.n_bytes()
            print(
                f"{name} | {sampler} | {state.n_states} | {seconds:.5f} | "
                f"{seconds / len(codes) * 1e9:.0f} | {accepted:.4f} | {mixing} | "
                f"{state.log_joint():.0f} | {n_bytes / 1e6:.1f} | {ratio}",
                flush=True,
            )


if __name__ == "__main__":
    main()
