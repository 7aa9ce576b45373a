"""Posterior predictive distributions of the states' emissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skihmm._data.sequences import Sequences
from skihmm._data.validation import check_choice, check_flag, check_integer, check_probability
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Array, Floats
from skihmm._using.decoding import around, frozen_model, mean_values
from skihmm._using.fitted import FittedModel, fitted_of
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._columns import symbol_names
from skihmm.emissions._given import n_given, typical_given
from skihmm.emissions._inputs import WithInputs
from skihmm.inspection._display import Display
from skihmm.inspection._room import fitted_text, shortened, size_in_points, text_width
from skihmm.inspection._style import (
    SEQUENTIAL,
    Columns,
    as_text,
    check_fitted_hmm,
    check_states,
    column_names,
    ink,
    ink_on,
    lay_out,
    places_of_columns,
    set_label,
    set_state_ticks,
    state_colour,
    state_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


KINDS = ("auto", "density", "interval", "top", "matrix")
# Kinds of plots of a column; the first one is "auto".
_KINDS_OF = {
    "symbols": ("matrix", "top"),
    "real": ("density", "interval"),
    "counts": ("density", "interval"),
    "binary": ("interval",),
}

# With more symbols "auto" shows the most probable ones only.
_MOST_SYMBOLS = 16
# Longer symbols are cut.
_LONGEST = 12
# The most probable symbols have this probability or more, or, of more symbols than a hundred, more
# than if all were as probable.
_LEAST = 0.01

# Draws of every state for quantiles; points of a density.
_N_DRAWS, _N_POINTS = 4000, 200
# More inputs are not listed, and longer names of them are cut.
_MOST_INPUTS, _LONGEST_INPUT = 3, 30
# Tail probability outside of the range of a density.
_TAIL = 0.002


def column_kinds(fitted: FittedModel) -> list[str]:
    """Kind of each column of X: "symbols", "real", "counts", "binary" or "context"."""
    observed = fitted.observed
    kinds = ["context"] * fitted.columns.number
    columns = fitted.emission.columns(len(observed))
    for c, kind in zip(observed[columns.order], columns.kinds, strict=True):
        kinds[c] = str(kind)
    return kinds


def _points(values: Floats, kind: str, is_positive: bool) -> Floats:
    """Points at which a density is evaluated: the range of one state's draws.

    Points of positive numbers are positive.
    """
    low, high = np.quantile(values, (_TAIL, 1 - _TAIL))
    if kind == "counts":
        return np.unique(np.rint(np.linspace(np.floor(low), np.ceil(high), _N_POINTS)))
    if low == high:
        # A constant column gets the narrowest range of floats.
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    margin = 0.1 * (high - low)
    start = low if is_positive and low <= margin else low - margin
    return np.asarray(np.linspace(start, high + margin, _N_POINTS))


def at_inputs(part: BaseEmission, but: int = -1) -> str:
    """Say at which inputs a plot is, but for one of them; empty without inputs."""
    if not isinstance(part, WithInputs):
        return ""
    # (A subject comes after the inputs.)
    labels = [c if isinstance(c, str) else f"column {c}" for c in part.input_labels()]
    named = zip(labels, typical_given(part), strict=False)
    shown = [
        f"{shortened(label, _LONGEST_INPUT)} = {value:.3g}"
        for i, (label, value) in enumerate(named)
        if i != but
    ]
    if len(shown) > _MOST_INPUTS:
        return f"at the means of {len(shown)} inputs"
    return f"at {', '.join(shown)}" if shown else ""


def column_predictives(
    fitted: FittedModel, probability: float, seed: int, context: object = None
) -> list[Bunch]:
    """Posterior predictive distributions of the selected draw's states, by column.

    Distributions are in the order of the columns of X, without contexts; see
    :class:`EmissionDisplay`.  `seed` is for the draws whose quantiles are the ends of the
    intervals.
    """
    emission, observed = fitted.emission, fitted.observed
    n_features = len(observed)
    missing = fitted.missing_row(context)
    inputs = missing[0, n_features:] if n_given(emission) else None

    frozen = fitted.model_without_data()
    startprob = frozen.transition_matrix()[0]
    predictives = frozen.predictives(inputs)
    n_states = len(startprob)
    # Draws of symbols are not used.
    limits = [p.shape[1] if p.ndim == 2 else 0 for p in predictives]
    values: list[Array] = []
    if 0 in limits:
        states = np.repeat(np.arange(n_states), _N_DRAWS)
        stream = RandomStream(np.random.SeedSequence(seed))
        many = None if inputs is None else np.tile(inputs, (len(states), 1))
        values = frozen.draw_values(states, limits, stream, many)

    names = column_names(fitted)
    bunches = [Bunch() for _ in range(n_features)]
    columns = emission.columns(n_features)
    offsets, periods = columns.offsets, columns.periods
    tail = (1 - probability) / 2
    for place, (at, predictive) in enumerate(zip(columns.order, predictives, strict=True)):
        part, kind = emission.parts[columns.part[place]].emission, str(columns.kinds[place])
        column = Bunch(name=names[observed[at]], kind=kind, inputs=at_inputs(part))
        bunches[at] = column
        if kind == "symbols":
            column.symbols = symbol_names(part, columns.numbers[place], predictive.shape[1])
            column.probabilities = predictive
            continue
        mean = mean_values(predictive, periods[place])
        drawn = values[place].reshape(n_states, _N_DRAWS).astype(float)
        drawn = around(drawn, mean[:, None], periods[place])
        column.mean = mean + offsets[place]
        column.lower, column.upper = (
            (column.mean, column.mean)
            if kind == "binary"
            else np.quantile(drawn, (tail, 1 - tail), axis=1) + offsets[place]
        )
        column.points = column.density = None
        if kind == "binary":
            continue
        points = [_points(row, kind, part.is_positive_only) for row in drawn]
        codes = np.repeat(missing, sum(map(len, points)), axis=0)
        codes[:, place] = np.concatenate(points)
        if emission.is_missing(codes).any():
            continue  # this column alone has no distribution that can be evaluated
        # By Bayes' rule the density of a point under a state is the probability of the state given
        # the point, times the point's density, over the state's probability.
        every_row = Sequences(codes, np.arange(len(codes), dtype=np.intp))
        model = frozen_model(fitted.selected, every_row, emission)
        log_probs, probs = model.filter(with_probs=True)
        given = np.exp(log_probs)[:, None] * probs / startprob
        ends = np.cumsum([len(row) for row in points])
        column.points = [row + offsets[place] for row in points]
        column.density = [
            given[end - len(row) : end, k]
            for k, (row, end) in enumerate(zip(points, ends, strict=True))
        ]
    return bunches


@dataclass(eq=False, repr=False)
class EmissionDisplay(Display):
    """Emissions of the states of the selected draw, one panel per column of the data.

    Probabilities and densities belong to the posterior predictive distribution of each
    state, with parameters integrated out.

    Use :meth:`from_estimator` to create and plot one.

    Parameters
    ----------
    columns : list of Bunch
        One for every column but contexts and inputs, with ``name`` and ``kind``:
        "symbols", "real", "counts" or "binary".  States are in the order of their labels,
        the new state is last.  Symbols have ``symbols``, a list of n_symbols strings, and
        ``probabilities`` of shape (n_states + 1, n_symbols).  Numbers have ``mean``,
        ``lower`` and ``upper`` of shape (n_states + 1,) (all three the probability of 1
        for binary columns), and ``points`` and ``density``, lists with an array for each
        state (None without a marginal density).  ``inputs``, the title of a panel, has
        the inputs of a regression.
    probability : float
        Probability of the central intervals from ``lower`` to ``upper``.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each column drawn.
    figure_ : matplotlib Figure

    See Also
    --------
    RegressionDisplay : Draw the effects of inputs.
    skihmm.posterior.parameter_intervals : Intervals of the parameters as numbers.

    Notes
    -----
    The emission evaluates densities, for several columns of a
    :class:`~skihmm.emissions.NormalInverseWishart` marginal densities.  Densities of
    autoregressions depend on earlier rows, so the display shows means and intervals.

    Inputs are at their means in the fit (the titles of panels).  Trials and exposures are
    one.

    Ends of intervals are quantiles of 4,000 draws of each state, with a fixed seed.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.inspection import EmissionDisplay
    >>> X = [["sun"], ["sun"], ["rain"]] * 30
    >>> hmm = HCRPHMM(n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> display = EmissionDisplay.from_estimator(hmm)
    >>> display.columns[0].symbols
    ['rain', 'sun', '(unseen)']
    """

    columns: Sequence[Bunch]
    _: KW_ONLY
    probability: float

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM,
        *,
        context: object = None,
        columns: Columns | None = None,
        kind: str = "auto",
        states: ArrayLike | None = None,
        new_state: bool = False,
        n_top: int = 8,
        names: Mapping[int, str] | None = None,
        probability: float = 0.9,
        ax: Axes | None = None,
    ) -> EmissionDisplay:
        """Plot the emissions of a fitted model.

        Parameters
        ----------
        hmm : HCRPHMM
            Fitted.
        context : number, str or tuple, default=None
            Context of an emission with ``context_features``: a value of the first column,
            or a tuple of values of the first columns, in the order of the parts of a
            product, each once.  None: the emissions of a step without one.
        columns, kind, states, new_state, n_top, names, ax
            As in :meth:`plot`.
        probability : float, default=0.9
            Probability of the central intervals.

        Returns
        -------
        display : EmissionDisplay
        """
        hmm = check_fitted_hmm(hmm)
        probability = check_probability("probability", probability)
        predictives = column_predictives(fitted_of(hmm), probability, 0, context)
        display = cls(predictives, probability=probability)
        return display.plot(
            ax,
            columns=columns,
            kind=kind,
            states=states,
            new_state=new_state,
            n_top=n_top,
            names=names,
        )

    def _chosen_columns(self, columns: Columns | None) -> list[Bunch]:
        places = places_of_columns(columns, [column.name for column in self.columns])
        found = [self.columns[place] for place in places]
        if not found:
            raise ValueError("columns is empty; expected one or more, or None.")
        return found

    def _chosen_states(self, states: ArrayLike | None, new: bool) -> NDArray[np.intp]:
        n = _n_states(self.columns[0])
        chosen = np.arange(n, dtype=np.intp) if states is None else check_states(states, n)
        return np.append(chosen, n) if new else chosen

    def _kind(self, column: Bunch, kind: str) -> str:
        possible = _KINDS_OF[column.kind]
        if column.kind in ("real", "counts") and column.density is None:
            possible = ("interval",)
        if kind == "auto":
            if column.kind == "symbols" and len(column.symbols) > _MOST_SYMBOLS:
                return "top"
            return possible[0]
        if kind not in possible:
            listed = " or ".join(repr(one) for one in possible)
            raise ValueError(
                f"kind={kind!r} cannot show {column.name!r}; it can be shown as {listed}."
                " Set kind='auto', or choose `columns`."
            )
        return kind

    def plot(
        self,
        ax: Axes | None = None,
        *,
        columns: Columns | None = None,
        kind: str = "auto",
        states: ArrayLike | None = None,
        new_state: bool = False,
        n_top: int = 8,
        names: Mapping[int, str] | None = None,
    ) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to divide into panels, or the axes of all panels.  None: a new figure.
        columns : int, str or list of these, default=None
            Indices or names of the columns to show.  None: all.
        kind : {"auto", "density", "interval", "top", "matrix"}, default="auto"
            "density": a ridge of equal height per state, of numbers (counts:
            probabilities).  "interval": means and central intervals of numbers, or
            probabilities of 1 for ones and zeros.  "top": the most probable symbols of
            every state, without those below 1 % (of n > 100 symbols, below 1 / n).
            "matrix": the probabilities of all symbols.  "auto": the first
            of these that the column allows, but "matrix" for up to 16 symbols.
        states : array-like of int, default=None
            States to show, from top to bottom.  None: all.
        new_state : bool, default=False
            Also show the new state, last.
        n_top : int, default=8
            Most symbols of every state with "top".
        names : mapping of {int: str}, default=None
            Names of states in this picture, such as ``{2: "REM"}``.  States without a name
            keep their numbers.

        Returns
        -------
        self : EmissionDisplay
        """
        check_choice("kind", kind, KINDS)
        check_flag("new_state", new_state)
        n_top = check_integer("n_top", n_top, 1)
        chosen = self._chosen_columns(columns)
        shown = self._chosen_states(states, new_state)
        kinds = [self._kind(column, kind) for column in chosen]
        n_rows = len(shown)
        widest = "top" in kinds
        width = (0.8 * n_top + 1.5 if widest else 4.8) if len(chosen) == 1 else 4.0
        n_columns = min(len(chosen), 2 if widest else 3)
        height = min(12.0, max(2.4, 0.9 + (0.24 if n_rows > 12 else 0.36) * n_rows))
        self.axes_ = self._panels(
            ax,
            len(chosen),
            (width * n_columns, height * -(-len(chosen) // n_columns)),
            n_columns=n_columns,
        )
        n = _n_states(self.columns[0])
        colours = [state_colour(k, n) for k in range(n + 1)]
        every = state_labels(names, n)
        labels = [every[k] for k in shown]
        for one, column, how in zip(self.axes_, chosen, kinds, strict=True):
            one.set_ylim(n_rows - 0.5, -0.5)
            one.set_ylabel("state")
            if how == "density":
                self._plot_density(one, column, shown, colours)
            elif how == "interval":
                self._plot_interval(one, column, shown, colours)
            elif how == "top":
                self._plot_top(one, column, shown, n_top)
            else:
                self._plot_matrix(one, column, shown)
        lay_out(self.axes_[0])
        for one, column, how in zip(self.axes_, chosen, kinds, strict=True):
            set_state_ticks(one.yaxis, labels)
            if how == "matrix":
                set_state_ticks(one.xaxis, [_cut(symbol) for symbol in column.symbols])
        lay_out(self.axes_[0])
        for one, column, how in zip(self.axes_, chosen, kinds, strict=True):
            set_label(one.xaxis, self._label(column, how))
            if column.get("inputs"):
                title = one.set_title("", fontsize="small")
                room, size = size_in_points(one)[0], title.get_fontsize()
                title.set_text(fitted_text(column.inputs, room, size, 4))
            if how == "top":
                self._write_symbols(one, column, shown, n_top)
        return self

    def _label(self, column: Bunch, how: str) -> str:
        """Label of the axis of a column."""
        if how == "top":
            return f"{column.name}: most probable symbols"
        if how != "interval":
            return str(column.name)
        if column.kind == "binary":
            return f"probability that {column.name} is 1"
        return f"{column.name}: mean, {100 * self.probability:g} % interval"

    def _plot_density(
        self, ax: Axes, column: Bunch, shown: NDArray[np.intp], colours: list[str]
    ) -> None:
        is_counts = column.kind == "counts"
        for row, k in enumerate(shown):
            points, density = column.points[k], column.density[k]
            # Ridges extend into the row above, behind which they are.
            height = 1.25 * density / density.max()
            if is_counts:
                # Steps as wide as the distance of the points, down to zero at both ends.
                step = np.diff(points).min() if len(points) > 1 else 1.0
                points = np.r_[points[0] - step, points, points[-1] + step]
                height = np.r_[0.0, height, 0.0]
            base, front = row + 0.45, 2 + 0.02 * row
            ax.fill_between(
                points,
                base,
                base - height,
                step="mid" if is_counts else None,
                facecolor=colours[k],
                linewidth=0,
                zorder=front,
            )
            # An outline in the colour of the background separates ridges that overlap.
            ax.plot(
                points,
                base - height,
                drawstyle="steps-mid" if is_counts else "default",
                color=ink(1),
                linewidth=0.6,
                zorder=front + 0.01,
            )
            ax.axhline(base, color=ink(0.8), linewidth=0.5, zorder=1)
        ax.set_ylim(len(shown) - 0.5, -0.95)

    def _plot_interval(
        self, ax: Axes, column: Bunch, shown: NDArray[np.intp], colours: list[str]
    ) -> None:
        for row, k in enumerate(shown):
            if column.kind == "binary":
                ax.barh(
                    row, column.mean[k], height=0.7, color=colours[k], edgecolor=ink(0.2),
                    linewidth=0.5,
                )  # fmt: skip
                continue
            ax.hlines(row, column.lower[k], column.upper[k], colors=colours[k], lw=3)
            ax.plot(column.mean[k], row, "o", color=colours[k], markeredgecolor=ink(0.2), ms=5)
        if column.kind == "binary":
            ax.set_xlim(0, 1)
        ax.grid(axis="x", color=ink(0.9))
        ax.set_axisbelow(True)

    def _plot_matrix(self, ax: Axes, column: Bunch, shown: NDArray[np.intp]) -> None:
        values = column.probabilities[shown]
        image = ax.imshow(values, cmap=SEQUENTIAL, vmin=0, vmax=values.max(), aspect="auto")
        self.figure_.colorbar(image, ax=ax, label="probability")

    def _plot_top(self, ax: Axes, column: Bunch, shown: NDArray[np.intp], n_top: int) -> None:
        places, values = _top(column, shown, n_top)
        image = ax.imshow(values, cmap=SEQUENTIAL, vmin=0, vmax=np.nanmax(values), aspect="auto")
        self.figure_.colorbar(image, ax=ax, label="probability")
        ax.set_xticks(np.arange(places.shape[1]), np.arange(1, places.shape[1] + 1))
        # Lines between the cells.
        ax.set_xticks(np.arange(places.shape[1] + 1) - 0.5, minor=True)
        ax.grid(which="minor", axis="x", color=ink(1), linewidth=1)
        ax.tick_params(which="minor", length=0)

    def _write_symbols(self, ax: Axes, column: Bunch, shown: NDArray[np.intp], n_top: int) -> None:
        """Write the symbols into the cells, as large as they fit."""
        image = ax.images[0]
        places, values = _top(column, shown, n_top)
        width, height = np.divide(size_in_points(ax), (places.shape[1], len(shown)))
        texts = [[_cut(column.symbols[s]) for s in row] for row in places]
        longest = max(text_width(text, 1.0) for row in texts for text in row)
        size = min(10.0, 0.8 * height, 0.94 * width / longest)
        for row, rank in np.argwhere(~np.isnan(values)):
            ax.text(
                rank,
                row,
                texts[row][rank],
                ha="center",
                va="center",
                fontsize=size,
                color=ink_on(image.to_rgba(values[row, rank])),
            )


def _n_states(column: Bunch) -> int:
    """Number of states of a column, without the new state."""
    return len(column.probabilities if column.kind == "symbols" else column.mean) - 1


def _top(column: Bunch, shown: NDArray[np.intp], n_top: int) -> tuple[NDArray[np.intp], Floats]:
    """Indices and probabilities of the most probable symbols of every state shown.

    Improbable symbols have NaN, but for the first symbol of a state.
    """
    table = column.probabilities[shown]
    order = np.argsort(-table, axis=1, kind="stable")[:, :n_top]
    values = np.take_along_axis(table, order, axis=1)
    is_shown = values >= min(_LEAST, 1 / table.shape[1])
    is_shown[:, 0] = True
    n = is_shown.sum(axis=1).max()
    return order[:, :n], np.where(is_shown, values, np.nan)[:, :n]


def _cut(symbol: str) -> str:
    return as_text(symbol, _LONGEST)
