"""First paths of chains: functions from data to paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment

from skihmm._data.sequences import Sequences
from skihmm._data.validation import distinct, row_chunks
from skihmm._draws import Draw
from skihmm._records import StateRecord
from skihmm._typing import Floats, Integers, Labels
from skihmm._using.decoding import frozen_model, rank
from skihmm.core._emission import EmissionStats
from skihmm.core._particle_filter import filter_particles
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._gaps import one_thread
from skihmm.emissions._parts import looks_back, numeric_values
from skihmm.samplers import BaseSampler, BlockedGibbs
from skihmm.transitions import BaseTransitions

# docs/measured/starts.md has the measurements behind these constants.

# States of init="random" and init="kmeans" (fewer for shorter data).
N_START_STATES = 20
# Blocks of init="blocks", and their least number of steps.
N_START_BLOCKS, LEAST_BLOCK = 40, 25
# After so many steps the particle filter of a start has one particle.
N_FILTERED = 20_000
# Longer data are tried on so many pieces of so many steps, and their path is found in chunks.
N_PIECES, PIECE, CHUNK = 10, 500, 10_000
# In more columns a particle filter starts with very many states.
MOST_FILTERED_COLUMNS = 4
# k-means: rows of a cluster at least (or four times the columns), and that it uses at most.
LEAST_CLUSTER, MOST_CLUSTERED = 25, 10_000
# Symbols that occur less often than this in the pieces share one state of their start.
LEAST_FREQUENT = 6
# More symbols than this begin with the best try.
LEAST_TRIED = 1000
# Sweeps of tries of symbols, at least, and sweeps of blocks from pairs.
SYMBOL_SWEEPS, PAIR_SWEEPS = 200, 400
# Tries of pairs where states do not last, of at most so many steps.
N_PAIR_TRIES, MOST_TRIED_PAIRS = 3, 10_000
# Autoregressive tries: sweeps, the lead of a filter in nats per value, and its particles.
BLOCK_SWEEPS, FILTER_AHEAD, BLOCK_PARTICLES = 200, 0.01, 25
# Tries make their sweeps times the root of a burn-in's share of FULL_BURNIN, so many at least.
FULL_BURNIN, LEAST_SWEEPS = 500, 50
# Innovations are means over so many neighbours.
N_NEIGHBOURS = 5


@dataclass(frozen=True)
class ModelSettings:
    """Settings of a chain: recipes, of which the emission is fitted, and initialisation.

    `init` is a name, the state of every step, or the record of a chain on the same data
    that goes on.  `effort` is the share of their sweeps that tries of starts make.
    """

    sampler: BaseSampler
    emission: BaseEmission
    transitions: BaseTransitions
    init: str | Labels | StateRecord
    n_particles: int
    effort: float = 1.0
    # Paths that are tried beside those of `init`, if it is "auto".
    found: tuple[Labels, ...] = ()


@dataclass(frozen=True)
class Try:
    """A short chain from a start, which counts if it is `ahead` nats before the first."""

    start: str | Labels
    sampler: BaseSampler
    n_sweeps: int
    ahead: float = 0.0
    most_particles: int = 1_000_000


# The last draw, and its record, of a new chain that makes so many sweeps from this seed.
RunTry: TypeAlias = Callable[
    [Sequences, ModelSettings, np.random.SeedSequence, int], tuple[Draw, StateRecord]
]


def effort_of(n_burnin: int | None) -> float:
    """Share of their sweeps that tries of starts make, by the burn-in that is asked for."""
    return 1.0 if n_burnin is None else float(np.sqrt(min(1.0, n_burnin / FULL_BURNIN)))


def chosen_init(settings: ModelSettings, n_steps: int) -> str | Labels | StateRecord:
    """Start that the settings stand for; "auto" is the best of several."""
    if not isinstance(settings.init, str) or settings.init != "auto":
        return settings.init
    init = settings.emission.default_init
    has_tries = init in ("kmeans", "blocks") or n_steps > LEAST_TRIED or len(settings.found) > 0
    return "auto" if has_tries else init


def goes_on_from_path(settings: ModelSettings, n_steps: int) -> bool:
    """Whether a chain begins with a path that tries, or the user, have found."""
    init = chosen_init(settings, n_steps)
    return not isinstance(init, str) or init not in STARTS


def find_start(data: StartData, run_try: RunTry) -> Labels | StateRecord:
    """First path of a chain, with its known states.

    Or the record of the best try, which goes on as the chain if it has the same model of
    the same steps.
    """
    n_steps, known = data.n_steps, data.sequences.known_states
    init = chosen_init(data.settings, n_steps)
    if isinstance(init, dict):
        return init
    if isinstance(init, str) and init == "auto":
        start = _best_start(data, run_try)
        if isinstance(start, dict):
            return start
        path = start
    elif isinstance(init, str):
        path = STARTS[init](data)
    else:
        path = packed(init)
    if known is not None:
        path = with_known_states(path, known)
        if data.sequences.is_closed:
            # Steps in other states join the last known state before them.
            is_known = np.isin(path, path[known >= 0])
            last = np.maximum.accumulate(np.where(is_known, np.arange(n_steps), -1))
            path = packed(path[np.where(last < 0, is_known.argmax(), last)])
    return path


def packed(labels: Integers) -> Labels:
    """Number labels 0, 1, ..., in their order."""
    values = distinct(labels)
    numbers = np.empty(len(labels), dtype=np.int32)
    for rows in row_chunks(len(labels)):
        numbers[rows] = np.searchsorted(values, labels[rows])
    return numbers


def with_known_states(path: Labels, known: Labels) -> Labels:
    """Change a path as little as possible to agree with the known states.

    Every known state, -1 where there is none, is matched with a state of the path, such
    that as many steps as possible keep their states.  Every state from 0 on is used.
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


def are_matched(path: Labels, known: Labels) -> bool:
    """Whether every known state is one state of the path, and another one for each."""
    steps = np.flatnonzero(known >= 0)
    pairs = np.unique(np.stack([known[steps], path[steps]]), axis=1)
    return all(len(np.unique(labels)) == len(labels) for labels in pairs)


def clusters(values: Floats, generator: np.random.Generator) -> Labels:
    """Labels by k-means of the standardised rows; NaN is the mean of its column."""
    # Imported here, because importing them takes longer than importing this package.
    from sklearn.cluster import KMeans
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

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
    with one_thread():
        labels = kmeans.fit(seen).predict(rows)
    return packed(labels)


def innovations(values: Floats, starts: Integers) -> Floats:
    """Means over neighbours of what a common autoregression does not foresee.

    Rows without a complete row before them have zeros.
    """
    before, after = values[:-1], values[1:]
    is_used = np.isfinite(before).all(axis=1) & np.isfinite(after).all(axis=1)
    is_used &= ~np.isin(np.arange(1, len(values)), starts)
    regressors = np.column_stack([np.ones(len(before)), before])[is_used]
    errors = np.zeros_like(values)
    errors[1:][is_used] = (
        after[is_used] - regressors @ np.linalg.lstsq(regressors, after[is_used], rcond=None)[0]
    )
    window = np.ones(min(N_NEIGHBOURS, len(values))) / N_NEIGHBOURS
    return np.apply_along_axis(np.convolve, 0, errors, window, mode="same")


@dataclass(frozen=True)
class StartData:
    """What the first path of a chain is made from."""

    sequences: Sequences
    settings: ModelSettings
    stats: EmissionStats
    stream: RandomStream
    is_stopped: Callable[[], bool] | None

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return self.sequences.n_steps

    @property
    def values(self) -> Floats:
        """Columns of numbers."""
        return numeric_values(self.settings.emission, self.sequences.codes)


def _blocks(data: StartData) -> Labels:
    """Contiguous blocks."""
    n_blocks = max(1, min(N_START_BLOCKS, data.n_steps // LEAST_BLOCK))
    return (np.arange(data.n_steps) * n_blocks // data.n_steps).astype(np.int32)


def _random(data: StartData) -> Labels:
    """States at random."""
    n_states = min(N_START_STATES, data.n_steps)
    return packed(data.stream.generator.integers(n_states, size=data.n_steps))


def _particle_filter(data: StartData) -> Labels:
    """Path of a particle filter."""
    # Without contexts: every level of a tree makes new states rarer, and a path with
    # too few states is left slowly.
    return filter_particles(
        data.stats,
        data.sequences.starts,
        data.stream,
        n_particles=data.settings.n_particles,
        transitions=data.settings.transitions.make_seating(),
        is_stopped=data.is_stopped,
        n_filtered=N_FILTERED,
        path_only=True,
    )[1]


# Chains from these begin with the initial hyperparameters: those that suit a division into
# many clusters or blocks let its states merge into too few.
STARTS: dict[str, Callable[[StartData], Labels]] = {
    "single": lambda data: np.zeros(data.n_steps, dtype=np.int32),
    "blocks": _blocks,
    "kmeans": lambda data: clusters(data.values, data.stream.generator),
    "innovations": lambda data: clusters(
        innovations(data.values, data.sequences.starts), data.stream.generator
    ),
    "random": _random,
    "particle_filter": _particle_filter,
}


def frequent_symbols(symbols: Labels) -> Labels:
    """Labels of rows of symbols: one for every frequent row, and one for all others.

    Rows with a missing symbol, -1, are among the others.
    """
    _, labels, counts = np.unique(symbols, axis=0, return_inverse=True, return_counts=True)
    labels = labels.ravel()
    is_other = (counts[labels] < LEAST_FREQUENT) | (symbols < 0).any(axis=1)
    labels[is_other] = -1
    return packed(labels)


def frequent_pairs(labels: Labels, starts: Integers) -> Labels:
    """Labels of rows and the rows before them: one for every frequent pair.

    Rows in rare pairs have their own label alone.
    """
    before = np.roll(labels, 1).astype(np.int64)
    before[starts] = none = labels.max() + 1
    pairs = before * none + labels
    _, index, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    is_rare = counts[index] < LEAST_FREQUENT
    pairs[is_rare] = (none + 1) * none + labels[is_rare]
    return packed(pairs)


def _best_start(data: StartData, run_try: RunTry) -> Labels | StateRecord:
    """The best of several short chains on all steps, or its path given pieces of them."""
    sequences, settings, n_steps = data.sequences, data.settings, data.n_steps
    begins, length = np.zeros(1, dtype=int), n_steps
    if n_steps > N_PIECES * PIECE:
        begins = np.linspace(0, n_steps - PIECE, N_PIECES).astype(int)
        length = PIECE
    rows = (begins[:, None] + np.arange(length)).ravel()
    is_start = np.zeros(n_steps, dtype=bool)
    is_start[sequences.starts] = is_start[begins] = is_start[::CHUNK] = True
    # Without contexts, as for the particle filter, but with inputs that come alone.
    is_plain = sequences.contexts is None or not sequences.contexts.n_columns
    whole = sequences if is_plain else replace(sequences, contexts=None)
    pieces = whole.part(rows, np.flatnonzero(is_start[rows]))
    settings = replace(settings, found=tuple(packed(path[rows]) for path in settings.found))
    best, record = _best_try(pieces, settings, n_steps, data.stream, run_try)
    if len(rows) == n_steps:
        is_same_model = sequences.known_states is None and is_plain
        if is_same_model and np.array_equal(pieces.starts, sequences.starts):
            return record
        return np.asarray(best.states, dtype=np.int32)
    # A new state has the label n_states.
    path = np.empty(n_steps, dtype=np.min_scalar_type(best.n_states))
    for begin in range(0, n_steps, CHUNK):
        if data.is_stopped is not None and data.is_stopped():
            raise KeyboardInterrupt
        chunk = slice(begin, begin + CHUNK)
        piece = whole.part(chunk, np.flatnonzero(is_start[chunk]))
        path[chunk] = frozen_model(best, piece, settings.emission).viterbi()[1]
    return packed(path)


def _best_try(
    pieces: Sequences,
    settings: ModelSettings,
    n_steps: int,
    stream: RandomStream,
    run_try: RunTry,
) -> tuple[Draw, StateRecord]:
    """End of the first try, or of the best of those that are far enough ahead."""

    def run(one: Try) -> tuple[float, tuple[Draw, StateRecord]]:
        seed = np.random.SeedSequence(stream.generator.integers(2**63))
        n_particles = min(settings.n_particles, one.most_particles)
        tried = replace(
            settings, init=one.start, sampler=one.sampler, n_particles=n_particles, found=()
        )
        n_sweeps = max(min(LEAST_SWEEPS, one.n_sweeps), round(settings.effort * one.n_sweeps))
        draw, record = run_try(pieces, tried, seed, n_sweeps)
        return rank(draw, pieces, settings.emission, settings.transitions), (draw, record)

    find = _tries_of_symbols if settings.emission.is_categorical else _tries_of_numbers
    first, *others = find(pieces, settings, n_steps)
    base, best = run(first)
    highest = base
    for one in others:
        reached, end = run(one)
        if reached > max(highest, base + one.ahead):
            highest, best = reached, end
    return best


def _tries_of_symbols(pieces: Sequences, settings: ModelSettings, n_steps: int) -> list[Try]:
    """From the default start, from frequent symbols, and from frequent pairs."""
    own, emission = settings.sampler, settings.emission
    n_sweeps = int(np.clip(n_steps // 200, SYMBOL_SWEEPS, 500))
    n_columns = pieces.codes.shape[1] - emission.n_inputs
    symbols = frequent_symbols(pieces.codes[:, :n_columns])
    pairs = frequent_pairs(symbols, pieces.starts)
    seating = settings.transitions.make_seating()
    blocks = BlockedGibbs(split_merge_rate=2)
    tries = [Try(emission.default_init, own, n_sweeps), Try(symbols, own, n_sweeps)]
    n_pairs = 1 if seating.has_coins or n_steps > MOST_TRIED_PAIRS else N_PAIR_TRIES
    tries += [Try(pairs, blocks, PAIR_SWEEPS)] * n_pairs
    if seating.has_coins:
        tries.append(Try("random", own, n_sweeps))
    return tries


def _tries_of_numbers(pieces: Sequences, settings: ModelSettings, n_steps: int) -> list[Try]:
    """From the default start, and from what may find other states."""
    own, emission = settings.sampler, settings.emission
    init = emission.default_init
    numbers = numeric_values(emission, pieces.codes)
    if init == "blocks" and looks_back(emission) and pieces.n_steps == n_steps:
        n_sweeps = int(np.clip(n_steps // 600, BLOCK_SWEEPS, 500))
        ahead = FILTER_AHEAD * np.isfinite(numbers).sum()
        # (They are inputs alone.)
        n_particles = BLOCK_PARTICLES if pieces.contexts is None else settings.n_particles
        tries = [
            Try(init, own, n_sweeps),
            Try("particle_filter", own, n_sweeps, ahead, n_particles),
            Try("innovations", own, n_sweeps),
        ]
        if settings.transitions.switch_penalty > 0:
            tries.append(Try("kmeans", own, n_sweeps))
        return tries
    n_sweeps = int(np.clip(n_steps // 600, 50, 500))
    starts: list[str | Labels] = [init, "single"]
    if init != "particle_filter":
        if numbers.shape[1] <= MOST_FILTERED_COLUMNS:
            starts.append("particle_filter")
    elif numbers.shape[1]:
        starts.append("kmeans")
    if looks_back(emission):
        starts += ["kmeans", "innovations"]
    return [Try(start, own, n_sweeps) for start in [*starts, *settings.found]]
