"""State sequences with their data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skihmm._data.frames import category_orders, column_types
from skihmm._data.row_index import row_times
from skihmm._data.sequences import sequence_starts
from skihmm._data.validation import (
    as_array,
    as_matrix,
    check_choice,
    check_integer,
    is_missing,
    is_number,
    unify_frame,
    unmask,
)
from skihmm._draws import PosteriorDraws
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Array, Floats, MatrixLike, VectorLike
from skihmm._using.partitions import check_path, draw_weights, state_paths
from skihmm.inspection._display import Display
from skihmm.inspection._emissions import column_kinds
from skihmm.inspection._room import fitted_text, size_in_points, text_width
from skihmm.inspection._style import (
    Columns,
    check_fitted_chain,
    column_names,
    ink,
    ink_on,
    lay_out,
    places_of_columns,
    set_label,
    set_state_ticks,
    state_colour,
    state_labels,
    write_times,
)
from skihmm.posterior import Regimes, align, match_states, point_estimate
from skihmm.posterior._regimes import fitted_behind
from skihmm.posterior._segments import borders_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


METHODS = ("viterbi", "smooth", "filter")

# Segments of less than this part of the width are not seen: then the last steps are shown.
_LEAST_STAY, _N_QUICK, _N_STAYS = 0.01, 200, 20
# Narrower segments, in points, have no borders in the panels of columns.
_NARROWEST = 4.0
# Size of the numbers in segments, and most points of a symbol's name.
_SIZE, _SYMBOL_ROOM = 8.0, 90.0


def _as_panel(
    column: Array, is_symbols: bool, order: Sequence[object] | None
) -> tuple[Floats, list[str] | None]:
    """Values to plot, NaN where missing, and names of symbols (None for numbers)."""
    missing = is_missing(column)
    values = np.full(len(column), np.nan)
    if not is_symbols:
        values[~missing] = column[~missing].astype(float)
        return values, None
    present = column[~missing].tolist()
    # Symbols are integers; contexts may be any numbers.
    if all(is_number(value) and value == int(value) for value in present):
        present = [int(value) for value in present]
    symbols = sorted(set(present), key=None if order is None else list(order).index)
    codes = {symbol: code for code, symbol in enumerate(symbols)}
    values[~missing] = [codes[symbol] for symbol in present]
    return values, [str(symbol) for symbol in symbols]


@dataclass(eq=False, repr=False)
class StateSequenceDisplay(Display):
    """States along a sequence, their probabilities, and the data under them.

    The top panel has a segment for every stay in a state, in the state's colour, with the
    posterior probability of the state as height.  Below is one panel per observed column
    of the data, lines for numbers and ticks for symbols, on the same colours, with borders
    and numbers of segments that have room.  Given columns (inputs, contexts, subjects) are
    shown if `columns` names them.

    Of data in which states last for less than 1 % of the steps, the last 200 steps, or the
    last twenty stays of median length, are shown unless `first` or `last` is given.

    Use :meth:`from_estimator` or :meth:`from_draws` to create and plot one.

    Parameters
    ----------
    states : ndarray of shape (n_samples,), int
    probability : ndarray of shape (n_samples,), optional
        Probability of the state at every step.  None: segments are full.
    X : ndarray of shape (n_samples, n_features), optional
        The data.  NaN and None are missing.
    column_names : list of str, optional
        Names of the columns of X.
    symbols : list of bool, optional
        Whether each column holds symbols.  None: those with strings do.
    starts : ndarray of int, optional
        First steps of sequences, marked by lines.
    n_states : int, optional
        Label of the new state.  None: no new state.
    times : ndarray of shape (n_samples,), datetime64, optional
        Times of the steps, shown on the axis instead of their indices.
    orders : list of (sequence or None), optional
        Symbols of each column from bottom to top.  None: sorted.
    given : list of bool, optional
        Whether each column is given, not modelled.  None: no column is.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The axes of the states, then one for each column.
    figure_ : matplotlib Figure

    See Also
    --------
    skihmm.HCRPHMM.segments : The stays as a table.
    EmissionDisplay : Draw what the states emit.
    TransitionMatrixDisplay : Draw which states follow a state.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.inspection import StateSequenceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0], [5.0], [0.0], [5.0]], 25, axis=0)
    >>> X += rng.normal(size=X.shape)
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> display = StateSequenceDisplay.from_estimator(hmm, X)
    >>> display.states.shape, display.probability.shape
    ((100,), (100,))
    >>> low = int(hmm.predict([[0.0]])[0])
    >>> display = StateSequenceDisplay.from_estimator(hmm, X, names={low: "rest"})
    """

    states: Array
    _: KW_ONLY
    probability: Floats | None = None
    X: Array | None = None
    column_names: Sequence[str] | None = None
    symbols: Sequence[bool] | None = None
    starts: ArrayLike | None = None
    n_states: int | None = None
    times: NDArray[np.datetime64] | None = None
    orders: Sequence[Sequence[object] | None] | None = None
    given: Sequence[bool] | None = None

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM | Regimes,
        X: MatrixLike,
        *,
        method: str = "viterbi",
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        columns: Columns | None = None,
        first: int | None = None,
        last: int | None = None,
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> StateSequenceDisplay:
        """Plot the states predicted by a fitted model, under its selected draw.

        Parameters
        ----------
        hmm : HCRPHMM or Regimes
            Fitted.
        X : array-like of shape (n_samples, n_features)
            The data.  Dates in the index of a data frame are shown on the axis.
        method : {"viterbi", "smooth", "filter"}, default="viterbi"
            As in :meth:`skihmm.HCRPHMM.predict`.  Probabilities of the states are
            conditional on all of X, or with "filter" on X up to each step.
        groups, lengths
            As in :meth:`skihmm.HCRPHMM.fit`.
        columns, first, last, names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : StateSequenceDisplay
        """
        hmm = check_fitted_chain(hmm)
        check_choice("method", method, METHODS)
        fitted = fitted_behind(hmm)
        states = hmm.predict(X, method=method, groups=groups, lengths=lengths)
        kind = "filter" if method == "filter" else "smooth"
        probs = np.asarray(hmm.predict_proba(X, method=kind, groups=groups, lengths=lengths))
        not_modelled = fitted.given
        symbols = np.isin(column_kinds(fitted), ["symbols", "context"])
        symbols[not_modelled.columns[not_modelled.inputs]] = False  # inputs: numbers
        display = cls(
            states,
            probability=probs[np.arange(len(states)), states],
            X=as_matrix(unify_frame(unmask(X))),
            column_names=column_names(fitted),
            symbols=symbols.tolist(),
            starts=sequence_starts(len(states), groups, lengths),
            n_states=probs.shape[1] - 1,
            times=row_times(X),
            orders=category_orders(column_types(X)),
            given=(~np.isin(np.arange(fitted.columns.number), fitted.observed)).tolist(),
        )
        return display.plot(ax, columns=columns, first=first, last=last, names=names)

    @classmethod
    def from_draws(
        cls,
        draws: PosteriorDraws | ArrayLike,
        X: MatrixLike | None = None,
        *,
        states: ArrayLike | None = None,
        reference: ArrayLike | None = None,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        columns: Columns | None = None,
        first: int | None = None,
        last: int | None = None,
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> StateSequenceDisplay:
        """Plot one path of the training data and the agreement of all draws with it.

        Parameters
        ----------
        draws : PosteriorDraws or array-like of shape (n_draws, n_samples)
            State paths.  All chains have equal weight per draw.
        X : array-like of shape (n_samples, n_features), default=None
            The training data.  Columns of strings hold symbols, further columns numbers.
            Dates in the index of a data frame are shown on the axis, also with
            ``columns=[]``.  None: only states are shown, by step.
        states : array-like of shape (n_samples,), default=None
            The path to show, such as ``labels_``.  None:
            :func:`skihmm.posterior.point_estimate`.
        reference : array-like of shape (n_samples,), default=None
            A path of the same steps, whose numbering and colours the states get by
            :func:`skihmm.posterior.match_states`.  ``labels_`` gives the numbering of
            :meth:`from_estimator` and `predict`.  None: as in the path shown.
        groups, lengths
            As in :meth:`skihmm.HCRPHMM.fit`.
        columns, first, last, names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : StateSequenceDisplay
            Its probabilities are the weighted proportions of the draws which, after
            :func:`skihmm.posterior.align`, have a step in the state shown.

        Raises
        ------
        ValueError
            If X, `states` or `reference` has another length than the paths of the draws.
        """
        paths = state_paths(draws)
        n_samples = paths.shape[1]
        if reference is not None:
            check_path("reference", reference, n_samples)
        path = point_estimate(draws) if states is None else check_path("states", states, n_samples)
        is_in_state = align(paths, reference=path) == path
        probability = np.average(is_in_state, axis=0, weights=draw_weights(draws))
        if reference is not None:
            path = match_states(reference, path)
        found = getattr(X, "columns", None)
        times, orders = row_times(X), category_orders(column_types(X))
        if X is not None:
            X = as_matrix(unify_frame(unmask(X)))
            if len(X) != len(path):
                raise ValueError(
                    f"X has {len(X)} rows, but the draws have {len(path)} steps; "
                    "expected the training data."
                )
        display = cls(
            path,
            probability=probability,
            X=X,
            column_names=None if found is None else [str(name) for name in found],
            starts=sequence_starts(len(path), groups, lengths),
            times=times,
            orders=orders,
        )
        return display.plot(ax, columns=columns, first=first, last=last, names=names)

    def _names(self) -> list[str]:
        if self.X is None:
            return []
        if self.column_names is not None:
            return [str(name) for name in self.column_names]
        return [f"column {c}" for c in range(self.X.shape[1])]

    def plot(
        self,
        ax: Axes | None = None,
        *,
        columns: Columns | None = None,
        first: int | None = None,
        last: int | None = None,
        names: Mapping[int, str] | None = None,
    ) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to divide into panels, or axes for the states and for every column.
            None: a new figure.
        columns : int, str or list of these, default=None
            Indices or names of the columns to show, [] for none.  None: all observed
            columns, without given columns.
        first : int, default=None
            First step to show.  None: 0; without `last`, and if the median stay is shorter
            than 1 % of the steps, the last 200 steps or twenty median stays.
        last : int, default=None
            One after the last step to show.  None: the end.
        names : mapping of {int: str}, default=None
            Names of states in this picture, such as ``{2: "REM"}``.  States without a name
            keep their numbers.

        Returns
        -------
        self : StateSequenceDisplay
        """
        n_samples = len(self.states)
        is_default = first is None and last is None
        if first is None:
            first = self._first_seen() if is_default else 0
        first = check_integer("first", first, 0)
        last = n_samples if last is None else check_integer("last", last, 1)
        if not first < min(last, n_samples):
            raise ValueError(f"first={first} and last={last} leave nothing of {n_samples} steps.")
        last = min(last, n_samples)
        labels, of_columns = self._labels(names), self._names()
        chosen = places_of_columns(columns, of_columns)
        if columns is None and self.given is not None:
            chosen = [c for c in chosen if not self.given[c]]
        self.axes_ = self._panels(
            ax,
            1 + len(chosen),
            (9.0, 1.9 + 1.4 * len(chosen)),
            height_ratios=[0.8, *[1.0] * len(chosen)],
            sharex=True,
        )
        states = np.asarray(self.states)[first:last]
        top = self.axes_[0]
        self._plot_states(top, states, first)
        for one, c in zip(self.axes_[1:], chosen, strict=True):
            self._plot_column(one, c, states, first, last)
            one.yaxis.label.set_fontsize("small")
        for one in self.axes_:
            one.set_xlim(first - 0.5, last - 0.5)
            one.tick_params(labelsize="small")
            for start in np.asarray([] if self.starts is None else self.starts):
                if first < start < last:
                    one.axvline(start - 0.5, color=ink(), linewidth=1, linestyle="--")
        label = "step" if self.times is None else "time"
        if is_default and first:
            label += f" (the last {last - first:,} of {n_samples:,} steps)"
        self.axes_[-1].set_xlabel(label)
        if ax is None:
            # A new figure has a layout that makes room for it.
            self._add_legend(states, labels)
        lay_out(top)
        for one, c in zip(self.axes_[1:], chosen, strict=True):
            set_label(one.yaxis, of_columns[c], 3)
            symbols = self._panel(c, first, last)[1]
            if symbols is not None:
                texts = [fitted_text(symbol, _SYMBOL_ROOM, _SIZE) for symbol in symbols]
                set_state_ticks(one.yaxis, texts)
        lay_out(top)
        if self.times is not None:
            write_times(self.axes_, np.asarray(self.times)[first:last], first)
        self._write_states(top, states, first, labels, 0.15)
        for one in self.axes_[1:]:
            self._plot_borders(one, states, first)
            self._write_states(one, states, first, labels, 0.92)
        return self

    def _first_seen(self) -> int:
        """First of the steps that are shown by default."""
        n = len(self.states)
        starts = np.zeros(1, np.intp) if self.starts is None else np.asarray(self.starts)
        stays = np.diff(borders_of(np.asarray(self.states), starts))
        stay = float(np.median(stays))
        return max(0, n - max(_N_QUICK, int(_N_STAYS * stay))) if stay < _LEAST_STAY * n else 0

    def _labels(self, names: Mapping[int, str] | None) -> list[str]:
        if self.n_states is not None:
            return state_labels(names, self.n_states)
        return state_labels(names, int(np.max(self.states)) + 1, is_all=False)

    def _colour(self, k: int) -> str:
        return state_colour(k, self.n_states)

    def _panel(self, c: int, first: int, last: int) -> tuple[Floats, list[str] | None]:
        assert self.X is not None
        column = as_array("X", self.X)[:, c]
        if self.symbols is None:
            present = column[~is_missing(column)]
            is_symbols = column.dtype.kind in "UST" or any(
                isinstance(value, str) for value in present
            )
        else:
            is_symbols = self.symbols[c]
        # All symbols of the data, so that all windows have the same rows.
        order = self.orders[c] if self.orders else None
        values, names = _as_panel(column, is_symbols, order)
        return values[first:last], names

    def _plot_states(self, ax: Axes, states: Array, first: int) -> None:
        n = len(states)
        probability = np.ones(n)
        if self.probability is not None:
            probability = np.asarray(self.probability)[first : first + n]
        edges = first - 0.5 + np.repeat(np.arange(n + 1), 2)[1:-1]
        heights = np.repeat(probability, 2)
        for k in np.unique(states):
            # Step i has the edges 2 i and 2 i + 1; beyond a stay the height is zero.
            inside = np.repeat(states == k, 2)
            ax.fill_between(
                edges,
                0,
                np.where(inside, heights, 0.0),
                facecolor=self._colour(int(k)),
                linewidth=0,
            )
        ax.set_ylim(0, 1)
        if self.probability is None:
            ax.set_yticks([])
            ax.set_ylabel("state", fontsize="small")
        else:
            ax.set_yticks([0, 0.5, 1])
            ax.set_ylabel("probability\nof the state", fontsize="small")

    def _plot_borders(self, ax: Axes, states: Array, first: int) -> None:
        """Draw lines between segments, whose tints are similar, that have room."""
        borders = borders_of(states, np.zeros(1, dtype=np.intp))
        is_wide = np.diff(borders) * size_in_points(ax)[0] / len(states) > _NARROWEST
        places = first + borders[1:-1][is_wide[:-1] & is_wide[1:]] - 0.5
        axis = ax.get_xaxis_transform()
        ax.vlines(places, 0, 1, colors=ink(0.55), linewidth=0.6, transform=axis)

    def _write_states(
        self, ax: Axes, states: Array, first: int, labels: list[str], height: float
    ) -> None:
        """Write the numbers of the states into segments with room for them."""
        is_tinted = ax is not self.axes_[0]
        room = size_in_points(ax)[0] / len(states)
        borders = borders_of(states, np.zeros(1, dtype=np.intp))
        for begin, length in zip(borders[:-1], np.diff(borders), strict=True):
            k = int(states[begin])
            label = labels[k]
            if length * room < text_width(label, _SIZE) + 4:
                continue
            ax.text(
                first + begin + (length - 1) / 2,
                height,
                label,
                ha="center",
                va="center",
                fontsize=_SIZE,
                color=ink(0.2) if is_tinted else ink_on(self._colour(k)),
                transform=ax.get_xaxis_transform(),
                clip_on=True,
            )

    def _add_legend(self, states: Array, labels: list[str]) -> None:
        """Add the key of the colours beside the panels."""
        from matplotlib.patches import Patch

        shown = [int(k) for k in np.unique(states)]
        rows = int(self.figure_.get_figheight() / 0.19) - 2
        self.figure_.legend(
            [Patch(facecolor=self._colour(k), edgecolor=ink(0.2), lw=0.4) for k in shown],
            [labels[k] for k in shown],
            title="state",
            loc="outside right upper",
            ncols=-(-len(shown) // rows),
            fontsize="x-small",
            title_fontsize="small",
            handlelength=1.0,
            handleheight=1.0,
            columnspacing=0.8,
            frameon=False,
        )

    def _plot_column(self, ax: Axes, c: int, states: Array, first: int, last: int) -> None:
        from matplotlib.colors import to_rgba

        values, symbols = self._panel(c, first, last)
        shown_states, which = np.unique(states, return_inverse=True)
        tints = np.array([to_rgba(self._colour(int(k)), 0.35) for k in shown_states])[which][None]
        steps = np.arange(first, last)
        # Above the data are the numbers of the states.
        low, high = -0.6, 1.15 * max(len(symbols or []), 1) - 0.4
        if symbols is None:
            present = values[~np.isnan(values)]
            low, high = (present.min(), present.max()) if len(present) else (0.0, 1.0)
            margin = 0.06 * (high - low) if high > low else 0.5
            low, high = low - margin, high + 3 * margin
            # A marker for single values between missing ones.
            marker = "." if np.isnan(values).any() or len(values) < 60 else None
            ax.plot(
                steps,
                values,
                color=ink(0.1),
                linewidth=0.8,
                marker=marker,
                markersize=3,
                drawstyle="steps-mid" if np.isin(present, (0, 1)).all() else "default",
            )
        else:
            shown = ~np.isnan(values)
            ax.vlines(
                steps[shown],
                values[shown] - 0.38,
                values[shown] + 0.38,
                colors=ink(0.1),
                linewidth=max(0.4, min(2.0, 150 / len(values))),
            )
        ax.imshow(
            tints,
            extent=(first - 0.5, last - 0.5, low, high),
            aspect="auto",
            interpolation="nearest",
            zorder=0,
        )
        ax.set_ylim(low, high)
