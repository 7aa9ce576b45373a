"""Merges of states to regimes, and their price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats, Integers
from skihmm.inspection._display import Display
from skihmm.inspection._style import (
    check_fitted_chain,
    ink,
    set_state_ticks,
    state_colour,
    state_labels,
)
from skihmm.posterior import Regimes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ABOVE = 0.45  # ink of merges of regimes
# Nats up to which the axis of prices is linear: what is believed, or not.
_LINEAR = 10.0


def leaf_order(tree: Integers, n_leaves: int) -> NDArray[np.intp]:
    """Order leaves such that the leaves of every node are neighbours."""
    parts = [[k] for k in range(n_leaves)]
    is_top = np.ones(n_leaves + len(tree), dtype=bool)
    for one, other in tree:
        is_top[[one, other]] = False
        parts.append(parts[one] + parts[other])
    tops = sorted((parts[i] for i in np.flatnonzero(is_top)), key=len, reverse=True)
    return np.concatenate(tops).astype(np.intp)


@dataclass(eq=False, repr=False)
class RegimeTreeDisplay(Display):
    """Merges of the states of a fit to regimes, and what every number of them costs.

    Above are the merges, from all states on the left to fewer and fewer sets.  Merges in
    a regime have its colour, and the dashed line is the cut.  Below is by how many nats
    the evidence of a number of regimes is behind the best number: up to 10 nats linear,
    and logarithmic from there.  The leaves of a second level
    (:meth:`skihmm.posterior.Regimes.upper`) are regimes in the place of states.

    Use :meth:`from_estimator` to create and plot one.

    Parameters
    ----------
    tree : ndarray of shape (n_merges, 2), int
        ``tree_`` of :class:`skihmm.posterior.Regimes`.
    regimes : ndarray of shape (n_leaves,), int
        Regime of every leaf.
    evidences : ndarray of shape (n_leaves,)
        Log evidence of 1, 2, ... regimes, nats.  NaN if not computed.

    Attributes
    ----------
    order_ : ndarray of shape (n_leaves,)
        Leaves from top to bottom.
    axes_ : ndarray of matplotlib Axes
        Merges, and prices.
    figure_ : matplotlib Figure

    See Also
    --------
    skihmm.HCRPHMM.find_regimes : Find the regimes of the tree.
    skihmm.posterior.Regimes : Regimes of a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.inspection import RegimeTreeDisplay
    >>> X = np.random.default_rng(0).gamma(1, size=(500, 1))
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> display = RegimeTreeDisplay.from_estimator(hmm)
    >>> len(display.tree) == hmm.n_states_ - 1
    True
    """

    tree: Integers
    regimes: Integers
    evidences: Floats

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM | Regimes,
        *,
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> RegimeTreeDisplay:
        """Plot the tree of regimes, or of the sets of a second level.

        Parameters
        ----------
        hmm : HCRPHMM or Regimes
            Fitted.  For an estimator :meth:`skihmm.HCRPHMM.find_regimes` is called.
        names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : RegimeTreeDisplay
        """
        hmm = check_fitted_chain(hmm)
        found = hmm if isinstance(hmm, Regimes) else hmm.find_regimes()
        return cls(found.tree_, found._leaves, found.evidences_).plot(ax, names=names)

    def plot(self, ax: Axes | None = None, *, names: Mapping[int, str] | None = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to divide into panels, or the axes of both panels.  None: a new figure.
        names : mapping of {int: str}, default=None
            Names of states in this picture, such as ``{2: "REM"}``.  States without a name
            keep their numbers.

        Returns
        -------
        self : RegimeTreeDisplay
        """
        n = len(self.regimes)
        self.order_ = leaf_order(self.tree, n)
        height = float(np.clip(0.18 * n, 1.6, 6.0))
        self.axes_ = self._panels(
            ax, 2, (6.4, height + 2.0), height_ratios=(height, 1.6), sharex=True
        )
        self._plot_merges(self.axes_[0], state_labels(names, n))
        self._plot_prices(self.axes_[1])
        n_regimes = int(np.max(self.regimes)) + 1
        for one in self.axes_:
            one.axvline(n_regimes - 0.5, color=ink(0.2), linestyle="--", linewidth=0.9)
        self.axes_[1].set_xlim(n + 0.5, 0.5)
        return self

    def _plot_merges(self, ax: Axes, labels: list[str]) -> None:
        n, regimes = len(self.regimes), np.asarray(self.regimes)
        # Height, number of sets and regime of every node; -1 of several regimes.
        y = np.append(np.argsort(self.order_).astype(float), np.zeros(len(self.tree)))
        x = np.append(np.full(n, float(n)), n - 1.0 - np.arange(len(self.tree)))
        of = np.append(regimes, np.full(len(self.tree), -1))
        is_top = np.ones(len(y), dtype=bool)

        def plot_line(node: int, xs: list[float], ys: list[float]) -> None:
            colour = ink(_ABOVE) if of[node] < 0 else state_colour(of[node])
            ax.plot(xs, ys, color=colour, linewidth=1.6)

        for i, (one, other) in enumerate(self.tree, n):
            is_top[[one, other]] = False
            y[i] = (y[one] + y[other]) / 2
            of[i] = of[one] if of[one] == of[other] else -1
            plot_line(i, [x[i], x[i]], [y[one], y[other]])
            for k in (one, other):
                plot_line(k, [x[k], x[i]], [y[k], y[k]])
        for k in np.flatnonzero(is_top).tolist():
            # Of known states there are several.
            plot_line(k, [x[k], 0.5], [y[k], y[k]])
        ax.set_ylim(n - 0.5, -0.5)
        set_state_ticks(ax.yaxis, [labels[k] for k in self.order_])
        ax.set_ylabel("state")

    def _plot_prices(self, ax: Axes) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        evidences = np.asarray(self.evidences)
        numbers = np.flatnonzero(np.isfinite(evidences)) + 1
        behind = np.nanmax(evidences) - evidences[numbers - 1]
        ax.plot(numbers, behind, ".-", color=ink(0.2), linewidth=1)
        ax.set_yscale("symlog", linthresh=_LINEAR)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.set_ylim(-1.0, max(2.0, ax.get_ylim()[1]))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="number of regimes", ylabel="nats behind\nthe best")
