"""Summary of a fit: a table with a row for every state."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from skihmm._data.frames import frame_of_columns
from skihmm._texts import html_table, percent, printable, state_names, unique_texts, wrapped
from skihmm._typing import Array, Flags, Floats, Integers, Labels
from skihmm._using.decoding import around
from skihmm._using.fitted import FittedModel
from skihmm._using.stays import drawn_slopes
from skihmm.emissions._base import BaseEmission, Part
from skihmm.emissions._columns import symbol_names
from skihmm.emissions._spec import StateNumber
from skihmm.emissions._subjects import subjects_by_column
from skihmm.posterior._parameters import sampled_parameters
from skihmm.posterior._regimes import FoundRegimes
from skihmm.posterior._segments import are_left, borders_of
from skihmm.posterior._summaries import quantiles

# Probability of the intervals.
_LEVEL = 0.9
# Drawn parameters behind an interval: its ends vary by a tenth of its width.  Twice as
# many would take half a per cent of a fit of 10,000 rows more.
_N_SAMPLES = 100
# Next states and symbols with a smaller probability are not printed, nor correlations in states
# with a smaller share.
_LEAST = 0.01
# States of a printed table, its width, and rows of a table with a row for every parameter.
_MOST_ROWS, _WIDTH, _MOST_PARAMETERS = 12, 100, 24
# Upper ends of dwell times of more than so many times the steps of the data are infinite.
_MOST_TIMES = 1000
# Parameters of one column that are printed, states that follow, symbols, and subjects'
# columns.
_PER_COLUMN, _N_NEXT, _N_TOP, _MOST_OFFSETS = 3, 2, 2, 3
# Cells into which numbers are cut to see how well they tell states apart.
_N_CELLS = 12
# Correlations from which a line names them, and how many.
_LEAST_CORRELATION, _MOST_CORRELATIONS = 0.5, 4


# Name of a printed column, and its cells.
_Cells = tuple[str, list[str]]


@dataclass(frozen=True)
class Group:
    """States, or regimes: how often, how long and what follows.

    Attributes
    ----------
    shares : ndarray of shape (n,)
        Of the steps.
    n_segments : ndarray of shape (n,), int
    dwell_times : ndarray of shape (n, 3)
        Expected number of steps, and its interval, NaN where it is not known.
    next_states : ndarray of shape (n, 2), int
        Most probable next ones, other than the state itself; -1 where there is none.
    next_probabilities : ndarray of shape (n, 2)
        Given that the state is left.
    are_left : ndarray of shape (n,), bool
        Whether another one follows in the path.
    n_steps : int
        Length of the path.
    """

    shares: Floats
    n_segments: Integers
    dwell_times: Floats
    next_states: Labels
    next_probabilities: Floats
    are_left: Flags
    n_steps: int

    @classmethod
    def of_path(
        cls,
        path: Labels,
        starts: NDArray[np.intp],
        ends: Flags,
        dwell_times: Floats,
        transmat: Floats,
    ) -> Group:
        """Count the segments of a path; the last row and column are a new state.

        `ends` masks steps that belong to no segment.
        """
        n = len(dwell_times)
        begins = borders_of(path, starts, ends)[:-1]
        begins, inside = begins[~ends[begins]], path[~ends]
        off = transmat[:n] * (1 - np.eye(n, n + 1))
        totals = off.sum(axis=1, keepdims=True)
        off = np.divide(off, totals, out=np.zeros_like(off), where=totals > 0)[:, :n]
        order = np.argsort(-off, axis=1, kind="stable")[:, :_N_NEXT]
        probs = np.zeros((n, _N_NEXT))
        probs[:, : order.shape[1]] = np.take_along_axis(off, order, axis=1)
        following = np.full((n, _N_NEXT), -1, dtype=np.int32)
        following[:, : order.shape[1]] = order
        following[probs == 0] = -1
        return cls(
            np.bincount(inside, minlength=n) / max(len(inside), 1),
            np.bincount(path[begins], minlength=n),
            dwell_times,
            following,
            probs,
            are_left(path, starts, n, ends),
            len(path),
        )


class Parameter(NamedTuple):
    """One parameter of all states, or their most probable symbols.

    Attributes
    ----------
    values : ndarray of shape (n_states, 3)
        Posterior median, and ends of the interval, over all draws.
    symbols : list of list of str
        Instead the most probable symbols of every state in one column of X, whose
        probabilities are `values`.
    is_shown : bool
        Whether it is printed.
    separation : float
        How well its column tells states apart, nats.
    """

    values: Floats
    symbols: list[list[str]] | None = None
    is_shown: bool = True
    separation: float = 0.0


class Summary:
    """Summary of a fitted model, which prints as a table.

    :meth:`skihmm.HCRPHMM.summary` returns one; a notebook shows it as a table.

    Parameters
    ----------
    verdict : str
        First line.
    title : str
        Second line.
    states : Group
    regimes : Group or None
    state_regimes : ndarray of shape (n_states,) or None
        Regime of every state.
    parameters : list of (str, Parameter)
        With their names, in the order of the columns of X.
    subjects : list of str
        Lines on the subjects.
    library : str, default="pandas"
        Library of :meth:`to_frame`.
    names : list of str, optional
        Names of the states.  By default their numbers.
    correlations : str, default=""
        Line on columns that are correlated within states.

    Attributes
    ----------
    verdict : str
        The verdict of :meth:`skihmm.HCRPHMM.diagnose`.
    shares, n_segments : ndarray of shape (n_states,)
        Share of the steps in every state, and number of its segments in ``labels_``,
        without missing rows at the beginning and end of sequences.
    dwell_times : ndarray of shape (n_states, 3)
        Posterior median over all draws of the expected number of steps, and the lower and
        upper end of an interval of 90 %; ``dwell_times_`` and NaN without paths of the draws.
    next_states : ndarray of shape (n_states, 2), int
        The two most probable next states other than the state itself, -1 for none.
    next_probabilities : ndarray of shape (n_states, 2)
        Their probabilities if the state is left.
    parameters : dict of {str: ndarray of shape (n_states, 3)}
        Of numbers, by name such as ``"x0 mean"``: posterior median over all draws, and ends
        of an interval of 90 %.  ``emission_`` has the numbers of the selected draw, which
        may be outside of the interval.  A name that is there already gets a number.
    symbols : dict of {str: (list of list of str, ndarray of shape (n_states, n))}
        Of columns of symbols the most probable ones of every state, and probabilities.
    regimes : Group or None
        Numbers of regimes, if there are fewer than states.
    state_regimes : ndarray of shape (n_states,) or None
        Regime of every state.
    subjects : list of str
        What is known of the subjects, a line for each part of the emission.
    names : list of str
        Names of the states.
    correlations : str
        The strongest correlations of columns within states, from 0.5 on, of emissions with full
        covariances.

    See Also
    --------
    skihmm.HCRPHMM.summary : Summarise a fit.
    parameter_intervals : The intervals as arrays.

    Notes
    -----
    Columns are printed in the order of how well they tell the states apart: by the mutual
    information of a column, numbers in twelve cells, and the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> X = np.repeat([[0.0], [9.0]] * 10, [30, 20] * 10, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, random_state=0).fit(X)
    >>> summary = hmm.summary()
    >>> summary.shares, summary.n_segments
    (array([0.6, 0.4]), array([10, 10]))
    >>> summary.parameters["x0 mean"].round(1)
    array([[-0. , -0.2,  0.1],
           [ 9. ,  8.9,  9.1]])
    """

    def __init__(
        self,
        verdict: str,
        title: str,
        states: Group,
        regimes: Group | None,
        state_regimes: Labels | None,
        parameters: Sequence[tuple[str, Parameter]],
        subjects: list[str],
        library: str = "pandas",
        names: list[str] | None = None,
        correlations: str = "",
    ) -> None:
        self.verdict, self._title = verdict, title
        self.names = names or state_names(None, len(states.shares))
        self.correlations = correlations
        self._states, self.regimes = states, regimes
        self.state_regimes = state_regimes
        self.shares, self.n_segments = states.shares, states.n_segments
        self.dwell_times = states.dwell_times
        self.next_states = states.next_states
        self.next_probabilities = states.next_probabilities
        texts = unique_texts(name for name, _ in parameters)
        self._parameters = dict(zip(texts, (each for _, each in parameters), strict=True))
        self.parameters = {
            name: each.values for name, each in self._parameters.items() if not each.symbols
        }
        self.symbols = {
            name: (each.symbols, each.values)
            for name, each in self._parameters.items()
            if each.symbols
        }
        self.subjects = subjects
        self._library = library

    # ---- as a frame

    def to_frame(self) -> Any:
        """Convert to a data frame with a row for every state.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame if that came in
            All states, in the order of their labels, and all parameters, in the order of the
            columns of X; intervals are columns that end in ``lower`` and ``upper``.  States
            that have names have a column ``name``.
        """
        columns: list[tuple[str, Array]] = [("state", np.arange(len(self.shares)))]
        if self.names != state_names(None, len(self.shares)):
            columns.append(("name", np.array(self.names, dtype=object)))
        if self.state_regimes is not None:
            columns.append(("regime", self.state_regimes))
        columns += [("share", self.shares), ("n_segments", self.n_segments)]
        columns += _with_ends("dwell_time", self.dwell_times)
        for i, order in enumerate(("next", "second_next")):
            columns.append((f"{order}_state", self.next_states[:, i]))
            columns.append((f"{order}_probability", self.next_probabilities[:, i]))
        for name, parameter in self._parameters.items():
            if parameter.symbols is None:
                columns += _with_ends(name, parameter.values)
                continue
            for i in range(parameter.values.shape[1]):
                symbols = np.array([each[i] for each in parameter.symbols], dtype=object)
                columns.append((f"{name} {i}", symbols))
                columns.append((f"{name} {i} probability", parameter.values[:, i]))
        return frame_of_columns(self._library, columns)

    # ---- as text

    def _tables(self) -> Iterator[tuple[list[list[str]], str]]:
        """Rows of cells, the first one the header, and lines below."""
        if self.regimes is not None and self.state_regimes is not None:
            numbers = [str(regime) for regime in range(len(self.regimes.shares))]
            members = [
                _listed([self.names[k] for k in np.flatnonzero(self.state_regimes == regime)])
                for regime in range(len(numbers))
            ]
            rows, rest = _table("regime", self.regimes, numbers, [], [("states", members)])
            how = (
                "Regimes have a most probable path of their own: hmm.regimes_; "
                "segments: hmm.segments(states=hmm.regimes_)."
            )
            yield rows, f"{rest}\n{how}".lstrip()
        before = []
        if self.state_regimes is not None:
            before = [("regime", [str(regime) for regime in self.state_regimes])]
        shown = {name: each for name, each in self._parameters.items() if each.is_shown}
        # What tells states apart comes first; the hundredths are noise.
        order = sorted(shown, key=lambda name: -round(shown[name].separation, 2))
        after = [(name, _cells(shown[name])) for name in order]
        n_left = len(self._parameters) - len(after)
        rows, rest = _table("state", self._states, self.names, before, after)
        pieces, n = [(rows, rest)], len(rows[0]) - len(after)
        if _fitting(rows) < len(rows[0]):
            # Parameters have a table of their own; if they are many, with a row for each.
            own = [[row[0], *row[n:]] for row in rows]
            pieces = [([row[:n] for row in rows], rest), (own, "")]
            if _fitting(own) < len(own[0]):
                after = [(name, _cells(shown[name], with_rest=False)) for name in order]
                medians, _ = _table("state", self._states, self.names, before, after)
                pieces[1], n_more = _turned(own, [[row[0], *row[n:]] for row in medians])
                n_left += n_more
        if n_left:
            text = f"and {n_left} more parameter{'s' * (n_left > 1)} in to_frame()"
            rows, rest = pieces[-1]
            pieces[-1] = rows, f"{rest}\n{text}".lstrip()
        yield from pieces

    def _lines(self) -> list[str]:
        """Lines below the tables."""
        return [*([self.correlations] if self.correlations else []), *self.subjects]

    def __repr__(self) -> str:
        lines = [wrapped(self.verdict, _WIDTH), self._title]
        for rows, rest in self._tables():
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines.append("")
            for row in rows:
                cells = zip(row, widths, strict=True)
                lines.append("  ".join(f"{cell:<{w}}" for cell, w in cells).rstrip())
            lines += [rest] if rest else []
        lines += ["", *map(printable, self._lines())] if self._lines() else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self.verdict)}</b><br>{html.escape(self._title)}</p>"]
        for rows, rest in self._tables():
            parts.append(html_table(rows))
            parts += [f"<p>{html.escape(line)}</p>" for line in rest.splitlines()]
        parts += [f"<p>{html.escape(line)}</p>" for line in self._lines()]
        return "\n".join(parts)


def _with_ends(name: str, values: Floats) -> list[tuple[str, Array]]:
    names = (name, f"{name} lower", f"{name} upper")
    return list(zip(names, values.T, strict=True))


def _percent(share: float) -> str:
    return percent(share) if share >= 0.005 else "<1 %"


def _listed(members: list[str]) -> str:
    return ", ".join(members[:6] + ["..."] * (len(members) > 6))


def _number(value: float) -> str:
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def _ranged(values: Floats) -> str:
    """Number and its interval, as far as they are known."""
    mean, low, high = map(_number, values)
    return mean if np.isnan(values[1:]).any() else f"{mean} [{low}, {high}]"


def _dwell_text(values: Floats, is_left: bool, n_steps: int) -> str:
    """Dwell time; of a state that is never left the data bound the lower end alone."""
    median, low, high = values
    if not is_left:
        return f"> {_number(median if np.isnan(low) else low)} (never left)"
    return _ranged(np.array([median, low, np.inf if high > _MOST_TIMES * n_steps else high]))


def _cells(parameter: Parameter, with_rest: bool = True) -> list[str]:
    """Cells of a parameter, with intervals, or with more than the most probable symbol."""
    if parameter.symbols is None:
        return [_ranged(values) if with_rest else _number(values[0]) for values in parameter.values]
    n = _N_TOP if with_rest else 1
    return [
        ", ".join(
            f"{symbol} ({_percent(p)})"
            for symbol, p in zip(names[:n], probs[:n], strict=True)
            if p >= _LEAST
        )
        for names, probs in zip(parameter.symbols, parameter.values, strict=True)
    ]


def _turned(
    with_intervals: list[list[str]], medians: list[list[str]]
) -> tuple[tuple[list[list[str]], str], int]:
    """Table of parameters with a row for each, a line below it, and how many are left out.

    Medians without intervals if states do not fit otherwise.
    """
    below: list[str] = []
    turned = list(map(list, zip(*with_intervals, strict=True)))[: _MOST_PARAMETERS + 1]
    if _fitting(turned) < len(turned[0]):
        turned = list(map(list, zip(*medians, strict=True)))[: _MOST_PARAMETERS + 1]
        below.append("Medians; to_frame() has the intervals.")
    n = max(_fitting(turned), 2)
    if n_left := len(turned[0]) - n:
        below.append(f"and {n_left} more state{'s' * (n_left > 1)} in to_frame()")
    return ([row[:n] for row in turned], "\n".join(below)), len(medians[0]) - len(turned)


def _table(
    kind: str, group: Group, names: list[str], before: list[_Cells], after: list[_Cells]
) -> tuple[list[list[str]], str]:
    """Cells of the largest states, or regimes, and a line on the remaining ones."""
    may_go_on = group.are_left | (group.n_segments == 0)
    # What follows a state that is never left is the prior.
    following = [
        ", ".join(
            f"{names[k]} ({_percent(p)})"
            for k, p in zip(states, probs, strict=True)
            if p >= _LEAST and is_left
        )
        for states, probs, is_left in zip(
            group.next_states.tolist(), group.next_probabilities, may_go_on, strict=True
        )
    ]
    dwell_times = [
        _dwell_text(values, bool(is_left), group.n_steps)
        for values, is_left in zip(group.dwell_times, may_go_on, strict=True)
    ]
    # Pairs: a column of symbols may have a name that is here already.
    columns: list[_Cells] = [
        (kind, names),
        *before,
        ("share", [_percent(share) for share in group.shares]),
        ("segments", [str(n) for n in group.n_segments]),
        ("dwell time", dwell_times),
        (f"next {kind}", [text or "-" for text in following]),
        *after,
    ]
    order = np.argsort(-group.shares, kind="stable")
    shown, others = order[:_MOST_ROWS], order[_MOST_ROWS:]
    rows = [[name for name, _ in columns], *([cells[k] for _, cells in columns] for k in shown)]
    rows = [[printable(cell) for cell in row] for row in rows]
    if not len(others):
        return rows, ""
    share, s = _percent(group.shares[others].sum()), "s" * (len(others) > 1)
    return rows, f"and {len(others)} {kind}{s} with {share} of the steps"


def _fitting(rows: list[list[str]]) -> int:
    """Number of columns that fit into the width."""
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    return max(1, int((np.cumsum(widths) - 2 <= _WIDTH).sum()))


# ---- from a fit


def summarise(
    fitted: FittedModel, found: FoundRegimes, verdict: str, library: str, names: object = None
) -> Summary:
    """Summary of a fitted model, with frames of a library; see ``HCRPHMM.summary``.

    The verdict comes from ``HCRPHMM.diagnose``, `names` of states from the user.
    """
    sequences = fitted.sequences
    starts, n = sequences.starts, fitted.n_states
    texts = state_names(names, n)
    ends = fitted.missing_ends(sequences)
    seed = int(fitted.entropy[0]) % 2**32
    means = fitted.dwell_law.mean
    dwell_times = _without_interval(means)
    samples: dict[str, Floats] = {}
    has_paths = fitted.draws.has_states
    if has_paths:
        samples = sampled_parameters(fitted, _N_SAMPLES, seed, with_dwell_times=True)
        dwell_times = _with_interval(means, samples["dwell_times_"])
    states = Group.of_path(fitted.labels, starts, ends, dwell_times, fitted.transmat)
    regimes, state_regimes = _regimes_of(fitted, found, ends)
    n_sequences = len(starts)
    of = f" of {n_sequences} sequences" if n_sequences > 1 else ""
    title = f"{n} state{'s' * (n > 1)} in {np.sum(~ends)} steps{of}"
    title += "; [intervals] have 90 % probability." if has_paths else "."
    return Summary(
        verdict,
        title,
        states,
        regimes,
        state_regimes,
        list(_parameters_of(fitted, samples)),
        _subjects_of(fitted),
        library,
        texts,
        _correlations_of(fitted, samples, texts),
    )


def _regimes_of(
    fitted: FittedModel, found: FoundRegimes, ends: Flags
) -> tuple[Group | None, Labels | None]:
    """Regimes and the regimes of the states, if there are fewer of them than states.

    States of symbols are not joined, as in ``HCRPHMM.diagnose``.
    """
    if fitted.emission.is_categorical:
        return None, None
    try:
        regimes = found()
    except ValueError:  # which says where there are none
        return None, None
    if not regimes.n_regimes_ < fitted.n_states:
        return None, None
    starts, dwell_times = fitted.sequences.starts, _without_interval(regimes.dwell_times_)
    group = Group.of_path(regimes.labels_, starts, ends, dwell_times, regimes.transmat_)
    return group, regimes.state_regimes_


def _parameters_of(
    fitted: FittedModel, samples: dict[str, Floats]
) -> Iterator[tuple[str, Parameter]]:
    """Parameters by name: of staying, and of the columns of X in their order."""
    yield from _staying_of(fitted, samples)
    names, emission = fitted.observed_labels, fitted.emission
    tables = fitted.model_without_data().predictives(fitted.without_context())
    columns, parts = emission.columns(len(names)), emission.parts
    listed = [_numbers_of(part) for part in parts]
    for place in np.argsort(columns.order):
        part, c = columns.part[place], columns.numbers[place]
        name = str(names[columns.order[place]])
        values = fitted.sequences.codes[:, place]
        if columns.are_symbols[place]:
            values = np.where(values < 0, np.nan, values)  # missing
        separation = _separation(values, fitted.labels)
        if tables[place].ndim == 2:
            symbols = _top_symbols(parts[part].emission, c, tables[place][:-1])
            yield name, symbols._replace(separation=separation)
        # What an emission of the user's own draws belongs to no column.
        shown = [entry for entry in listed[part] if (entry[2].column or 0) == c]
        for i, (attribute, values, number) in enumerate(shown):
            selected = number.select(values)
            numbers = _without_interval(selected)
            drawn = samples.get(parts[part].prefix + attribute)
            if drawn is not None:
                near = around(number.select(drawn), selected, columns.periods[place])
                numbers = _with_interval(selected, near)
            of = parts[part].prefix.replace("__", " ") if number.column is None else f"{name} "
            shown_as = Parameter(numbers, is_shown=i < _PER_COLUMN, separation=separation)
            yield of + number.word, shown_as


def _separation(values: Array, labels: Labels) -> float:
    """Mutual information of a column and the labels, nats, without what chance adds to it.

    Of numbers in cells of as many values each: states may differ in level, spread or shape.
    """
    is_known = np.isfinite(values)
    values, labels = values[is_known], labels[is_known]
    if not len(values):
        return 0.0
    edges = np.unique(np.quantile(values, np.arange(1, _N_CELLS) / _N_CELLS))
    distinct, cells = np.unique(values, return_inverse=True)
    if len(distinct) > _N_CELLS:
        cells = np.searchsorted(edges, values, side="right")
    counts = np.zeros((int(labels.max()) + 1, int(cells.max()) + 1))
    np.add.at(counts, (labels, cells), 1)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    information = float(rel_entr(counts, expected).sum() / counts.sum())
    by_chance = (counts.shape[0] - 1) * (counts.shape[1] - 1) / (2 * counts.sum())
    return max(information - by_chance, 0.0)


def _staying_of(fitted: FittedModel, samples: dict[str, Floats]) -> Iterator[tuple[str, Parameter]]:
    """Coefficients of staying, log odds per unit of every input; they come first."""
    labels = np.array(fitted.columns.labels, dtype=object)[fitted.given.stay_columns]
    for label, drawn in zip(labels, drawn_slopes(samples), strict=False):
        numbers = _with_interval(np.nanmean(drawn, axis=0), drawn)
        yield f"staying by {label}", Parameter(numbers, separation=np.inf)


def _correlations_of(fitted: FittedModel, samples: dict[str, Floats], names: list[str]) -> str:
    """Line on the strongest correlations within states, of emissions with full covariances."""
    columns = fitted.emission.columns(len(fitted.observed))
    labels, found = fitted.observed_labels, []
    sizes = np.bincount(fitted.labels, minlength=fitted.n_states)
    for i, part in enumerate(fitted.emission.parts):
        drawn = samples.get(f"{part.prefix}covariances_")
        if drawn is None or drawn.ndim != 4:
            continue
        own = labels[columns.order[columns.part == i]]
        scales = np.sqrt(np.diagonal(drawn, axis1=2, axis2=3))
        medians = np.nanmedian(drawn / (scales[..., None] * scales[..., None, :]), axis=0)
        for k, a, b in np.argwhere(np.abs(np.triu(medians, 1)) >= _LEAST_CORRELATION).tolist():
            if sizes[k] >= _LEAST * sizes.sum():
                found.append((float(medians[k, a, b]), f"{own[a]} and {own[b]}", names[k]))
    if not found:
        return ""
    found.sort(key=lambda each: -abs(each[0]))
    texts = [f"{pair} {rho:+.2f} (state {name})" for rho, pair, name in found[:_MOST_CORRELATIONS]]
    more = len(found) - len(texts)
    rest = f", and {more} more from {_LEAST_CORRELATION} on" if more else ""
    return f"Correlations within states: {', '.join(texts)}{rest}"


def _numbers_of(part: Part) -> list[tuple[str, Floats, StateNumber]]:
    """Numbers of the states that an emission has, with their attributes and its values."""
    return [
        (attribute, parameter.values, number)
        for attribute, parameter in part.emission.state_parameters.items()
        for number in parameter.numbers
    ]


def _without_interval(values: Floats) -> Floats:
    """Numbers whose intervals are not known, of shape (n_states, 3)."""
    return np.column_stack([values, np.full((len(values), 2), np.nan)])


def _with_interval(selected: Floats, samples: Floats) -> Floats:
    """Medians and ends of intervals, of shape (n_states, 3).

    States that no draw has keep the number of the selected draw, without an interval.
    """
    tail = (1 - _LEVEL) / 2
    low, median, high = quantiles(samples, np.ones(len(samples)), (tail, 0.5, 1 - tail))
    return np.column_stack([np.where(np.isnan(median), selected, median), low, high])


def _top_symbols(emission: BaseEmission, column: int, table: Floats) -> Parameter:
    """The most probable symbols of every state."""
    names = symbol_names(emission, column, table.shape[1])
    order = np.argsort(-table, axis=1, kind="stable")[:, :_N_TOP]
    values = np.take_along_axis(table, order, axis=1)
    return Parameter(values, [[names[s] for s in row] for row in order])


def _subjects_of(fitted: FittedModel) -> list[str]:
    """A line on the offsets of the subjects for every emission that has them."""
    names = fitted.observed_labels
    lines = []
    for emission, columns in subjects_by_column(fitted.emission, len(names)):
        offsets = emission.subject_offsets_
        texts = []
        for c, name in enumerate(names[columns[:_MOST_OFFSETS]]):
            own = offsets[:, c]
            ends = (int(own.argmin()), int(own.argmax()))
            low, high = (f"{own[i]:.3g} ({emission.subjects_[i]})" for i in ends)
            texts.append(f"{name} {low} to {high}")
        more = ", ..." if len(columns) > _MOST_OFFSETS else ""
        lines.append(f"{len(offsets)} subjects, offsets: {', '.join(texts)}{more}")
    return lines
