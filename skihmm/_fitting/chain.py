"""One Markov chain: initialisation, sweeps, records and history."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skihmm._data.sequences import Sequences
from skihmm._draws import Draw, check_draw, check_number, check_path, narrow, occupancy_order
from skihmm._fitting.starts import ModelSettings, StartData, find_start, goes_on_from_path
from skihmm._records import (
    ChainRecord,
    StateRecord,
    map_integers,
)
from skihmm._typing import Floats, Integers, Labels
from skihmm._using.decoding import frozen_model
from skihmm.core._emission import EmissionStats
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.core._sweep_info import SweepInfo
from skihmm.emissions._gaps import open_gaps
from skihmm.emissions._hidden_numbers import open_hidden
from skihmm.emissions._product_stats import known_states, product_stats
from skihmm.emissions._subject_effects import registered_paths
from skihmm.emissions._subjects import has_subjects, without_subjects
from skihmm.samplers import BaseSampler

# Labels are packed and lists are sorted every so many sweeps, and at each stored draw: a
# fixed schedule, because the further chain depends on the order of the lists.
CANONICAL_EVERY = 8
# So many draws of all but the labels come before the first sweep of a chain that goes on
# from a path (docs/measured/starts.md has why).  On more than SETTLED_STEPS steps there are
# fewer, down to LEAST_SETTLING: a draw of missing entries costs as much as half a sweep.
N_SETTLING, LEAST_SETTLING, SETTLED_STEPS = 30, 10, 5_000


class Chain(Iterator[SweepInfo]):
    """A Markov chain over states, seating and concentrations; every item is a sweep.

    `state` has labels; the last part of its emission is that of the `known` states, if there are.

    Attributes
    ----------
    saved : ChainRecord or None
        The last record of the chain's schedule.  Unlike :meth:`record` at other
        times, continuing from it gives the same chain as without the interruption.
    """

    def __init__(
        self, state: ChainState, known: Labels | None, sampler: BaseSampler, n_sweeps: int = 0
    ) -> None:
        self.state, self._known, self.n_sweeps = state, known, n_sweeps
        self.saved: ChainRecord | None = None
        self.kernel = sampler.make_kernel(state)

    def __next__(self) -> SweepInfo:
        """Make one sweep and draw the hyperparameters and the missing entries."""
        if self.n_sweeps % CANONICAL_EVERY == 0:
            self.saved = self.record()
        started = time.thread_time()
        counts = self.kernel.sweep(self.state)
        self.state.draw_hidden()
        self.n_sweeps += 1
        info = counts if isinstance(counts, SweepInfo) else SweepInfo(*counts)
        return info._replace(seconds=time.thread_time() - started)

    def draw(self, info: SweepInfo) -> Draw:
        """Return the current state as a posterior draw, labels by decreasing occupancy.

        `info` is the sum over the sweeps since the previous draw.  It packs the chain as
        a side effect, so the chain depends on the schedule of the draws.
        """
        arrays = self._arrays()
        self.saved = self.record()
        return self._describe(arrays, info)

    def peek(self, info: SweepInfo) -> Draw:
        """Return what :meth:`draw` returns, without changing the chain."""
        return self._describe(self._arrays(), info)

    def level(self) -> tuple[float, int]:
        """Return the log joint, summed over seatings, and the number of states.

        The chain is not changed.
        """
        draw = self.peek(SweepInfo())
        return draw.summed_lp, draw.n_states

    def _arrays(self) -> StateRecord:
        labels = self.state.packed_labels
        order = occupancy_order(labels, self.state.n_states, self._known)
        return self.state.to_arrays(order)

    def _describe(self, arrays: StateRecord, info: SweepInfo) -> Draw:
        emission = arrays["emission"]
        if self._known is not None:
            # Draws do not contain the known states.
            emission = emission["parts"][0]
        return Draw(
            n_states=arrays["n_states"],
            lp=self.state.log_joint(),
            states=arrays["states"],
            last_state=int(arrays["states"][-1]),
            transitions=arrays["transitions"],
            emission=emission,
            sweep=self.n_sweeps,
            info=info,
        )

    def record(self) -> ChainRecord:
        """Return the state for a later continuation, as plain arrays and numbers."""
        return {
            "arrays": map_integers(self.state.canonicalise(), narrow),
            "stream": self.state.stream.state,
            "n_sweeps": self.n_sweeps,
        }


def _empty_state(
    sequences: Sequences,
    settings: ModelSettings,
    stream: RandomStream,
    is_stopped: Callable[[], bool] | None,
) -> tuple[ChainState, EmissionStats]:
    """State without labels, and the statistics of its emission without the known states."""
    known = sequences.known_states
    stats = every = settings.emission.make_stats(sequences.codes)
    if is_stopped is not None:
        stats.watch(is_stopped)
    open_gaps(stats, sequences.starts)
    if known is not None:
        every = product_stats([stats, known_states(known, sequences.is_closed)])
    seating = settings.transitions.make_seating(sequences.contexts)
    return ChainState(sequences.starts, seating, every, stream), stats


def resume_chain(
    sequences: Sequences,
    settings: ModelSettings,
    record: ChainRecord,
    is_stopped: Callable[[], bool] | None = None,
) -> Chain:
    """Continue from the record of an earlier chain, bit for bit."""
    stream = RandomStream(None)
    state, _ = _empty_state(sequences, settings, stream, is_stopped)
    stream.state = record["stream"]
    state.from_arrays(record["arrays"])
    return Chain(state, sequences.known_states, settings.sampler, record["n_sweeps"])


def begin_chain(
    sequences: Sequences,
    settings: ModelSettings,
    seed: np.random.SeedSequence | np.random.BitGenerator,
    is_stopped: Callable[[], bool] | None = None,
) -> Chain:
    """Begin a chain from the best of its starts, which may take as long as many sweeps.

    A callback `is_stopped` that returns True ends the starts by KeyboardInterrupt.
    """
    stream = RandomStream(seed)
    state, own_stats = _empty_state(sequences, settings, stream, is_stopped)
    open_hidden(own_stats, sequences.starts, stream)
    data = StartData(sequences, settings, own_stats, stream, is_stopped)
    if has_subjects(settings.emission):
        # The start has states of what is left without the levels of subjects, which a
        # registration has found.  (A chain that draws them from zero on stays with states
        # of single subjects.)
        no_labels = np.array([-1, 0], dtype=np.int32)
        emission, codes = without_subjects(
            settings.emission, sequences.codes, own_stats.to_arrays(no_labels)
        )
        data = replace(
            data,
            sequences=replace(sequences, codes=codes),
            settings=replace(settings, emission=emission, found=registered_paths(own_stats)),
            stats=emission.make_stats(codes),
        )
    found = find_start(data, partial(_run_try, is_stopped))
    if isinstance(found, dict) and data.settings is settings:
        state.from_arrays(found)
    else:
        state.start_from(found["states"] if isinstance(found, dict) else found)
        has_path = goes_on_from_path(data.settings, sequences.n_steps)
        # Weights of inputs have to suit any labels.
        if has_path or state.transitions.has_inputs:
            settle(state, is_stopped)
    return Chain(state, sequences.known_states, settings.sampler)


def settle(state: ChainState, is_stopped: Callable[[], bool] | None = None) -> None:
    """Draw all but the labels until it suits these.

    Under other hyperparameters, or other weights of rows, the first sweeps would leave
    what the labels have found.
    """
    usual = N_SETTLING * SETTLED_STEPS // state.n_steps
    for _ in range(int(np.clip(usual, LEAST_SETTLING, N_SETTLING))):
        if is_stopped is not None and is_stopped():
            raise KeyboardInterrupt
        state.draw_hidden()


def _run_try(
    is_stopped: Callable[[], bool] | None,
    sequences: Sequences,
    settings: ModelSettings,
    seed: np.random.SeedSequence,
    n_sweeps: int,
) -> tuple[Draw, StateRecord]:
    chain = begin_chain(sequences, settings, seed, is_stopped)
    for _ in range(n_sweeps):
        if is_stopped is not None and is_stopped():
            raise KeyboardInterrupt
        next(chain)
    return chain.draw(SweepInfo()), chain.record()["arrays"]


@dataclass(frozen=True)
class History:
    """Draws and progress of a chain.

    Attributes
    ----------
    last : int
        Number of the sweep of the last draw, or of the end of the burn-in.
    n_burnin : int
        Number of the sweep with which the burn-in ends, at the latest.
    levels : ndarray of shape (n_levels, 2) or None
        Of a burn-in that ends when the chain has settled: log joint probabilities,
        summed over seatings, and numbers of states.
    draws : list of Draw
    record : ChainRecord or None
        Record to continue from; None before the first sweep.
    tally : SweepInfo
        Sum over the sweeps since `last`.
    seconds : float
        Total CPU seconds.
    origin_sweeps, origin_seconds : int, float
        Sweeps and seconds of earlier fits.
    best_lp : float
        Highest log joint probability of a draw, summed over seatings.
    best_states : ndarray of shape (n_samples,) or None
        The path of that draw, in the smallest integer type that fits.
    """

    last: int
    n_burnin: int
    levels: Floats | None = None
    draws: list[Draw] = field(default_factory=list)
    record: ChainRecord | None = None
    tally: SweepInfo = SweepInfo()  # noqa: RUF009
    seconds: float = 0.0
    origin_sweeps: int = 0
    origin_seconds: float = 0.0
    best_lp: float = -np.inf
    best_states: Integers | None = None

    @property
    def n_sweeps(self) -> int:
        """Sweeps of this fit."""
        return 0 if self.record is None else self.record["n_sweeps"] - self.origin_sweeps

    @property
    def n_discarded(self) -> int:
        """Sweeps before the draws: those of the burn-in, or of a part of it.

        A chain that was stopped inside its burn-in has its last state as a draw.
        """
        return min([self.n_burnin, *(draw.sweep for draw in self.draws[:1])])

    def continued(self, thin: int, new: History) -> History:
        """Return the history that a further fit (``warm_start``) begins with.

        `new` is the history of a new chain.
        """
        if self.record is None:
            return new
        n_sweeps = self.record["n_sweeps"]
        # Only a state that stood in for draws that were not due yet is after the record.
        history = self
        if self.draws and self.draws[-1].sweep > n_sweeps:
            history = replace(self, draws=[], best_lp=-np.inf, best_states=None)
        return replace(
            history,
            # With a smaller thin a draw may be due already.
            last=max(self.last, n_sweeps + 1 - thin),
            origin_sweeps=n_sweeps,
            origin_seconds=self.seconds,
        )

    def check(self, sequences: Sequences, settings: ModelSettings) -> None:
        """Raise an error if a history from a file is impossible for a chain on this data."""
        check_number(self.seconds, 0)
        assert self.record is not None
        problem = resume_chain(sequences, settings, self.record).state.check()
        if problem is not None:
            raise ValueError(problem)
        if not self.draws:
            return
        check_number(self.best_lp, -np.finfo(float).max)
        check_path(self.best_states, sequences.n_steps)
        first = Sequences(sequences.codes[:1], sequences.starts[:1])
        for compact in self.draws:
            draw = compact.widened()
            check_draw(draw, sequences.n_steps)
            frozen_model(draw, first, settings.emission)

    def with_best(self, draw: Draw) -> History:
        """Compare a new draw, with its path, with the best one so far."""
        lp = draw.summed_lp
        if self.best_states is not None and lp <= self.best_lp:
            return self
        assert draw.states is not None
        return replace(self, best_lp=lp, best_states=narrow(draw.states))
