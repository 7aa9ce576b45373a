"""Samplers, data, chains from a given state and their quality, for all benchmarks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skihmm._data.sequences import Sequences
from skihmm._fitting.chain import ModelSettings, begin_chain, resume_chain
from skihmm.datasets import fetch_alice
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import autocorrelation_time
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
)
from skihmm.transitions import HCRPTransitions

SAMPLERS = {
    "stepwise": StepwiseGibbs(proposal="rcd"),
    "exact": StepwiseGibbs(proposal="exact"),
    "slice": StepwiseSlice(),
    "blocked": BlockedGibbs(block_size=10),
    "beam": BlockedBeam(block_size=10),
    "direct": DirectAssignmentGibbs(),
    "sb_gibbs": StickBreakingGibbs(),
    "sb_beam": StickBreakingBeam(),
}


def load_alice():
    """Training words, the last 1,000 words and the size of the vocabulary, or None."""
    try:
        alice = fetch_alice(download_if_missing=False)
    except OSError as error:
        print(f"without the words of Alice: {error}")
        return None
    return alice.data[: -alice.n_test], alice.data[-alice.n_test :], len(alice.vocabulary)


def make_model(codes, n_symbols, init, seed=0, sampler=None):
    """Sequences and settings of a chain; an integer `init` counts random states."""
    emission = HCRPCategorical(categories=[np.arange(n_symbols)], handle_unknown="error").fit(codes)
    sequences = Sequences(emission.encode_values(codes), np.zeros(1, dtype=np.intp))
    if isinstance(init, int):
        init = np.random.default_rng(seed).integers(init, size=len(codes))
    sampler = SAMPLERS["stepwise"] if sampler is None else sampler
    settings = ModelSettings(sampler, emission, HCRPTransitions(), init, 100)
    return sequences, settings


def start_chain(codes, n_symbols, init, n_sweeps, seed):
    """Chain after n_sweeps sweeps, with its sequences and settings."""
    sequences, settings = make_model(codes, n_symbols, init, seed)
    chain = begin_chain(sequences, settings, np.random.SeedSequence(seed))
    for _ in range(n_sweeps):
        next(chain)
    return chain, sequences, settings


def time_sweeps(sampler, record, sequences, settings, n_sweeps):
    """Seconds per sweep, acceptance rate and the chain, from a record."""
    chain = resume_chain(sequences, replace(settings, sampler=sampler), record)
    next(chain)  # caches
    infos = [next(chain) for _ in range(n_sweeps)]
    seconds = sum(info.seconds for info in infos) / n_sweeps
    accepted = sum(i.n_accepted for i in infos) / sum(i.n_proposed for i in infos)
    return seconds, accepted, chain


def means_and_ranges(rows, digits):
    """Mean and range of every column, as texts with so many digits."""
    columns = zip(np.transpose(rows), digits, strict=True)
    return [
        f"{values.mean():.{n}f} ({values.min():.{n}f}-{values.max():.{n}f})"
        for values, n in columns
    ]


def effective_samples(sampler, record, sequences, settings, seconds):
    """Effective samples per second of the number of states and of the log joint.

    The chain starts at equilibrium and sweeps for `seconds` CPU seconds, of which the
    first fifth is left out.
    """
    chain = resume_chain(sequences, replace(settings, sampler=sampler), record)
    values, used = [], 0.0
    while used < seconds:
        used += next(chain).seconds
        values.append((chain.state.n_states, chain.state.log_joint()))
    values = np.array(values[len(values) // 5 :], dtype=float)
    per_sweep = used / len(values) * 0.8
    return [
        1 / (2 * autocorrelation_time(column, max_lag="auto") * per_sweep) for column in values.T
    ]
