"""Normal pseudo-residuals: observations seen from the rows before them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from scipy.special import ndtri

from skihmm._data.sequences import Sequences
from skihmm._draws import Draw
from skihmm._typing import Array, Cdf, Flags, Floats
from skihmm._using.decoding import around, choose, frozen_model, mean_values, symbol_limits
from skihmm._using.new_subjects import Foreseen
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._parts import (
    missing_entries,
    unseen_values,
)

# Residuals are cut at this, where probabilities differ from one by rounding.
_LARGEST = 8.0
# Cumulative probabilities of columns in states that are held at once.
_MOST_PROBS = 200_000

# The model of a draw over some rows, and the probabilities of its states given the rows
# before each, times its weight.
Ahead: TypeAlias = tuple[FrozenModel, Floats]
Made = TypeVar("Made")


class KeptByDraw(Generic[Made]):
    """What a function makes of the models of draws, kept where rows have no inputs."""

    def __init__(self, make: Callable[[FrozenModel, Floats], Made]) -> None:
        self._make = make
        self._kept: dict[int, Made] = {}

    def __call__(self, d: int, model: FrozenModel, inputs: Floats) -> Made:
        """Make it for the inputs of rows; without inputs one row serves any number of rows."""
        if inputs.shape[1]:
            return self._make(model, inputs)
        if d not in self._kept:
            self._kept[d] = self._make(model, inputs[:1])
        return self._kept[d]


def cdfs_of(emission: BaseEmission, is_conditional: bool = False) -> KeptByDraw[Cdf]:
    """Functions ``predictive_cdf`` of draws; conditional ones do without a new state."""
    stop = -1 if is_conditional else None
    return KeptByDraw(
        lambda model, inputs: emission.predictive_cdf(
            model.emission, model._slots()[:stop], inputs, is_conditional
        )
    )


def ahead_of(
    draws: Sequence[Draw],
    weights: Floats,
    sequences: Sequences,
    emission: BaseEmission,
    foreseen: Foreseen | None = None,
) -> Iterator[Ahead]:
    """Models of draws over sequences, and the probabilities of their states ahead."""
    for d, weight in enumerate(weights / weights.sum()):
        model = frozen_model(draws[d], sequences, emission)
        probs = model.look_ahead()
        if foreseen is not None:
            probs[foreseen.rows] = foreseen.probs[d]
        yield model, weight * probs


def centres_of(
    model: FrozenModel, probs: Floats, emission: BaseEmission, periods: Floats
) -> Floats:
    """Predicted mean directions of the columns of angles, zero in other columns.

    `probs` are the probabilities of the states given the rows before, up to a factor.
    """
    centres = np.zeros((len(probs), len(periods)))
    angles = np.flatnonzero(periods < np.inf)
    if len(angles):
        # Directions have no regressions, so that any inputs will do.
        inputs = np.zeros(emission.n_inputs) if emission.n_inputs else None
        columns = model.predictives(inputs)
        for c in angles:
            centres[:, c] = mean_values(probs @ columns[c], periods[c])
    return centres


def ends_of(values: Floats, is_discrete: Flags, periods: Floats, centres: Floats) -> Floats:
    """Values at whose cumulative probabilities a residual is read, (2, rows, columns).

    For symbols and counts the value before and the value, for angles the begin of the
    turn, opposite to the centre, and the angle in it, for other numbers the value twice.
    Centres may depend on earlier rows only.
    """
    ends = np.array([values - is_discrete, values], dtype=np.float64)
    angles = np.flatnonzero(periods < np.inf)
    if len(angles):
        lower, upper = ends
        for c in angles:
            upper[:, c] = around(upper[:, c], centres[:, c], periods[c])
        lower[:, angles] = centres[:, angles] - 0.5 * periods[angles]
    return ends


def mixture_of(probs: Floats, cdf: Cdf, ends: Floats) -> Floats:
    """Cumulative probabilities of `ends` under one draw, (2, n_rows, n_features).

    `probs` are the probabilities of the states given the rows before, perhaps times a weight.
    """
    return np.asarray((probs[:, None] @ cdf(ends))[..., 0, :])


def of_distinct(cdf: Cdf) -> Cdf:
    """Cumulative distribution functions of counts without inputs, computed once a value.

    Counts repeat, and the incomplete beta functions of a negative binomial take nine
    tenths of the time of its residuals.
    """

    def of_values(values: Floats) -> Floats:
        columns = values.reshape(-1, values.shape[-1]).T
        distinct, which = zip(
            *(np.unique(column, return_inverse=True) for column in columns), strict=True
        )
        table = np.zeros((max(map(len, distinct)), len(columns)))
        for c, few in enumerate(distinct):
            table[: len(few), c] = few
        probs = cdf(table)
        found = np.stack([probs[w, :, c] for c, w in enumerate(which)], axis=-1)
        return found.reshape(*values.shape[:-1], *found.shape[1:])

    return of_values


def residuals_of(shares: Floats, periods: Floats, uniform: Floats) -> Floats:
    """Normal pseudo-residuals from the sum of :func:`mixture_of` over draws.

    `uniform` are random numbers, (n_rows, n_features), by which discrete values are
    spread (Dunn and Smyth 1996).
    """
    lower, upper = shares
    is_angle = periods < np.inf
    if is_angle.any():
        upper = np.where(is_angle, upper - lower, upper)
        lower = np.where(is_angle, upper, lower)
    share = lower + uniform * (upper - lower)
    found = ndtri(np.minimum(np.maximum(share, 0.0), 1.0))
    return np.asarray(np.minimum(np.maximum(found, -_LARGEST), _LARGEST))


def without_residual(codes: Array, emission: BaseEmission) -> Flags:
    """Mask of the values that are missing, or whose step has no density without an input."""
    return np.asarray(missing_entries(emission, codes) | unseen_values(emission, codes))


def cumulative_shares(
    ahead: Iterable[Ahead],
    emission: BaseEmission,
    values: Floats,
    inputs: Floats,
    cdfs: KeptByDraw[Cdf] | None = None,
) -> Floats:
    """Sum of :func:`mixture_of` over draws, at observed or other values.

    NaN in columns of emissions that do not implement ``predictive_cdf``.  `cdfs` are
    those of the emission.
    """
    n = values.shape[1]
    periods, is_discrete = emission.columns(n).periods, emission.columns(n).are_discrete
    shares = np.zeros((2, *values.shape))
    # Both ends of numbers without a turn are the value.
    are_single = not is_discrete.any() and not np.isfinite(periods).any()
    are_counts = is_discrete.all() and not emission.n_inputs
    cdfs = cdfs or cdfs_of(emission)
    for d, (model, probs) in enumerate(ahead):
        if d == 0:
            centres = centres_of(model, probs, emission, periods)
            ends = ends_of(values, is_discrete, periods, centres)
        size = max(1, _MOST_PROBS // (n * probs.shape[1]))
        for start in range(0, len(values), size):
            part = slice(start, start + size)
            cdf = cdfs(d, model, inputs[part])
            if are_counts:
                cdf = of_distinct(cdf)
            here = ends[:1, part] if are_single else ends[:, part]
            shares[:, part] += mixture_of(probs[part], cdf, here)
    return shares


def leading_rows(codes: Array, is_symbol: Flags) -> Array:
    """Rows with their first column, their first two, and so on, without the whole rows.

    The prefixes of the first row come first, then the second row's; other values are missing, and
    all inputs are there.
    """
    n = len(is_symbol)
    rows = np.repeat(codes[:, None], n - 1, axis=1)
    is_later = np.zeros((n - 1, codes.shape[1]), dtype=bool)
    is_later[:, :n] = np.triu(np.ones((n - 1, n), dtype=bool), 1)
    missing = np.zeros(codes.shape[1])
    missing[:n] = np.where(is_symbol, -1.0, np.nan)
    with np.errstate(invalid="ignore"):  # NaN of no symbol
        rows = np.where(is_later, missing.astype(codes.dtype), rows)
    return np.ascontiguousarray(rows.reshape(-1, codes.shape[1]))


def joint_residuals(
    ahead: Sequence[Ahead],
    codes: Array,
    emission: BaseEmission,
    uniform: Floats,
    log_leading: Callable[[int, Array], Floats],
    cdfs: KeptByDraw[Cdf],
) -> Floats:
    """Residuals given the rows before and the columns before (Rosenblatt 1952).

    If the state is one of the fit and the model is right they are independent, also of
    columns that are correlated, or that have the state in common.  (Nothing surprises a
    new state, whose parameters are unknown.)  They are NaN where there is no cumulative
    probability, and anything in the places of :func:`without_residual`.

    `log_leading` has the log probabilities of :func:`leading_rows` under the states of a
    draw, by its place in `ahead`; `cdfs` are conditional ones.
    """
    n = uniform.shape[1]
    periods, is_discrete = emission.columns(n).periods, emission.columns(n).are_discrete
    is_symbol = emission.columns(n).are_symbols
    found = np.empty(uniform.shape)
    size = max(1, _MOST_PROBS // (n * max(n, len(ahead[0][1][0]))))
    for start in range(0, len(codes), size):
        part = slice(start, start + size)
        rows, n_rows = leading_rows(codes[part], is_symbol), len(codes[part])
        values, inputs = codes[part, :n], codes[part, n:]
        logs, below = [], []
        for d, (model, probs) in enumerate(ahead):
            if d == 0:
                centres = centres_of(model, probs[part], emission, periods)
                ends = ends_of(values, is_discrete, periods, centres)
            # Probabilities of a state given the rows before and the columns before.
            with np.errstate(divide="ignore"):
                log_probs = np.repeat(np.log(probs[part, None, :-1]), n, axis=1)
            leading = log_leading(d, rows)[:, :-1]
            log_probs[:, 1:] += leading.reshape(n_rows, n - 1, -1)
            logs.append(log_probs.transpose(0, 2, 1))
            below.append(cdfs(d, model, inputs)(ends))
        weights = np.concatenate(logs, axis=1)
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        shares = (weights * np.concatenate(below, axis=2)).sum(axis=2)
        found[part] = residuals_of(shares, periods, uniform[part])
    return found


def _ranked_shares(
    ahead: Iterable[Ahead],
    weights: Floats,
    codes: Array,
    limits: list[int],
    stream: RandomStream,
    n_ranked: int,
) -> Floats:
    """Shares of values drawn for each row that are below its own, and not above."""
    n = len(limits)
    counts = np.zeros((2, len(codes), n))
    counts[1] = 1.0
    sizes = stream.generator.multinomial(n_ranked, weights / weights.sum())
    for (model, probs), size in zip(ahead, sizes, strict=True):
        for _ in range(size):
            states = choose(probs, stream.generator.random(len(codes)))
            inputs = codes[:, n:] if codes.shape[1] > n else None
            drawn = model.draw_values(states, limits, stream, inputs)
            for c, column in enumerate(drawn):
                counts[:, :, c] += column < codes[:, c], column <= codes[:, c]
    return counts / (n_ranked + 1)


def residuals_under(
    ahead: Callable[[], Iterable[Ahead]],
    weights: Floats,
    codes: Array,
    limits: list[int],
    emission: BaseEmission,
    uniform: Floats,
    stream: RandomStream,
    n_ranked: int = 100,
    cdfs: KeptByDraw[Cdf] | None = None,
    foreseen: Foreseen | None = None,
) -> Floats:
    """Normal pseudo-residuals of encoded rows; see :func:`normal_residuals`.

    `ahead` gives all draws, whose `weights` are, and `uniform` spreads discrete values.
    """
    n = len(limits)
    values, inputs = codes[:, :n], codes[:, n:]
    is_unknown = without_residual(codes, emission)
    if is_unknown.any():
        values = np.where(is_unknown, 0.0, values)
    shares = cumulative_shares(ahead(), emission, values, inputs, cdfs)
    if foreseen is not None:
        shares[:, foreseen.rows[:, None], foreseen.columns] = foreseen.shares
    periods = emission.columns(n).periods
    # Without a function values are drawn.
    is_ranked = np.isnan(shares[0]) & ~is_unknown
    if n_ranked and is_ranked.any():
        ranked = _ranked_shares(ahead(), weights, codes, limits, stream, n_ranked)
        shares = np.where(is_ranked, ranked, shares)
        periods = np.where(is_ranked, np.inf, periods)
    found = residuals_of(shares, periods, uniform)
    found[is_unknown] = np.nan
    return found


def normal_residuals(
    draws: Sequence[Draw],
    weights: Floats,
    sequences: Sequences,
    emission: BaseEmission,
    stream: RandomStream,
    n_ranked: int = 100,
    foreseen: Foreseen | None = None,
) -> Floats:
    """Normal pseudo-residuals of encoded data, in the order of the encoded columns.

    Values without a cumulative probability are ranked among `n_ranked` drawn values; without drawn
    values they are NaN.  Rows of new subjects are predicted by the same draws.
    """
    codes = sequences.codes
    limits = symbol_limits(emission, codes.shape[1] - emission.n_inputs)
    return residuals_under(
        lambda: ahead_of(draws, weights, sequences, emission, foreseen),
        weights,
        codes,
        limits,
        emission,
        stream.generator.random((len(codes), len(limits))),
        stream,
        n_ranked,
        foreseen=foreseen,
    )
