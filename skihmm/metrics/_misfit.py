"""What contradicts a model: states that are pieces, and residuals that are no noise.

A state is real if it lasts, differs from others and comes back; what is left over is noise.
Visits of states, and residuals of the draw whose states are regimes, are compared with all that is
known of the rows; where they depend on it, it is the remedy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skihmm._data.sequences import Sequences
from skihmm._draws import Draw
from skihmm._fitting.chain import settle
from skihmm._texts import percent
from skihmm._typing import Array, Flags, Floats, Integers
from skihmm._using.decoding import frozen_model
from skihmm._using.fitted import FittedModel
from skihmm._using.residuals import (
    Ahead,
    ahead_of,
    cdfs_of,
    cumulative_shares,
    normal_residuals,
    residuals_of,
    without_residual,
)
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._gaps import open_gaps
from skihmm.emissions._given import given_of
from skihmm.emissions._hidden_numbers import open_hidden
from skihmm.emissions._spec import ColumnSpec
from skihmm.emissions._subjects import has_subjects
from skihmm.metrics._finding import KINDS, Finding, Misfits
from skihmm.metrics._labels import FIRM
from skihmm.metrics._noise import (
    LEAST_VALUES,
    ColumnResiduals,
    Surroundings,
    columns_that_correlate,
    columns_that_lead,
    symbols_before,
)
from skihmm.metrics._remedies import has_heavy_noise, with_remedy
from skihmm.metrics._visits import (
    OVERLAP,
    Overlap,
    Recurrence,
    Visits,
    alternation,
    large_states,
    lone_rows,
    overlap,
    recurrence,
    repeat_of_path,
    repeat_of_values,
    sequence_of_rows,
    spread_of_dwell,
    strongest_period,
)
from skihmm.posterior._regimes import FoundRegimes, path_of_regimes, why_no_regimes

# Standard errors, and ratio, of more or fewer changes than the prior expects.
_SIGNIFICANT, _LEAST_RATIO = 5.0, 1.5
# Divergence below which two states have the same values, nats a row.
_SAME = 0.25
# Overlapping states of something that moves; rows that alternate between two states.
_LEAST_MOVING, _ALTERNATING = 3, 0.1
# Sequences from which time is not compared.
_MANY_SEQUENCES = 4
# Ordinates of periodograms of residuals and of paths (right fits: 13 and 12 at most), and the
# share of the rows of a state whose path is looked at.
_OF_RESIDUALS, _OF_PATHS, _COMMON_STATE = 20.0, 30.0, 0.03
# Variance of dwell times over a chain's, of so many visits.
_REGULAR, _LEAST_VISITS = 0.3, 20
# Rows of small states that never last, of all rows, and the share that goes back at once.
_LEAST_LONE, _MOST_LONE, _GO_BACK = 0.003, 0.04, 0.6
# Values of a column whose values are symbols, and findings at most.
_FEW_VALUES, _MOST_FINDINGS = 4, 4
# Rows of regressions that are looked at inside of states, where quadrature costs.
_MOST_ROWS = 3000
# Rows of yes and no with inputs where lapses are sought.
_MOST_ROWS_OF_LAPSES = 10_000
# Findings that periods are a cause of.
_MEMORY = {"memory", "leads"}


def joined_path(fitted: FittedModel, regimes: FoundRegimes) -> Integers:
    """Path of the selected draw in which each regime's states are joined.

    Symbols have no shape of noise, and where regimes are not found yet the states stay as they are.
    """
    path = fitted.labels
    if fitted.emission.is_categorical or why_no_regimes(fitted.selected):
        return path
    # Regimes are numbered by their own paths; this path may lack some.
    return np.unique(regimes().state_regimes_[path], return_inverse=True)[1]


def draw_of_path(
    fitted: FittedModel,
    path: Integers,
    stream: RandomStream,
    sequences: Sequences | None = None,
) -> Draw:
    """Draw with these states, and with hyperparameters that suit them.

    By default the rows come from the fit.
    """
    selected = fitted.selected
    if sequences is None:
        sequences = fitted.sequences
    stats = fitted.emission.make_stats(sequences.codes)
    open_gaps(stats, sequences.starts)
    seating = fitted.transitions.make_seating(sequences.contexts)
    state = ChainState(sequences.starts, seating, stats, stream)
    stats.take_hyperparameters(selected.emission)
    open_hidden(stats, sequences.starts)
    state.start_from(path.astype(np.int32))
    settle(state)
    arrays = state.to_arrays()
    return replace(
        selected,
        n_states=arrays["n_states"],
        lp=state.log_joint(),
        states=arrays["states"],
        transitions=arrays["transitions"],
        emission=arrays["emission"],
    )


def regime_draw(fitted: FittedModel, regimes: FoundRegimes) -> Draw:
    """Draw in which each regime's states are joined."""
    stream = RandomStream(np.random.SeedSequence(fitted.entropy))
    return draw_of_path(fitted, joined_path(fitted, regimes), stream)


def find_misfits(fitted: FittedModel, regimes: FoundRegimes, firm: float = math.nan) -> Misfits:
    """Findings about a fit.

    `firm` is the share of the steps whose states nine of ten draws agree on.  With a large share,
    pieces of regimes are clusters, whatever their shape.
    """
    emission, path, sequences = fitted.emission, fitted.labels, fitted.sequences
    n_columns = len(fitted.observed)
    # A column without an observed symbol has no distribution.
    if sequences.n_steps < LEAST_VALUES or emission.columns(n_columns).lacks_symbols:
        return Misfits([])
    path = np.asarray(path, dtype=np.intp)
    joined = path_of_regimes(fitted) if why_no_regimes(fitted.selected) else regimes().labels_
    joined = np.unique(joined, return_inverse=True)[1]
    n_states, n_regimes = len(large_states(path)), len(large_states(joined))
    visits = _Paths(fitted, path, joined)
    noise = _noise(fitted, path, joined, n_states > n_regimes, firm >= FIRM)
    repeats = _repeats(visits, noise.ahead)
    if repeats:
        # An autoregression of a few rows does not know the shape of a period.
        noise = replace(noise, findings=[f for f in noise.findings if f.kind not in _MEMORY])
    found = repeats + list(visits.recurrent())
    interleaved = [] if found else visits.interleaved()
    found += [] if repeats else _periods(visits, noise.ahead, noise.labels)
    found += visits.regular_dwell()
    if sequences.contexts is None:
        found += judge_changes(path, sequences.starts, 1 - fitted.transmat.diagonal())
    found += [*interleaved, *noise.findings]
    is_plain = not any(KINDS[f.kind].makes_lone_rows for f in found)
    is_plain = is_plain and not has_heavy_noise(fitted)
    if n_states <= n_regimes and is_plain:
        found += visits.lone_rows(noise.has_numbers)
    worst: dict[str, Finding] = {}
    for finding in found:
        known = worst.setdefault(finding.kind, finding)
        if finding.size > known.size:
            worst[finding.kind] = finding
    listed = [with_remedy(finding, fitted, joined) for finding in worst.values()]
    return Misfits(listed[:_MOST_FINDINGS], n_states, n_regimes, _notes_of_noise(fitted))


class _Paths:
    """Paths of states and regimes, and what their visits say."""

    def __init__(self, fitted: FittedModel, path: Integers, joined: Integers) -> None:
        self.fitted, self.states, self.regimes = fitted, path, joined
        self.starts = fitted.sequences.starts
        self.n_states, self.n_regimes = len(large_states(path)), len(large_states(joined))
        self.alternating = alternation(path)
        self.has_numbers = not fitted.emission.is_categorical
        self.overlap = self._overlap() if self.has_numbers else Overlap(np.empty(0))
        near = self.overlap.nearest[np.isfinite(self.overlap.nearest)]
        self.n_near, self.n_overlapping = len(near), int((near < OVERLAP).sum())
        # Most states touch another one: pieces of something that moves, or copies of few states,
        # which do not recur anywhere.
        least = max(_LEAST_MOVING, self.n_states / 3)
        self.touch = (
            self.n_states > _LEAST_MOVING
            and 2 * self.n_regimes > self.n_states
            and self.n_overlapping >= least
            and self.alternating < _ALTERNATING
        )
        most = max(_LEAST_MOVING + 1, self.n_states / 2)
        self.moves = self.touch and self.overlap.n_chained >= most

    def _overlap(self) -> Overlap:
        fitted, rows = self.fitted, _some_rows(self.fitted)
        # Log densities of a row depend on the row alone, with its inputs.
        sequences = Sequences(fitted.sequences.codes[rows], np.zeros(1, dtype=np.intp))
        if fitted.sequences.contexts is not None:
            rows, sequences = np.arange(len(self.states)), fitted.sequences
        terms = frozen_model(fitted.selected, sequences, fitted.emission).emission_terms()
        return overlap(terms[:, :-1], self.states[rows], self.regimes[rows])

    def _tells(self, found: Recurrence) -> bool:
        if found.kappa >= 0.3 and found.z >= 4:
            return True
        if self.touch:
            # All of them in few sequences, of which each has a few visits.
            are_apart = found.n_few > 0.8 * found.n_large and found.kappa >= 0.1 and found.z >= 1
            return are_apart or (found.z >= 1.5 and found.kappa >= 0.03)
        are_few = 2 * found.n_few > found.n_large and 2 * self.n_regimes > self.n_states
        return found.z >= 2.5 and found.kappa >= 0.05 and are_few

    def recurrent(self) -> Iterator[Finding]:
        """Finding about states that do not come back, or touch each other."""
        n_sequences = len(self.starts)
        groups = sequence_of_rows(self.starts, len(self.states))
        over = f"{self.n_overlapping} of {self.n_near} large states overlap with another state"
        too = f", and {over}" if self.touch else ""
        paths = self.states, self.regimes
        if n_sequences > 1 and not has_subjects(self.fitted.emission):
            each = [recurrence(path, self.starts, groups) for path in paths]
            found = max(each, key=lambda one: one.z)
            if self._tells(found):
                seen = (
                    f"Sequences may come from different subjects: {n_sequences} sequences share "
                    f"few of the {found.n_large} large states ({percent(found.kappa)} of the way "
                    f"from chance to states of one sequence each){too}"
                )
                yield Finding("sequences", found.kappa, seen, "center by sequence")
                return
        if n_sequences < _MANY_SEQUENCES:
            found = max((recurrence(path, self.starts) for path in paths), key=lambda one: one.z)
            if self._tells(found):
                few = f" ({found.n_few} of {found.n_large} occur in at most 40 % of the time)"
                seen = (
                    f"Something drifts: visits of a state lie {percent(found.kappa)} closer in "
                    f"time than by chance{few if found.n_few else ''}{too}"
                )
                yield Finding("drift", found.kappa, seen, "give time, or what drifts, as an input")
                return
        if self.moves:
            least = float(self.overlap.nearest.min())
            seen = f"Something moves: {over} in values ({least:.1f} nats a row)"
            yield Finding("moving", self.n_overlapping / self.n_near, seen, "name what moves")

    def regular_dwell(self) -> Iterator[Finding]:
        """Finding about dwell times that vary less than those of a chain."""
        ratio, n = spread_of_dwell(self.regimes, self.starts)
        if n >= _LEAST_VISITS and ratio < _REGULAR:
            seen = (
                f"Stays in a state are more regular than the model allows ({ratio:.1g} of its "
                f"variance, {n} stays)"
            )
            remedy = "ask for segments with a shortest stay, and distrust intervals of dwell times"
            # Half of what nine of ten stays last.
            lengths = Visits.of_path(self.regimes, self.starts).lengths
            rows = "X, groups=groups" if len(self.starts) > 1 else "X"
            call = f"hmm.segments({rows}, min_dwell={max(2, int(np.quantile(lengths, 0.1) / 2))})"
            yield Finding("dwell", 1 / max(ratio, 1e-3), seen, remedy, call=call)

    def interleaved(self) -> Iterator[Finding]:
        """Finding about rows of several sources: two states in turn, with the same values.

        (Without the turns, states of the same values are a state too many of one of 30 right fits,
        and no other model.)
        """
        least, (a, b) = float(self.overlap.nearest.min(initial=np.inf)), self.overlap.pair
        is_same = least < min(_SAME, 5 * self.overlap.error + 0.1)
        are_real = 2 * self.n_regimes > self.n_states and not self.touch
        if is_same and are_real and self.alternating > _ALTERNATING:
            seen = (
                f"States {a} and {b} have the same values, and {percent(self.alternating)} of the "
                "rows alternate between two states"
            )
            remedy = "if rows of several sources are interleaved, sort by source and pass groups="
            yield Finding("interleaved", self.alternating, seen, remedy)

    def lone_rows(self, has_numbers: bool) -> Iterator[Finding]:
        """Finding about small states that never last: outliers."""
        rows, n, back = lone_rows(self.states, self.starts)
        n_rows = len(self.states)
        if (
            has_numbers
            and max(4, _LEAST_LONE * n_rows) <= len(rows) <= _MOST_LONE * n_rows
            and back > _GO_BACK
        ):
            small = "1 small state never lasts" if n == 1 else f"{n} small states never last"
            seen = (
                f"{small}: {len(rows)} rows stand alone, and {percent(back)} go back to the state "
                "before, as outliers do"
            )
            yield Finding("outliers", len(rows) / n_rows, seen, "set them to missing", rows=rows)


def _repeats(visits: _Paths, ahead: Floats) -> list[Finding]:
    """Finding about states, or residuals, that repeat: phases of a period, shape by shape."""
    found = [(*repeat_of_path(visits.states, visits.starts)[::-1], "States repeat")]
    found += [
        (*repeat_of_values(column, visits.starts)[::-1], "Residuals repeat") for column in ahead.T
    ]
    size, lag, what = max(found)
    if not lag:
        return []
    seen = f"{what} every {lag} rows ({percent(size)} beyond chance), as phases of a period do"
    call = f"skihmm.windows.WindowedHMM(period={lag})"
    return [Finding("cycle", size, seen, _as_inputs(lag), call=call, lag=lag)]


def _as_inputs(period: float) -> str:
    return f"give sin and cos of 2 pi row / {period:.0f} as inputs"


def _periods(visits: _Paths, ahead: Floats, labels: Sequence[str | int]) -> Iterator[Finding]:
    """Finding about a period of residuals, or of paths."""
    found: list[tuple[float, float, float, str, str | int | None]] = []
    for label, column in zip(labels, ahead.T, strict=True):
        power, period = strongest_period(column, visits.starts)
        what = f"Residuals of column {label} follow" if len(labels) > 1 else "Residuals follow"
        found.append((power / _OF_RESIDUALS, power, period, what, label))
    for path, what in ((visits.states, "States follow"), (visits.regimes, "Regimes follow")):
        for state in np.flatnonzero(np.bincount(path) >= _COMMON_STATE * len(path)):
            power, period = strongest_period((path == state).astype(np.float64), visits.starts)
            found.append((power / _OF_PATHS, power, period, what, None))
    most, power, period, what, column = max(found, key=lambda one: one[:3])
    if most >= 1:
        seen = (
            f"{what} a cycle of {period:.0f} rows ({power:.0f} times the power of periods nearby)"
        )
        yield Finding("cycle", power, seen, _as_inputs(period), column, lag=period)


def _some_rows(fitted: FittedModel) -> Integers:
    """All rows, or evenly spaced ones where densities are integrals over predictors."""
    n, columns = len(fitted.labels), fitted.emission.columns(len(fitted.observed))
    is_dear = "input" in fitted.given.kinds_of_emission and columns.are_discrete.any()
    if is_dear and n > _MOST_ROWS:
        return np.linspace(0, n - 1, _MOST_ROWS).astype(int)
    return np.arange(n)


@dataclass(frozen=True, eq=False)
class _Noise:
    """Findings about the residuals of a draw whose states are regimes."""

    findings: list[Finding]
    ahead: Floats
    labels: Sequence[str | int]
    has_numbers: bool


def _inside(fitted: FittedModel, draw: Draw, stream: RandomStream, rows: Integers) -> Floats:
    """Residuals given the own states; NaN of other rows."""
    emission, codes = fitted.emission, fitted.sequences.codes[rows]
    n = len(fitted.observed)
    model = frozen_model(draw, fitted.sequences, emission)
    assert draw.states is not None
    probs = np.eye(draw.n_states + 1)[draw.states[rows]]
    is_unknown = without_residual(codes, emission)
    values = np.where(is_unknown, 0.0, codes[:, :n])
    shares = cumulative_shares([(model, probs)], emission, values, codes[:, n:])
    uniform = stream.generator.random(values.shape)
    found = np.full((len(fitted.labels), n), np.nan)
    residuals = residuals_of(shares, emission.columns(n).periods, uniform)
    found[rows] = np.where(is_unknown, np.nan, residuals)
    return found


def _slopes(ahead: Ahead, fitted: FittedModel) -> Floats:
    """Derivatives of probabilities of binary columns by log odds of states; NaN of other rows.

    (rows, states, columns).
    """
    model, probs = ahead
    n_rows, n = len(probs), len(fitted.observed)
    rows = np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS_OF_LAPSES)).astype(int)
    inputs = fitted.sequences.codes[rows, n:]
    zeros = cdfs_of(fitted.emission)(0, model, inputs)(np.zeros((1, len(rows), n)))[0]
    found = np.full((*probs.shape, n), np.nan)
    found[rows] = probs[rows, :, None] * zeros * (1 - zeros)
    return found


def _noise(
    fitted: FittedModel, path: Integers, joined: Integers, are_pieces: bool, are_firm: bool
) -> _Noise:
    emission, sequences, n = fitted.emission, fitted.sequences, len(fitted.observed)
    columns, codes = emission.columns(n), sequences.codes
    stream = RandomStream(np.random.SeedSequence(fitted.entropy))
    draw = draw_of_path(fitted, joined, stream)
    ahead = normal_residuals([draw], np.ones(1), sequences, emission, stream, 0)
    inside = _inside(fitted, draw, stream, _some_rows(fitted))
    labels = fitted.observed_labels[columns.order].tolist()
    near = _surroundings(fitted)
    zeros, slopes = np.zeros(ahead.shape), np.empty(0)
    if (columns.are_discrete & ~columns.are_symbols).any():
        (model,) = ahead_of([draw], np.ones(1), sequences, emission)
        zeros = cumulative_shares([model], emission, zeros, codes[:, n:])[1]
        if near.inputs:
            slopes = _slopes(model, fitted)
    found: list[Finding] = []
    has_numbers = False
    for c, label in enumerate(labels):
        values = codes[:, c].astype(np.float64)
        known = values[np.isfinite(ahead[:, c])] if not columns.are_symbols[c] else values
        distinct = np.unique(known[np.isfinite(known)])
        if columns.are_symbols[c] or (columns.are_discrete[c] and len(distinct) <= _FEW_VALUES):
            symbols = np.where(np.isfinite(values), values, -1)
            if not columns.looks_back[c]:
                found += symbols_before(symbols, path, near.groups, label)
        # Values that the states determine have no noise, but counts may have memory.
        groups = np.zeros(len(values)) if columns.are_discrete[c] else joined
        is_known = np.isfinite(values)
        if columns.are_symbols[c] or _are_equal(values[is_known], groups[is_known]):
            continue
        is_binary = columns.are_discrete[c] and set(distinct) <= {0.0, 1.0}
        kind = "binary" if is_binary else "counts" if columns.are_discrete[c] else "real"
        has_numbers |= kind != "binary"
        column = ColumnResiduals(
            label, kind, ahead[:, c], inside[:, c], values, zeros[:, c],
            slopes[..., c] if is_binary and len(slopes) else None,
            bool(columns.has_noise[c]), are_pieces and are_firm,
        )  # fmt: skip
        begin = f"Column {label}: " if n > 1 else ""
        found += [replace(f, seen=_begun(begin, f.seen)) for f in column.findings(near)]
    what = "regimes" if are_pieces else "states"
    if not (are_pieces and are_firm and columns.are_discrete.sum() == 0):
        found += columns_that_correlate(inside, _without_covariance(columns), labels, what)
    leading = columns_that_lead(ahead, near.groups, labels)
    largest = max((f.size for f in found if f.kind == "memory"), default=0.0)
    found += [f for f in leading if f.size > largest]
    return _Noise(found, ahead, labels, has_numbers)


def _notes_of_noise(fitted: FittedModel) -> list[str]:
    """Notes of the columns of numbers whose residuals are not known."""
    columns, notes = fitted.emission.columns(len(fitted.observed)), []
    labels = fitted.observed_labels[columns.order]
    for i, part in enumerate(fitted.emission.parts):
        own = labels[(columns.part == i) & ~columns.are_symbols].tolist()
        cls = type(part.emission)
        if own and cls.predictive_cdf is BaseEmission.predictive_cdf:
            named = f"column{'s' * (len(own) > 1)} {', '.join(map(str, own))}"
            why = f"{cls.__name__} has no predictive_cdf"
            notes.append(f"The noise of {named} was not checked: {why}.")
    return notes


def _are_equal(values: Floats, groups: Array) -> bool:
    """Whether every group has one value."""
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    return bool((values == values[first][which]).all())


def _begun(begin: str, seen: str) -> str:
    return begin + seen[0].lower() + seen[1:] if begin else seen


def _surroundings(fitted: FittedModel) -> Surroundings:
    given, codes = fitted.given, fitted.sequences.codes
    are_inputs = given.kinds_of_emission == "input"
    names = np.array(fitted.columns.labels)[given.columns[given.of_emission[are_inputs]]]
    values = given_of(fitted.emission, codes)[:, are_inputs].astype(np.float64)
    inputs = dict(zip(map(str, names), values.T, strict=True))
    starts = fitted.sequences.starts
    return Surroundings(inputs, sequence_of_rows(starts, len(codes)), starts)


def _without_covariance(columns: ColumnSpec) -> Flags:
    """Mask of the pairs of columns whose correlation the model does not describe."""
    is_free = ~(columns.correlates[:, None] & (columns.part[:, None] == columns.part))
    is_free[columns.are_symbols] = is_free[:, columns.are_symbols] = False
    return is_free


def judge_changes(path: Integers, starts: Integers, leaving: Floats) -> list[Finding]:
    """Finding about changes of a path, if they are more or fewer than is probable."""
    follows = np.delete(np.arange(len(path)), starts)
    n_changes = np.count_nonzero(path[follows] != path[follows - 1])
    probs = leaving[path[follows - 1]]
    error = _SIGNIFICANT * np.sqrt((probs * (1 - probs)).sum())
    more, fewer = max(n_changes, probs.sum()), min(n_changes, probs.sum())
    if more - fewer <= error or more <= _LEAST_RATIO * fewer:
        return []
    seen = f"States change on {n_changes} rows, where {probs.sum():.0f} changes are expected"
    remedy = "leave out stay_prior, which fixes how long states last"
    return [Finding("prior", more / max(fewer, 1.0), seen, remedy)]
