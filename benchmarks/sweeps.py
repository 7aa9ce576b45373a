"""
Seconds per sweep, with the quality of the result beside every time.

    python benchmarks/sweeps.py                        # Sequence 2
    SKIHMM_DATA=folder python benchmarks/sweeps.py     # and the words of Alice

``--sampler`` chooses stepwise (the default), slice, blocked, beam or all, with blocks of
10 steps.  ``--against COMMAND`` times another program in turn with ours, from the same
state, and prints the ratio round by round.  In COMMAND, {ids} is replaced by a file with
one symbol per line, {states} by one with the state of every step, {sweeps} by the number
of sweeps, {sampler} by the sampler's name (NAMES_THERE); the program has to print
``secs_per_sweep=NUMBER``.  Machines are noisy: only ratios from one run mean anything.
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

import numpy as np

from skihmm._chain import Chain, ModelSettings
from skihmm._sequences import Sequences
from skihmm.datasets import fetch_alice, make_automaton_sequence
from skihmm.emissions import HCRPCategorical
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice

SAMPLERS = {
    "stepwise": StepwiseGibbs(),
    "slice": StepwiseSlice(),
    "blocked": BlockedGibbs(block_size=10),
    "beam": BlockedBeam(block_size=10),
}
NAMES_THERE = {"stepwise": "gibbs"}


def start_chain(codes, n_symbols, init, n_sweeps, seed):
    """A chain that has made n_sweeps sweeps."""
    emission = HCRPCategorical(
        categories=[np.arange(n_symbols)], handle_unknown="error"
    ).fit(codes)
    sequences = Sequences(emission.encode(codes), np.zeros(1, dtype=np.intp))
    if isinstance(init, int):
        init = np.random.default_rng(seed).integers(init, size=len(codes))
    settings = ModelSettings(StepwiseGibbs(), emission, 1.0, 1.0, (1.0, 1.0), init, 100)
    chain = Chain(sequences, settings, np.random.SeedSequence(seed))
    for _ in range(n_sweeps):
        next(chain)
    return chain, sequences, settings


def time_ours(sampler, record, sequences, settings, n_sweeps):
    """Seconds per sweep, acceptance rate and the chain, from a record."""
    settings = replace(settings, sampler=sampler)
    chain = Chain(sequences, settings, record=record)
    next(chain)  # caches
    infos = [next(chain) for _ in range(n_sweeps)]
    seconds = statistics.mean(info.seconds for info in infos)
    accepted = sum(i.n_accepted for i in infos) / sum(i.n_proposed for i in infos)
    return seconds, accepted, chain


def time_other(command, codes, states, n_sweeps):
    """Seconds per sweep of another program from the same state."""
    with tempfile.TemporaryDirectory() as folder:
        ids, path = Path(folder, "ids.txt"), Path(folder, "states.txt")
        np.savetxt(ids, codes, fmt="%d")
        np.savetxt(path, states, fmt="%d")
        words = shlex.split(command.format(ids=ids, states=path, sweeps=n_sweeps))
        printed = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(re.search(r"secs_per_sweep=(\S+)", printed.stdout)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--against", help="command of another program, see above")
    parser.add_argument("--sampler", choices=[*SAMPLERS, "all"], default="stepwise")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    X, _ = make_automaton_sequence(2500, random_state=args.seed)
    # name, symbols, vocabulary, initial states, sweeps before, sweeps timed
    cases = [("Sequence 2", X, 15, "particle_filter", 500, 200, 200)]
    try:
        alice = fetch_alice(download_if_missing=False)
    except OSError as error:
        print(f"without the words of Alice: {error}")
    else:
        X, n_symbols = alice.data[: -alice.n_test], len(alice.vocabulary)
        cases += [
            ("Alice, equilibrium", X, n_symbols, "particle_filter", 4000, 20, 5),
            ("Alice, from 350 states", X, n_symbols, 350, 60, 20, 5),
            ("Alice, from 3000 states", X, n_symbols, 3000, 20, 10, 2),
        ]
    chosen = SAMPLERS if args.sampler == "all" else [args.sampler]
    print("case | sampler | K | s/sweep | ns/step | accepted | log joint | MB | ratio")
    for name, codes, n_symbols, init, before, n_ours, n_theirs in cases:
        chain, sequences, settings = start_chain(
            codes, n_symbols, init, before, args.seed
        )
        record = chain.record()
        for sampler in chosen:
            ours, ratios = [], []
            for _ in range(args.rounds):
                seconds, accepted, after = time_ours(
                    SAMPLERS[sampler], record, sequences, settings, n_ours
                )
                ours.append(seconds)
                if args.against:
                    command = args.against.replace(
                        "{sampler}", NAMES_THERE.get(sampler, sampler)
                    )
                    states = record["arrays"]["states"]
                    ratios.append(time_other(command, codes, states, n_theirs) / seconds)
            seconds = statistics.median(ours)
            ratio = "-"
            if ratios:
                middle, span = statistics.median(ratios), (min(ratios), max(ratios))
                ratio = f"{middle:.1f} ({span[0]:.1f} to {span[1]:.1f})"
            state = after.state
            print(
                f"{name} | {sampler} | {state.n_states} | {seconds:.5f} | "
                f"{seconds / len(codes) * 1e9:.0f} | {accepted:.4f} | "
                f"{state.log_joint():.0f} | {state.n_bytes() / 1e6:.1f} | {ratio}",
                flush=True,
            )


if __name__ == "__main__":
    main()
