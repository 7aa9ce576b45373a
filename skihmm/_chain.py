"""One Markov chain: initialisation, sweeps, records and history."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from skihmm._decoding import rank
from skihmm._draws import Draw, narrow, occupancy_order
from skihmm._records import ChainRecord, EmissionRecord, StateRecord, map_integers
from skihmm._sequences import Sequences
from skihmm._typing import Floats, Integers, Labels
from skihmm._validation import distinct, row_chunks
from skihmm.core._franchise import hyperparameters_of
from skihmm.core._messages import FrozenModel
from skihmm.core._particle_filter import filter_particles
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.core._sweep_info import SweepInfo
from skihmm.emissions import BaseEmission
from skihmm.emissions._product_stats import KnownStatesStats, ProductStats
from skihmm.samplers import BaseSampler, BlockedGibbs
from skihmm.transitions import BaseTransitions

# Labels are packed and lists are sorted every so many sweeps, and at each stored draw: a
# fixed schedule, because the further chain depends on the order of the lists.
CANONICAL_EVERY = 8

# Number of states of init="random" and init="kmeans" (fewer for shorter data).
N_START_STATES = 20
# The same of init="blocks", and the least number of steps of a block.
N_START_BLOCKS, LEAST_BLOCK = 40, 25
# After so many steps the particle filter of a start has one particle.  A hundred cost as
# much as a hundred sweeps (1e5 steps, 20 states: 2.7 s, with this limit 0.6 s, and the
# chains are equally far after 4 s).
N_FILTERED = 20_000
# Where data would start from clusters, and long data from blocks too: chains from that
# division, from one state and, if there are few columns, from a particle filter make some
# sweeps on so many pieces of so many steps, or on all steps if there are not more.  Of
# longer data the path is the most probable one, in chunks, given the best last draw.
# (k-means alone: two states 6 standard deviations apart, 3,000 steps: 11 to 19 states;
# lasting states, 1e5 steps: 58,500 segments of 1,900.)
# Sequences of many symbols: from a particle filter, and from a state for every frequent
# symbol.  The filter finds too few states in a text (of about 600 it has 30 at the start,
# 330 after 4,000 sweeps), and one state per symbol is too many where symbols say little
# (20 states, 100 symbols, 1e5 steps: 79 states after 400 sweeps).  And from a state for
# every frequent pair of successive symbols: states that share symbols are told apart
# by the symbol before, and blocks merge what is one state, which single steps do slowly.
# (Automaton of 15 states, every three of which share symbols, 2,500 steps, 16 chains: 13
# find the 15 states in 1,000 sweeps of blocks; of chains from a filter one of 16.)
N_PIECES, PIECE = 10, 500
CHUNK = 10_000
# In more columns a particle filter starts with very many states.
MOST_FILTERED_COLUMNS = 4
# k-means: in white noise with many columns, clusters of fewer rows than this, or than
# four times the columns, do not merge again.  It uses at most so many rows.
LEAST_CLUSTER, MOST_CLUSTERED = 25, 10_000
# Symbols that occur less often than this in the pieces share one state of their start.
LEAST_FREQUENT = 6
# More symbols than this begin with the best of the three, after so many sweeps of single
# steps at least, and of blocks (after 200 the merging is not over).
LEAST_TRIED, SYMBOL_SWEEPS, PAIR_SWEEPS = 1000, 200, 400
CLUSTERING = threading.Lock()


@dataclass(frozen=True)
class ModelSettings:
    """Settings of a chain: recipes and initialisation.

    Attributes
    ----------
    sampler : BaseSampler
    emission : BaseEmission
        Fitted.
    transitions : BaseTransitions
    init : str or ndarray of shape (n_samples,)
    n_particles : int
    """

    sampler: BaseSampler
    emission: BaseEmission
    transitions: BaseTransitions
    init: str | Labels
    n_particles: int


def packed(labels: Integers) -> Labels:
    """Number labels 0, 1, ..., in their order.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
    """
    values = distinct(labels)
    numbers = np.empty(len(labels), dtype=np.int32)
    for rows in row_chunks(len(labels)):
        numbers[rows] = np.searchsorted(values, labels[rows])
    return numbers


def with_known_states(path: Labels, known: Labels) -> Labels:
    """Change a path as little as possible to agree with the known states.

    Every known state is matched with a state of the path, such that as many steps as
    possible keep their states.

    Parameters
    ----------
    path : ndarray of shape (n_samples,), int32
        States 0, 1, ...
    known : ndarray of shape (n_samples,), int32
        Labels 0, 1, ... of the steps whose state is known, -1 for others.

    Returns
    -------
    path : ndarray of shape (n_samples,), int32
        Every state from 0 on is used.
    """
    steps = np.flatnonzero(known >= 0)
    n_labels, n_states = int(known.max()) + 1, int(path.max()) + 1
    together = np.zeros((n_labels, n_states))
    np.add.at(together, (known[steps], path[steps]), 1)
    labels, states = linear_sum_assignment(together, maximize=True)
    state_of = n_states + np.arange(n_labels)
    is_there = together[labels, states] > 0
    state_of[labels[is_there]] = states[is_there]
    path = path.copy()
    path[steps] = state_of[known[steps]]
    return packed(path)


def _runs(path: Labels, starts: Integers) -> NDArray[np.intp]:
    """First steps of runs of one label, and the number of steps."""
    begins = np.r_[True, path[1:] != path[:-1], True]
    begins[starts] = True
    return np.flatnonzero(begins)


def with_shortest_dwell(
    path: Labels, starts: Integers, min_dwell: int, starts_inside: bool = False
) -> Labels:
    """Change a path such that states last for `min_dwell` steps or longer.

    Shorter runs in a row become one run, in the most frequent one of their states, if
    they are long enough together; or else they join a neighbour.

    Parameters
    ----------
    path : ndarray of shape (n_samples,), int32
        States 0, 1, ...
    starts : ndarray of shape (n_sequences,)
        First step of every sequence.  The last run of a sequence may be shorter.
    min_dwell : int
    starts_inside : bool, default=False
        Whether the first run of a sequence may be shorter as well.

    Returns
    -------
    path : ndarray of shape (n_samples,), int32
        Every state from 0 on is used.
    """
    path = path.copy()
    edges = _runs(path, starts)
    is_first = np.isin(edges, starts)
    short: list[int] = []  # the first step of short runs in a row, if there are any
    for run, (start, stop) in enumerate(pairwise(edges)):
        if is_first[run]:
            begin, before = start, -1
        is_last = is_first[run + 1] or stop == len(path)
        may_be_short = is_last or (starts_inside and start == begin)
        if may_be_short or stop - start >= min_dwell:
            if short:
                path[short[0] : start] = path[start if before < 0 else before]
                short.clear()
            before = start
            continue
        short.append(int(start))
        if stop - short[0] >= min_dwell:
            path[short[0] : stop] = np.bincount(path[short[0] : stop]).argmax()
            before = short[0]
            short.clear()
    return packed(path)


def start_with_stages(
    path: Labels,
    known: Labels | None,
    starts: Integers,
    min_dwell: int,
    starts_inside: bool,
) -> Labels:
    """As `with_shortest_dwell`, in agreement with the known states.

    Parameters
    ----------
    path : ndarray of shape (n_samples,), int32
    known : ndarray of shape (n_samples,), int32, or None
        Labels 0, 1, ... of the steps whose state is known, -1 for others.
    starts, min_dwell, starts_inside
        As for `with_shortest_dwell`.

    Returns
    -------
    path : ndarray of shape (n_samples,), int32
    """
    start = with_shortest_dwell(path, starts, min_dwell, starts_inside)
    if known is None or _agree(start, known):
        return start
    return _path_of_known(known, starts, min_dwell, starts_inside)


def check_dwells(sequences: Sequences, transitions: BaseTransitions) -> None:
    """Raise ValueError if the known states contradict the shortest dwell.

    Parameters
    ----------
    sequences : Sequences
    transitions : BaseTransitions
    """
    seating = transitions.make_seating()
    known = sequences.known_states
    if known is not None and seating.n_stages > 1:
        _path_of_known(known, sequences.starts, seating.n_stages, seating.starts_inside)


def _path_of_known(
    known: Labels, starts: Integers, min_dwell: int, starts_inside: bool
) -> Labels:
    """Path in known states only, in which each begins as early as possible.

    Then there is the most room for those after it, so there is no path if this fails.
    """
    path = np.zeros(len(known), dtype=np.int32)
    for first, stop in pairwise([*starts.tolist(), len(known)]):
        steps = first + np.flatnonzero(known[first:stop] >= 0)
        if not len(steps):
            continue
        begin = first
        for i in np.flatnonzero(np.diff(known[steps])).tolist():
            last, other = steps[i].item(), steps[i + 1].item()
            change = last + 1
            if begin > first or not starts_inside:
                change = max(change, begin + min_dwell)
            if change > other:
                raise ValueError(
                    f"Some of the known states last for less than min_dwell={min_dwell} "
                    f"steps: that of row {last} ends before row {other}. Lower min_dwell "
                    "of the transitions, or set steps of such states to -1 in `states`: "
                    "unknown."
                )
            path[begin:change] = known[last]
            begin = change
        path[begin:stop] = known[steps[-1]]
    return path


def _agree(path: Labels, known: Labels) -> bool:
    """Whether every known state is one state of the path, and another one for each."""
    steps = np.flatnonzero(known >= 0)
    pairs = np.unique(np.stack([known[steps], path[steps]]), axis=1)
    return all(len(np.unique(labels)) == len(labels) for labels in pairs)


def clusters(values: Floats, generator: np.random.Generator) -> Labels:
    """Labels by k-means of the standardised rows.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        NaN is missing: the mean of its column.
    generator : numpy.random.Generator
        Generator of the seed and the rows of k-means.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
        0, 1, ..., every one of them used.
    """
    # Imported here, because importing them takes longer than importing this package.
    from sklearn.cluster import KMeans
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    n_samples, n_features = values.shape
    n_clusters = n_samples // max(LEAST_CLUSTER, 4 * n_features)
    n_clusters = max(1, min(N_START_STATES, n_clusters))
    rows = values
    for step in SimpleImputer(keep_empty_features=True), StandardScaler():
        # Arrays, whatever scikit-learn's global transform_output is.
        rows = step.set_output(transform="default").fit_transform(rows)
    seen = rows
    if n_samples > MOST_CLUSTERED:
        seen = rows[generator.choice(n_samples, MOST_CLUSTERED, replace=False)]
    n_clusters = min(n_clusters, len(np.unique(seen, axis=0)))
    kmeans = KMeans(n_clusters, n_init=1, random_state=int(generator.integers(2**31)))
    # One thread, because the order of sums of several threads varies.
    # Limits are those of the process: chains that run as threads take turns, or they
    # would restore one another's.
    with CLUSTERING, threadpool_limits(1):
        labels = kmeans.fit(seen).predict(rows)
    return packed(labels)


def frequent_symbols(symbols: Labels) -> Labels:
    """Labels of rows of symbols: one for every frequent row, and one for all others.

    Parameters
    ----------
    symbols : ndarray of shape (n_samples, n_features), int32
        -1 is missing: such rows are among the others.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
        0, 1, ..., every one of them used.
    """
    _, labels, counts = np.unique(
        symbols, axis=0, return_inverse=True, return_counts=True
    )
    labels = labels.ravel()
    is_other = (counts[labels] < LEAST_FREQUENT) | (symbols < 0).any(axis=1)
    labels[is_other] = -1
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def frequent_pairs(labels: Labels, starts: Integers) -> Labels:
    """Labels of rows and the rows before them: one for every frequent pair.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Labels of rows, 0, 1, ...
    starts : ndarray
        Indices of the first row of every sequence, before which there is none.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
        0, 1, ..., every one of them used.  Rows in rare pairs have their own label alone.
    """
    before = np.roll(labels, 1).astype(np.int64)
    before[starts] = none = labels.max() + 1
    pairs = before * none + labels
    _, index, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    is_rare = counts[index] < LEAST_FREQUENT
    pairs[is_rare] = (none + 1) * none + labels[is_rare]
    return np.unique(pairs, return_inverse=True)[1].astype(np.int32)


class Chain(Iterator[SweepInfo]):
    """A Markov chain over states, seating and concentrations; every item is a sweep.

    Parameters
    ----------
    sequences : Sequences
    settings : ModelSettings
    seed : numpy.random.SeedSequence or numpy.random.BitGenerator, optional
        Seed of the chain's random stream.
    record : ChainRecord, optional
        Result of :meth:`record` of an earlier chain, to continue from bit for bit.
    is_stopped : callable, optional
        Called while the particle filter runs; True raises KeyboardInterrupt.

    Attributes
    ----------
    saved : ChainRecord or None
        The last record of the chain's own schedule.  Unlike :meth:`record` at other
        times, continuing from it gives the same chain as without the interruption.
    """

    def __init__(
        self,
        sequences: Sequences,
        settings: ModelSettings,
        seed: np.random.SeedSequence | np.random.BitGenerator | None = None,
        record: ChainRecord | None = None,
        is_stopped: Callable[[], bool] | None = None,
    ) -> None:
        self.settings = settings
        self.stream = RandomStream(seed)
        self.n_sweeps = 0
        self.saved: ChainRecord | None = None
        self._stats = settings.emission.make_stats(sequences.codes)
        if is_stopped is not None:
            self._stats.watch(is_stopped)
        self._has_gaps = len(self._stats.open_gaps(sequences.starts)[0]) > 0
        self._known = sequences.known_states
        self.state = ChainState(
            sequences.starts,
            settings.transitions.make_seating(sequences.contexts),
            self._stats
            if self._known is None
            else ProductStats([self._stats, KnownStatesStats(self._known)]),
            self.stream,
        )
        if record is None:
            path = self._initial_path(sequences, is_stopped)
            if self._known is not None:
                path = with_known_states(path, self._known)
            transitions = self.state.transitions
            if transitions.n_stages > 1:
                path = start_with_stages(
                    path,
                    self._known,
                    sequences.starts,
                    transitions.n_stages,
                    transitions.starts_inside,
                )
            self.state.start_from(path)
        else:
            self.stream.state = record["stream"]
            self.n_sweeps = record["n_sweeps"]
            self.state.from_arrays(record["arrays"])
        self.kernel = settings.sampler.make_kernel(self.state)

    def _initial_path(
        self, sequences: Sequences, is_stopped: Callable[[], bool] | None
    ) -> Labels:
        init = self.settings.init
        n_steps = sequences.n_steps
        if isinstance(init, str) and init == "auto":
            emission = self.settings.emission
            init = emission.default_init
            # Contiguous blocks are tried against others only where the data are cut.
            least = N_PIECES * PIECE if init == "blocks" else LEAST_TRIED
            has_many = n_steps > least
            if init == "kmeans" or has_many:
                return self._better_start(sequences, init, is_stopped)
        if not isinstance(init, str):
            return packed(init)
        if init == "single":
            return np.zeros(n_steps, dtype=np.int32)
        if init == "blocks":
            n_blocks = max(1, min(N_START_BLOCKS, n_steps // LEAST_BLOCK))
            return (np.arange(n_steps) * n_blocks // n_steps).astype(np.int32)
        if init == "kmeans":
            return clusters(
                sequences.codes[:, self.settings.emission.numeric_columns()],
                self.stream.generator,
            )
        if init == "random":
            n_states = min(N_START_STATES, n_steps)
            labels = self.stream.generator.integers(n_states, size=n_steps)
            return packed(labels)
        # Without contexts: every level of a tree makes new states rarer, and a path with
        # too few states is left slowly.
        return filter_particles(
            sequences.codes,
            sequences.starts,
            self._stats.columns(),
            self.stream,
            n_particles=self.settings.n_particles,
            transitions=self.settings.transitions.make_seating(),
            is_stopped=is_stopped,
            n_filtered=N_FILTERED,
            path_only=True,
        )[1]

    def _better_start(
        self, sequences: Sequences, init: str, is_stopped: Callable[[], bool] | None
    ) -> Labels:
        def check() -> None:
            if is_stopped is not None and is_stopped():
                raise KeyboardInterrupt

        n_steps = sequences.n_steps
        begins, length = np.zeros(1, dtype=int), n_steps
        if n_steps > N_PIECES * PIECE:
            begins = np.linspace(0, n_steps - PIECE, N_PIECES).astype(int)
            length = PIECE
        rows = (begins[:, None] + np.arange(length)).ravel()
        is_start = np.zeros(n_steps, dtype=bool)
        is_start[sequences.starts] = is_start[begins] = is_start[::CHUNK] = True
        # Without contexts, as for the particle filter.
        pieces = Sequences(sequences.codes[rows], np.flatnonzero(is_start[rows]))
        emission = self.settings.emission
        own = self.settings.sampler
        tries: list[tuple[str | Labels, BaseSampler, int]]
        if emission.is_categorical:
            n_sweeps = int(np.clip(n_steps // 200, SYMBOL_SWEEPS, 500))
            n_columns = pieces.codes.shape[1] - emission.n_inputs
            symbols = frequent_symbols(pieces.codes[:, :n_columns])
            pairs = frequent_pairs(symbols, pieces.starts)
            has_stages = self.state.transitions.n_stages > 1
            blocks = BlockedGibbs(split_merge_rate=0 if has_stages else 2)
            tries = [
                (init, own, n_sweeps),
                (symbols, own, n_sweeps),
                (pairs, blocks, PAIR_SWEEPS),
            ]
        else:
            n_sweeps = int(np.clip(n_steps // 200, 50, 500))
            tries = [(init, own, n_sweeps), ("single", own, n_sweeps)]
            n_numbers = pieces.codes[:1, emission.numeric_columns()].shape[1]
            if init != "particle_filter" and n_numbers <= MOST_FILTERED_COLUMNS:
                tries.append(("particle_filter", own, n_sweeps))
            elif init == "particle_filter" and n_numbers:
                tries.append(("kmeans", own, n_sweeps))
        draws = []
        for start, sampler, n_sweeps in tries:
            settings = replace(self.settings, init=start, sampler=sampler)
            seed = np.random.SeedSequence(self.stream.generator.integers(2**63))
            chain = Chain(pieces, settings, seed, is_stopped=is_stopped)
            for _ in range(n_sweeps):
                check()
                next(chain)
            draws.append(chain.draw(SweepInfo()))
        prior = self.settings.transitions
        best = max(draws, key=lambda draw: rank(draw, pieces, emission, prior))
        if len(rows) == n_steps:
            return np.asarray(best.states, dtype=np.int32)
        # A new state has the label n_states.
        path = np.empty(n_steps, dtype=np.min_scalar_type(best.n_states))
        for begin in range(0, n_steps, CHUNK):
            check()
            chunk = slice(begin, begin + CHUNK)
            stats = emission.make_stats(sequences.codes[chunk])
            frozen = FrozenModel(best.arrays, stats, np.flatnonzero(is_start[chunk]))
            path[chunk] = frozen.viterbi()[1]
        return packed(path)

    def __next__(self) -> SweepInfo:
        """Make one sweep and draw the hyperparameters and the missing entries."""
        if self.n_sweeps % CANONICAL_EVERY == 0:
            self.saved = self.record()
        started = time.thread_time()
        counts = self.kernel.sweep(self.state)
        self.state.draw_hyperparameters()
        if self._has_gaps:
            self.state.augment()
        self.n_sweeps += 1
        info = counts if isinstance(counts, SweepInfo) else SweepInfo(*counts)
        return info._replace(seconds=time.thread_time() - started)

    def draw(self, info: SweepInfo) -> Draw:
        """Return the current state as a posterior draw, labels by decreasing occupancy.

        It packs the chain as a side effect, so the chain depends on the schedule of the
        draws.

        Parameters
        ----------
        info : SweepInfo
            Sum over the sweeps since the previous draw.

        Returns
        -------
        draw : Draw
        """
        arrays = self._arrays()
        self.saved = self.record()
        return self._describe(arrays, info)

    def peek(self, info: SweepInfo) -> Draw:
        """Return what :meth:`draw` returns, without changing the chain."""
        return self._describe(self._arrays(), info)

    def _arrays(self) -> StateRecord:
        labels = self.state.narrow_labels
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
            last_stage=int(arrays["stages"][-1]) if "stages" in arrays else 0,
            transitions=arrays["transitions"],
            emission=emission,
            sweep=self.n_sweeps,
            info=info,
        )

    def take_emission_hyperparameters(self, emission: EmissionRecord) -> None:
        """Set the emission's hyperparameters to those of another record.

        Parameters
        ----------
        emission : EmissionRecord
            Result of :meth:`EmissionStats.to_arrays`.
        """
        self._stats.take_hyperparameters(emission)

    def record(self) -> ChainRecord:
        """Return the state for a later continuation, as plain arrays and numbers."""
        return {
            "arrays": map_integers(self.state.canonicalise(), narrow),
            "stream": self.stream.state,
            "n_sweeps": self.n_sweeps,
        }


def extended_record(
    record: ChainRecord,
    earlier: Sequences,
    added: Sequences,
    settings: ModelSettings,
) -> ChainRecord:
    """Record of a chain on more sequences than before.

    The labels of the earlier steps are kept.  Those of the new ones are the path of a
    particle filter that continues from them; or, where a particle filter would start with
    too many states, or transitions depend on contexts, the most probable path given the
    earlier ones.  All customers are seated anew.

    Parameters
    ----------
    record : ChainRecord
        Record of a chain on the earlier sequences.
    earlier, added : Sequences
    settings : ModelSettings
        ``init`` is not used.

    Returns
    -------
    record : ChainRecord
        Record of a chain before its first sweep.
    """
    arrays = record["arrays"]
    stream = RandomStream(None)
    stream.state = record["stream"]
    emission = arrays["emission"]
    if earlier.known_states is not None:
        emission = emission["parts"][0]
    if settings.emission.default_init == "particle_filter" and added.contexts is None:
        stats = settings.emission.make_stats(added.codes[:0])
        path = filter_particles(
            added.codes,
            added.starts,
            stats.columns(emission),
            stream,
            n_particles=settings.n_particles,
            seating={
                "n_states": arrays["n_states"],
                "transitions": arrays["transitions"],
                "emission": {"columns": stats.records(emission)},
            },
        )[1]
    else:
        stats = settings.emission.make_stats(added.codes)
        frozen = FrozenModel(
            {
                "n_states": arrays["n_states"],
                "transitions": arrays["transitions"],
                "emission": emission,
            },
            stats,
            added.starts,
            contexts=added.contexts,
        )
        path = np.asarray(frozen.viterbi()[1])
    start = replace(
        settings,
        transitions=clone(settings.transitions).set_params(
            **hyperparameters_of(arrays["transitions"])
        ),
        init=np.concatenate([arrays["states"], path]),
    )
    chain = Chain(earlier.joined(added), start, stream.bit_generator)
    chain.take_emission_hyperparameters(emission)
    return chain.record()


@dataclass(frozen=True)
class History:
    """Draws and progress of a chain.

    Attributes
    ----------
    last : int
        Number of the sweep of the last draw, or of the end of the burn-in.
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

    def continued(self, thin: int, n_burnin: int) -> History:
        """Return the history that a further fit (``warm_start``) begins with."""
        if self.record is None:
            return History(n_burnin)
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

    def with_best(self, draw: Draw) -> History:
        """Compare a new draw, with its path, with the best one so far."""
        lp = draw.summed_lp
        if self.best_states is not None and lp <= self.best_lp:
            return self
        assert draw.states is not None
        return replace(self, best_lp=lp, best_states=narrow(draw.states))
