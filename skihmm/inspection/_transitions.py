"""Transition probabilities as a heat map or as a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from skihmm._data.validation import (
    as_array,
    check_choice,
    check_flag,
    check_positive,
    warn_caller,
)
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Flags, Floats
from skihmm.inspection._display import Display
from skihmm.inspection._room import DIGIT_WIDTH, size_in_points, text_width
from skihmm.inspection._style import (
    SEQUENTIAL,
    check_fitted_chain,
    check_states,
    ink,
    ink_on,
    lay_out,
    occupancies,
    set_state_ticks,
    state_colour,
    state_labels,
)
from skihmm.posterior import Regimes
from skihmm.posterior._parameters import parameter_arrays
from skihmm.posterior._regimes import fitted_behind
from skihmm.posterior._segments import are_left

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.image import AxesImage


ORDERS = ("occupancy", "cycle", "block")
KINDS = ("heatmap", "graph")

# With more rows there is no room for numbers in the cells.  Intervals make a new figure larger,
# by so many inches per state up to so many, and have a size of so many points or more.
_MOST_WITH_NUMBERS = 10
_WITH_INTERVAL, _LARGEST, _LEAST_SIZE = 0.62, 12.0, 4.5
# Size of names of states beside nodes, and most of them that are level.
_NAME_SIZE, _MOST_LEVEL_NAMES = 8.0, 8
# With more nodes, or longer names, the names of states stand beside them.
_MOST_WITH_LABELS_INSIDE = 12


def cycle_order(transmat: Floats, first: int = 0) -> NDArray[np.intp]:
    """Order states on a circle by their most probable transitions.

    Pairs of states are linked greedily, from the most probable transition on, except if
    the first has a successor, the second a predecessor, or the link would close the
    circle before all states are in it.
    """
    n = len(transmat)
    successor = np.full(n, -1, dtype=np.intp)
    has_predecessor = np.zeros(n, dtype=bool)
    last_of = np.arange(n)  # of the path that a state begins
    first_of = np.arange(n)  # of the path that a state ends
    n_links = 0
    for flat in np.argsort(-transmat, axis=None, kind="stable"):
        i, j = divmod(int(flat), n)
        closes = last_of[j] == i and n_links < n - 1
        if successor[i] >= 0 or has_predecessor[j] or closes:
            continue
        successor[i], has_predecessor[j] = j, True
        n_links += 1
        start, end = first_of[i], last_of[j]
        last_of[start], first_of[end] = end, start
    order = [first]
    while len(order) < n:
        order.append(int(successor[order[-1]]))
    return np.array(order, dtype=np.intp)


def block_order(transmat: Floats) -> NDArray[np.intp]:
    """Order states such that frequent transitions are between neighbours.

    The order is the optimal leaf order of average linkage; the similarity of a pair is
    the larger of its two transition probabilities.
    """
    n = len(transmat)
    if n < 3:
        return np.arange(n, dtype=np.intp)
    distance = 1 - np.maximum(transmat, transmat.T)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.intp)


@dataclass(eq=False, repr=False)
class TransitionMatrixDisplay(Display):
    """Transition probabilities between the states of the selected draw.

    Use :meth:`from_estimator` to create and plot one.

    Parameters
    ----------
    transmat : ndarray of shape (n_states + 1, n_states + 1)
        Probabilities of the transitions from rows to columns.  The last row and column
        are the new state.
    occupancy : ndarray of shape (n_states,)
        Proportion of the steps in each state.
    intervals : ndarray of shape (2, n_states, n_states + 1) or None, default=None
        Ends of intervals of the probabilities.
    are_left : ndarray of shape (n_states,), bool, or None, default=None
        Whether a state is left in the data.  Graphs have no arrows from other states, whose
        next states are the prior.  None: all are.

    Attributes
    ----------
    order_ : ndarray of int
        States shown, in the order in which they were drawn.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    im_ : matplotlib AxesImage or None
        The heat map.
    colorbar_ : matplotlib Colorbar or None
        Colour bar of the heat map.

    See Also
    --------
    DwellTimeDisplay : Draw how long states last.
    skihmm.HCRPHMM.context_transmat : Transition probabilities of a context.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.inspection import TransitionMatrixDisplay
    >>> X, _ = make_repeating_sequence(200)
    >>> hmm = HCRPHMM(n_burnin=100, n_draws=10, random_state=0).fit(X)
    >>> display = TransitionMatrixDisplay.from_estimator(hmm, order="cycle")
    >>> display.transmat.shape == (hmm.n_states_ + 1, hmm.n_states_ + 1)
    True
    """

    transmat: Floats
    _: KW_ONLY
    occupancy: Floats
    intervals: Floats | None = None
    are_left: Flags | None = None

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM | Regimes,
        *,
        context: object = None,
        probability: float | None = None,
        kind: str = "heatmap",
        order: str | ArrayLike = "occupancy",
        states: ArrayLike | None = None,
        new_state: bool = False,
        threshold: float = 0.05,
        colorbar: bool = True,
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> TransitionMatrixDisplay:
        """Plot ``transmat_`` of a fitted model, or the probabilities of one context.

        Parameters
        ----------
        hmm : HCRPHMM or Regimes
            Fitted.  Regimes are without `context` and `probability`.
        context : number, str or tuple, default=None
            Context as in :meth:`HCRPHMM.context_transmat`, if transitions depend on
            contexts.  With the same `order` displays of several contexts can be set side
            by side.
        probability : float, default=None
            Of intervals of the probabilities, by
            :func:`~skihmm.posterior.parameter_intervals`, under the numbers of a heat
            map.  Where they have no room, a warning says so.  None: no intervals.
        kind, order, states, new_state, threshold, colorbar, names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : TransitionMatrixDisplay
        """
        hmm = check_fitted_chain(hmm)
        transmat, intervals = hmm.transmat_, None
        if isinstance(hmm, Regimes):
            for name, value in {"context": context, "probability": probability}.items():
                if value is not None:
                    raise ValueError(f"{name}={value!r}, which regimes do not have; expected None.")
        elif context is not None:
            transmat = hmm.context_transmat(context)
        if probability is not None and not isinstance(hmm, Regimes):
            found = parameter_arrays(hmm, probability)
            if "transmat_" not in found:
                raise ValueError(
                    f"probability={probability!r}, but there are no intervals where "
                    "transitions depend on contexts."
                )
            intervals = found["transmat_"][1:]
            if kind == "graph":
                warn_caller(
                    f"probability={probability!r} changes nothing in kind='graph', which has no "
                    "numbers. Set kind='heatmap', or probability=None."
                )
        starts = fitted_behind(hmm).sequences.starts
        display = cls(
            transmat,
            occupancy=occupancies(hmm),
            intervals=intervals,
            are_left=are_left(hmm.labels_, starts, len(transmat) - 1),
        )
        return display.plot(
            ax,
            kind=kind,
            order=order,
            states=states,
            new_state=new_state,
            threshold=threshold,
            colorbar=colorbar,
            names=names,
        )

    def _order(self, order: str | ArrayLike, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Order the chosen states, which are in increasing order."""
        if not isinstance(order, str):
            given = as_array("order", order)
            if given.dtype.kind not in "iu" or sorted(given.tolist()) != chosen.tolist():
                n = len(self.occupancy)
                every = f"0 to {n - 1}" if len(chosen) == n else str(chosen.tolist())
                raise ValueError(
                    f"order={order!r}; expected one of {ORDERS}, or the states {every}, each once."
                )
            return given.astype(np.intp)
        check_choice("order", order, ORDERS)
        share = self.occupancy[chosen]
        among_chosen = self.transmat[np.ix_(chosen, chosen)]
        if order == "cycle":
            return chosen[cycle_order(among_chosen, int(np.argmax(share)))]
        if order == "block":
            return chosen[block_order(among_chosen)]
        # Known states come first in all draws, regardless of their occupancy.
        return chosen[np.argsort(-share, kind="stable")]

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str = "heatmap",
        order: str | ArrayLike = "occupancy",
        states: ArrayLike | None = None,
        new_state: bool = False,
        threshold: float = 0.05,
        colorbar: bool = True,
        names: Mapping[int, str] | None = None,
    ) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: a new figure.
        kind : {"heatmap", "graph"}, default="heatmap"
            A matrix, or states on a circle, clockwise: areas are proportional to
            occupancy.  Widths of arrows are proportional to the probability of the next
            state given that the state is left, as :meth:`skihmm.HCRPHMM.summary` has it,
            and widths of loops to the probability to stay.
        order : {"occupancy", "cycle", "block"} or array-like of shape (n_states,), \
default="occupancy"
            Order of the states.  "occupancy": decreasing.  "cycle": from the largest
            state on, a circle linked from the most probable transition on.  Nearly cyclic
            transitions are then next to the diagonal.  "block": the leaves of average
            linkage by the larger of the two probabilities of a pair.  States that lead to
            each other then form blocks.  Array-like: this order.
        states : array-like of int, default=None
            States to show, in the order by `order`.  None: all.
        new_state : bool, default=False
            Also show the new state, last.
        threshold : float, default=0.05
            Least probability of an arrow, or loop, of a graph.
        colorbar : bool, default=True
            Whether to add a colour bar to a heat map.
        names : mapping of {int: str}, default=None
            Names of states in this picture, such as ``{2: "REM"}``.  States without a name
            keep their numbers.

        Returns
        -------
        self : TransitionMatrixDisplay
        """
        check_choice("kind", kind, KINDS)
        check_flag("new_state", new_state)
        check_flag("colorbar", colorbar)
        check_positive("threshold", threshold)
        n = len(self.occupancy)
        chosen = np.arange(n, dtype=np.intp)
        if states is not None:
            chosen = np.unique(check_states(states, n))
        self.order_ = self._order(order, chosen)
        shown = np.append(self.order_, n) if new_state else self.order_
        self._shown = shown
        matrix = np.asarray(self.transmat)[np.ix_(shown, shown)]
        every = state_labels(names, n)
        labels = [every[k] for k in shown]
        side = 4.8 if len(shown) <= 16 else 6.4
        if kind == "heatmap" and self.intervals is not None:
            side = max(side, min(_LARGEST, _WITH_INTERVAL * len(shown)))
        size = (side + 0.9 * (kind == "heatmap" and colorbar), side)
        (self.ax_,) = self._panels(ax, 1, size)
        self.im_: AxesImage | None = None
        self.colorbar_: Colorbar | None = None
        if kind == "heatmap":
            self._plot_heatmap(matrix, labels, colorbar)
        else:
            colours = [state_colour(k, n) for k in shown]
            share = np.append(self.occupancy, 0.0)[shown]
            # Of states that last all other arrows would be thin.
            is_same = np.eye(len(self.transmat), dtype=bool)
            others = np.where(is_same, 0.0, self.transmat)
            if self.are_left is not None:
                others[:-1][~self.are_left] = 0.0
            totals = others.sum(axis=1, keepdims=True)
            others = np.divide(others, totals, out=others, where=totals > 0)
            matrix = np.where(is_same, self.transmat, others)[np.ix_(shown, shown)]
            self._plot_graph(matrix, labels, share, colours, threshold)
        return self

    def _plot_heatmap(self, matrix: Floats, labels: list[str], colorbar: bool) -> None:
        ax = self.ax_
        self.im_ = ax.imshow(matrix, cmap=SEQUENTIAL, vmin=0, vmax=1)
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(self.im_, ax=ax, label="transition probability")
        lay_out(ax)
        set_state_ticks(ax.xaxis, labels)
        set_state_ticks(ax.yaxis, labels)
        ax.set(xlabel="next state", ylabel="state")
        if len(labels) <= _MOST_WITH_NUMBERS or self.intervals is not None:
            self._write_numbers(matrix)

    def _write_numbers(self, matrix: Floats) -> None:
        """Write probabilities, and their intervals, into the cells."""
        ax, image = self.ax_, self.im_
        assert image is not None
        texts = {
            (row, column): self._cell(value, int(self._shown[row]), int(self._shown[column]))
            for (row, column), value in np.ndenumerate(matrix)
            if value >= 0.005
        }
        size = self._size_of_numbers(list(texts.values()), len(matrix))
        if self.intervals is not None and size < _LEAST_SIZE:
            warn_caller(
                f"Intervals of {len(matrix)} states have no room in this figure. Choose `states`, "
                "or a larger figure. The ends are in `intervals` of the display."
            )
            if len(matrix) > _MOST_WITH_NUMBERS:
                return
            texts = {place: text.split("\n")[0] for place, text in texts.items()}
            size = self._size_of_numbers(list(texts.values()), len(matrix))
        for (row, column), text in texts.items():
            colour = ink_on(image.to_rgba(np.asarray(matrix[row, column])))
            ax.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)

    def _size_of_numbers(self, texts: list[str], n: int) -> float:
        """Size of letters with which texts fit into the cells of n rows."""
        cell, widest = size_in_points(self.ax_)[0] / n, 4 * DIGIT_WIDTH
        lines = [line for text in texts for line in text.split("\n")]
        widest = max([widest, *(text_width(line, 1.0) for line in lines)])
        return float(min(9.0, cell / 3.2, 0.92 * cell / widest))

    def _cell(self, value: float, state: int, following: int) -> str:
        """Probability, and its interval with as many digits as tell the ends apart."""
        if self.intervals is None or state == len(self.occupancy):
            return f"{value:.2f}"
        low, high = self.intervals[:, state, following]
        for digits in (2, 3, 4):
            ends = f"{low:.{digits}f}", f"{high:.{digits}f}"
            if ends[0] != ends[1]:
                return f"{value:.{digits}f}\n{ends[0]}-{ends[1]}"
        return f"{value:.2f}"

    def _plot_graph(
        self,
        matrix: Floats,
        labels: list[str],
        occupancy: Floats,
        colours: list[str],
        threshold: float,
    ) -> None:
        from matplotlib.patches import Circle, FancyArrowPatch

        ax, n = self.ax_, len(labels)
        # Clockwise from the top.
        angles = np.pi / 2 - 2 * np.pi * np.arange(n) / n
        centres = np.column_stack([np.cos(angles), np.sin(angles)])
        has_names = max(map(len, labels)) > 3
        is_crowded = n > _MOST_WITH_LABELS_INSIDE or has_names
        largest = min(0.2, 0.33 * 2 * np.sin(np.pi / n)) if n > 1 else 0.2
        share = np.sqrt(occupancy / max(occupancy.max(), 1e-300))
        radii = largest * np.maximum(share, 0.55)
        nodes = []
        for i in range(n):
            node = Circle(centres[i], radii[i], facecolor=colours[i], edgecolor=ink(0.2), zorder=3)
            ax.add_patch(node)
            nodes.append(node)
        margin = 1.0 + 2.6 * largest + 0.12 * is_crowded
        ax.set(xlim=(-margin, margin), ylim=(-margin, margin), aspect="equal")
        ax.set_axis_off()
        lay_out(ax)
        width, height = size_in_points(ax)
        beside = 2 * max(text_width(label, _NAME_SIZE) for label in labels) if has_names else 0.0
        # Many names are spokes.
        is_turned = has_names and n > _MOST_LEVEL_NAMES
        points = min(max(width - beside, width / 4), height - beside * is_turned) / (2 * margin)
        if has_names:
            ax.set_xlim(-width / (2 * points), width / (2 * points))
        if is_turned:
            ax.set_ylim(-height / (2 * points), height / (2 * points))
        for i in range(n):
            # Two digits have to fit into the circle, or stand outside.
            size = 1.8 * radii[i] * points / max(len(labels[i]), 2)
            if is_crowded:
                size = min(_NAME_SIZE, np.pi * points / n) if has_names else np.pi * points / n
            # Names begin, or end, at their states.
            cosine = centres[i, 0]
            side = "left" if cosine > 0 else "right"
            if not has_names or (abs(cosine) < 0.1 and not is_turned):
                side = "center"
            ax.text(
                *(centres[i] * (1 + 2.6 * largest if is_crowded else 1)),
                labels[i],
                ha=side,
                va="center",
                rotation=np.rad2deg(angles[i]) + 180 * (side == "right") if is_turned else 0.0,
                rotation_mode="anchor",
                fontsize=min(10.0 if is_crowded else 11.0, size),
                color=ink() if is_crowded else ink_on(colours[i]),
                zorder=4,
            )
        head = np.clip(largest * points / 2.2, 4.0, 11.0)
        # Strong ones last, on top of the others.
        for flat in np.argsort(matrix, axis=None, kind="stable"):
            i, j = divmod(int(flat), n)
            value = matrix[i, j]
            if value < threshold:
                continue
            look = {
                "arrowstyle": "-|>",
                "mutation_scale": head,
                "linewidth": 0.8 + 1.8 * value,
                # The contrast with the background is at least 3 to 1.
                "color": ink(0.55 * (1 - value)),
                "shrinkA": 0,
                "shrinkB": 0,
                "zorder": 2,
            }
            if i == j:
                # A loop on the outer side of its state.
                turned = angles[i] + np.array([-0.9, 0.9])
                ends = centres[i] + radii[i] * np.column_stack([np.cos(turned), np.sin(turned)])
                arrow = FancyArrowPatch(ends[0], ends[1], connectionstyle="arc3,rad=1.3", **look)
            else:
                arrow = FancyArrowPatch(
                    centres[i],
                    centres[j],
                    patchA=nodes[i],
                    patchB=nodes[j],
                    # Curved, so that the opposite transition does not coincide.
                    connectionstyle="arc3,rad=0.15",
                    **look,
                )
            ax.add_patch(arrow)
