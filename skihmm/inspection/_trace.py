"""Traces of chains, for a visual check of convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import cycle
from operator import index
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.validation import check_choice
from skihmm._draws import PosteriorDraws
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._records import CONTEXT_ALPHA, HYPERPARAMETERS
from skihmm._typing import Array, Floats
from skihmm._using.fitted import fitted_of
from skihmm.inspection._display import Display
from skihmm.inspection._style import (
    ROUND,
    Look,
    as_text,
    check_draws,
    check_fitted_hmm,
    ink,
    legend_place,
    line_look,
    set_log_scale,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Panels and the labels of their axes.
_PANELS = {
    "lp": "log joint\nprobability (nats)",
    "n_states": "number of\nstates",
    "concentrations": "transition\nconcentrations",
    "expected_dwell": "expected dwell\nof a new state",
    "emission_hyperparameters": "emission\nhyperparameters",
}
_SYMBOLS = {"alpha": r"$\alpha$", "gamma": r"$\gamma$", "omega": r"$\omega$"}
# Three or more hierarchies of mixed data share some styles.
_LINE_STYLES = ("-", ":", "--", "-.")
_X_LABELS = {
    "sweep": "sweep",
    "seconds": "CPU seconds after the burn-in",
    "draw": "draw",
}
# With more chains, or hyperparameters, a legend has no room.
_MOST_IN_LEGEND = 8
# Marker of the selected draw: a shape, not a colour, above all lines.
_SELECTED: Look = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 6.5,
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "markeredgewidth": 1.3,
    "zorder": 4,
}


def _panel_of(name: str) -> str:
    """Panel of a quantity."""
    if name.startswith("emission_"):
        return "emission_hyperparameters"
    concentrations = (*HYPERPARAMETERS, CONTEXT_ALPHA, "omega")
    return "concentrations" if name in concentrations else name


def concentration_name(name: str) -> str:
    """Name of a hyperparameter, with a Greek letter for a concentration."""
    part, _, letter = name.removeprefix("emission_").rpartition("__")
    return f"{as_text(part)} {_SYMBOLS.get(letter, letter)}".lstrip()


def as_floats(values: Array, n_draws: Array) -> Floats:
    """Values of all draws, NaN where there is no draw."""
    is_there = np.arange(values.shape[1]) < n_draws[:, None]
    return np.where(is_there, values, np.nan)


@dataclass(eq=False, repr=False)
class TraceDisplay(Display):
    """Traces of the log joint probability, the number of states and the concentrations.

    One line per chain.  Converged chains have no trend and the same level.

    Use :meth:`from_estimator` or :meth:`from_draws` to create and plot one.

    Parameters
    ----------
    values : dict of {str: ndarray of shape (n_chains, n_draws)}
        Any of "lp" (nats), "n_states", "alpha", "gamma", "context_alpha" (of several
        columns the geometric mean), "expected_dwell", "omega", "emission_alpha",
        "emission_gamma" and, of mixed data, names such as "emission_<part>__alpha".  NaN
        where a chain has fewer draws.
    sweeps : ndarray of shape (n_chains, n_draws), optional
        Number of sweeps before each draw, with the burn-in.
    seconds : ndarray of shape (n_chains, n_draws), optional
        CPU seconds from the end of the burn-in to each draw.
    n_burnin : int, optional
        Sweeps of the burn-in, at whose end the axis of sweeps begins.  None: unknown.
    selected : (int, int), optional
        Chain and draw of the selected draw behind ``labels_``, ``n_states_`` and
        ``predict``, marked by a hollow circle.  None: unknown, no mark.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each quantity drawn.
    figure_ : matplotlib Figure

    See Also
    --------
    skihmm.metrics.autocorrelation_time : Distance of independent draws.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.inspection import TraceDisplay
    >>> X, _ = make_repeating_sequence(100)
    >>> hmm = HCRPHMM(n_burnin=50, n_draws=20, n_chains=2, random_state=0).fit(X)
    >>> display = TraceDisplay.from_estimator(hmm)
    >>> len(display.axes_)
    4
    >>> bool((hmm.draws_[display.selected].states == hmm.labels_).all())
    True
    """

    values: Mapping[str, ArrayLike]
    _: KW_ONLY
    sweeps: Array | None = None
    seconds: Floats | None = None
    n_burnin: int | None = None
    selected: tuple[int, int] | None = None

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM,
        *,
        x: str = "sweep",
        quantities: Sequence[str] | None = None,
        ax: Axes | None = None,
        line_kw: Look | None = None,
    ) -> TraceDisplay:
        """Plot the traces of a fitted model, and mark its selected draw.

        Parameters
        ----------
        hmm : HCRPHMM
            Fitted.  The axis of sweeps begins at the end of the longest burn-in.
        x, quantities, ax, line_kw
            As in :meth:`plot`.

        Returns
        -------
        display : TraceDisplay
        """
        fitted = fitted_of(check_fitted_hmm(hmm))
        display = cls._of_draws(fitted.draws)
        display.selected = fitted.best
        display.n_burnin = int(fitted.schedule.n_burnin.max())
        return display.plot(ax, x=x, quantities=quantities, line_kw=line_kw)

    @classmethod
    def from_draws(
        cls,
        draws: PosteriorDraws,
        *,
        x: str = "sweep",
        quantities: Sequence[str] | None = None,
        ax: Axes | None = None,
        line_kw: Look | None = None,
    ) -> TraceDisplay:
        """Plot the traces of posterior draws.

        Parameters
        ----------
        draws : PosteriorDraws
            ``draws_`` of a fitted model, without its selection.
        x, quantities, ax, line_kw
            As in :meth:`plot`.

        Returns
        -------
        display : TraceDisplay
        """
        check_draws(draws)
        return cls._of_draws(draws).plot(ax, x=x, quantities=quantities, line_kw=line_kw)

    @classmethod
    def _of_draws(cls, draws: PosteriorDraws) -> TraceDisplay:
        values = {
            name: as_floats(getattr(draws, name), draws.n_draws) for name in ("lp", "n_states")
        }
        for name, concentration in draws.positive_hyperparameters().items():
            values[name] = as_floats(concentration, draws.n_draws)
        return cls(
            values,
            sweeps=as_floats(draws.sweep, draws.n_draws),
            seconds=np.cumsum(draws.seconds, axis=1),  # NaN where there is no draw
        )

    def _places(self, x: str) -> Array:
        places = {"sweep": self.sweeps, "seconds": self.seconds}.get(x)
        if places is not None:
            return np.asarray(places)
        if x != "draw":
            raise ValueError(
                f"x={x!r}, but this display does not know the {x}s of the draws. Use x='draw'."
            )
        shape = np.shape(next(iter(self.values.values())))
        return np.broadcast_to(np.arange(shape[1]), shape)

    def _check_selected(self) -> tuple[int, int] | None:
        if self.selected is None:
            return None
        try:
            c, d = map(index, self.selected)
        except (TypeError, ValueError):
            c = d = -1
        # A draw is absent only if all its quantities are NaN.
        there = ~np.all([np.isnan(np.asarray(v)) for v in self.values.values()], axis=0)
        n_draws = there.sum(axis=1)
        if not (0 <= c < len(n_draws) and 0 <= d < n_draws[c]):
            raise ValueError(
                f"selected={self.selected!r}; expected (chain, draw), counted from 0, "
                f"of chains that have {', '.join(map(str, n_draws))} draws."
            )
        return c, d

    def plot(
        self,
        ax: Axes | None = None,
        *,
        x: str = "sweep",
        quantities: Sequence[str] | None = None,
        line_kw: Look | None = None,
    ) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to divide into panels, or the axes of all panels.  None: a new figure.
        x : {"sweep", "seconds", "draw"}, default="sweep"
            Horizontal axis: sweeps of the chain, CPU seconds since the end of the burn-in
            (its time is not stored), or the index of the draw.
        quantities : list of {"lp", "n_states", "concentrations", "expected_dwell", \
"emission_hyperparameters"}, default=None
            One panel each.  None: all available ones.
        line_kw : dict, default=None
            Keywords of ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        self : TraceDisplay
        """
        x = check_choice("x", x, tuple(_X_LABELS))
        available = [
            panel for panel in _PANELS if any(_panel_of(name) == panel for name in self.values)
        ]
        if quantities is None:
            quantities = available
        elif isinstance(quantities, str):
            quantities = [quantities]
        for panel in quantities:
            check_choice("quantities", panel, tuple(available))
        places = self._places(x)
        selected = self._check_selected()
        # A marker where a line would have one point only.
        look = {"linewidth": 1.0, "marker": "." if places.shape[1] < 2 else None}
        look.update(line_kw or {})
        self.axes_ = self._panels(
            ax, len(quantities), (6.4, 1.1 + 1.5 * len(quantities)), sharex=True
        )
        for panel, one in zip(quantities, self.axes_, strict=True):
            self._plot_panel(one, panel, places, look, selected)
        first, last = self.axes_[0], self.axes_[-1]
        last.set_xlabel(_X_LABELS[x])
        if x != "seconds":
            from matplotlib.ticker import MaxNLocator

            last.xaxis.set_major_locator(MaxNLocator(integer=True, steps=ROUND))
        if x == "sweep" and self.n_burnin:
            # The burn-in has no draws.
            first.set_xlim(left=self.n_burnin)
            last.set_xlabel(f"sweep (the first {self.n_burnin}: burn-in)")
        handles, labels = [], []
        if 1 < len(places) <= _MOST_IN_LEGEND:
            for c in range(len(places)):
                handles += first.plot([], [], **{**line_look(c), **look})
                labels.append(str(c))
        title = "chain" if handles else None
        if selected is not None:
            handles += first.plot([], [], **_SELECTED)
            labels.append("selected draw")
            if len(places) > 1:
                # Where lines cross, the mark alone is ambiguous.
                gap = " " if legend_place(first)["loc"] == "best" else "\n"
                labels[-1] += f"{gap}(chain {selected[0]})"
        if handles:
            if first.get_legend() is not None:
                # The legend of line styles, which the next one would replace.
                first.add_artist(first.get_legend())
            place = legend_place(first)
            if place["loc"] == "best":
                # Low, since the legend is inside.
                place |= {"ncols": -(-len(handles) // 2), "columnspacing": 1.2}
            first.legend(handles, labels, title=title, title_fontsize="small", **place)
        return self

    def _plot_panel(
        self,
        ax: Axes,
        panel: str,
        places: Array,
        look: Look,
        selected: tuple[int, int] | None,
    ) -> None:
        from matplotlib.ticker import MaxNLocator

        names = [name for name in self.values if _panel_of(name) == panel]
        line_styles = dict(zip(names, cycle(_LINE_STYLES), strict=False))
        for name in names:
            for c, trace in enumerate(np.asarray(self.values[name])):
                style = line_look(c)
                if len(names) > 1:
                    style["linestyle"] = line_styles[name]
                ax.plot(places[c], trace, **{**style, **look})
        if selected is not None:
            marked = [np.asarray(self.values[name])[selected] for name in names]
            ax.plot(np.repeat(places[selected], len(marked)), marked, **_SELECTED)
            # The mark of a selected draw at the edge would be cut.
            ax.margins(y=0.1)
        if panel == "n_states":
            # One number alone has no axis of 3.8 to 4.2 states.
            low, high = ax.get_ylim()
            if high - low < 2:
                ax.set_ylim((low + high) / 2 - 1.2, (low + high) / 2 + 1.2)
            ax.yaxis.set_major_locator(MaxNLocator(4, integer=True, steps=ROUND))
        if panel not in ("lp", "n_states"):
            set_log_scale(ax.yaxis)
        if panel in ("concentrations", "emission_hyperparameters"):
            named = [(concentration_name(name), line_styles[name]) for name in names]
            if len(named) > _MOST_IN_LEGEND:
                n_left = len(named) - _MOST_IN_LEGEND + 1
                named = [*named[:-n_left], (f"and {n_left} more", "none")]
            lines = [
                ax.plot([], [], color=ink(0.2), linestyle=style, label=label)[0]
                for label, style in named
            ]
            # Above it is the legend of the chains, if this is the first panel.
            ax.legend(handles=lines, handlelength=1.6, **legend_place(ax, vertical="lower"))
        ax.set_ylabel(_PANELS[panel], fontsize="small")
        ax.tick_params(labelsize="small")
