"""Dwell times: observed segments of states against the law of a draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from skihmm._data.sequences import sequence_starts
from skihmm._data.validation import check_choice, check_flag, check_integer, check_probability
from skihmm._draws import PosteriorDraws
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Array, Flags, Floats, MatrixLike, VectorLike
from skihmm._using.dwell_times import DwellLaw
from skihmm.inspection._display import Display
from skihmm.inspection._states import METHODS
from skihmm.inspection._style import (
    check_draws,
    check_fitted_chain,
    ink,
    legend_place,
    set_log_scale,
    state_colour,
    state_labels,
)
from skihmm.posterior import Regimes
from skihmm.posterior._regimes import dwell_law_of
from skihmm.posterior._segments import borders_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Panels that have room.
_MOST_STATES = 9
# Points of a curve.
_N_POINTS = 200
_POOLED_COLOUR = "#BDBDBD"


class Segments(NamedTuple):
    """Stretches of a path in one state.

    Attributes
    ----------
    states : ndarray of shape (n_segments,), int
    durations : ndarray of shape (n_segments,), int
        Observed numbers of steps.
    is_cut : ndarray of shape (n_segments,), bool
        Whether the end of a sequence ends it, so that it may last longer.
    """

    states: Array
    durations: Array
    is_cut: Flags

    def chosen(self, which: Array) -> Segments:
        """Select some of the segments."""
        return Segments(self.states[which], self.durations[which], self.is_cut[which])


def segments_of(path: Array, starts: NDArray[np.intp]) -> Segments:
    """Divide a path where its label changes or a sequence begins."""
    is_start = np.zeros(len(path) + 1, dtype=bool)
    is_start[starts] = is_start[-1] = True
    borders = borders_of(path, starts)
    begins = borders[:-1]
    return Segments(path[begins], np.diff(borders), is_start[borders[1:]])


def shares_by_duration(segments: Segments, durations: Array) -> Floats:
    """Shares of segments that last for at least so many steps, by Kaplan and Meier.

    They are NaN where nothing is known, since all longer segments were cut.
    """
    n = max(durations.max(), segments.durations.max(initial=0)) + 1
    ended = np.bincount(segments.durations[~segments.is_cut], minlength=n)
    # A cut segment does not tell whether it would have ended at its last step.
    last_known = segments.durations - segments.is_cut
    at_risk = np.cumsum(np.bincount(last_known, minlength=n)[::-1])[::-1]
    with np.errstate(invalid="ignore"):
        going_on = np.where(at_risk > 0, 1 - ended / at_risk, np.nan)
    shares = np.cumprod(going_on[1:])
    # None is longer than the longest one if that was not cut.
    gone = np.flatnonzero(shares == 0)
    if len(gone):
        shares[gone[0] :] = 0.0
    return np.concatenate([[1.0], shares])[durations - 1]


def _grid(longest: int) -> Array:
    """Durations to show, each of them or evenly spaced on a logarithmic axis."""
    points = np.geomspace(1, longest + 1, _N_POINTS)
    return np.unique(np.r_[np.arange(1, min(longest, 50) + 2), points.round()]).astype(int)


def _mixture(law: Floats, states: Array) -> Floats:
    """Law of a segment of any state, in the proportions of the segments."""
    weights = np.bincount(states, minlength=len(law))
    return weights @ law / weights.sum()


@dataclass(eq=False, repr=False)
class DwellTimeDisplay(Display):
    """Dwell times: how long states last, observed and by the model.

    The solid line is the share of observed segments (stretches of a path in one state) of
    at least n steps.  The dashed line is the probability by the model.  The band has the
    central part of shares, at every duration, if as many segments follow the model.
    Where the line leaves the band, dwell times contradict the model.  With a shortest
    dwell time, for example, the line is above the band at first and below the band later.

    The last segment of a sequence is cut by its end.  A cut segment counts as longer than
    all segments of its observed length (Kaplan and Meier).  The line ends where only cut
    segments are left.

    If transitions depend on contexts, the model has no context, and right segments may
    differ from the model.

    Use :meth:`from_estimator` or :meth:`from_draws` to create and plot one.

    Parameters
    ----------
    durations : ndarray of shape (n_durations,), int
        Numbers of steps, from 1 on.
    observed : ndarray of shape (n_panels, n_durations)
        Shares of the observed segments of at least n steps.  NaN where unknown.
    law : ndarray of shape (n_panels, n_durations)
        The same by the model.
    n_segments, n_cut : ndarray of shape (n_panels,)
        Numbers of segments, and of segments cut by the end of a sequence (means over
        draws).
    expected : ndarray of shape (n_panels,)
        Expected dwell time by the model, in steps.
    states : list of int, default=None
        State of every panel.  None: one panel, for all states together.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each panel.
    figure_ : matplotlib Figure

    See Also
    --------
    TransitionMatrixDisplay : Draw which states follow a state.
    skihmm.posterior.dwell_time_bands : Credible bands of expected dwell times.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_automaton_sequence
    >>> from skihmm.inspection import DwellTimeDisplay
    >>> X, _ = make_automaton_sequence(300, dwell=8, random_state=0)
    >>> hmm = HCRPHMM(transitions="sticky", n_burnin=50, n_draws=10, random_state=0)
    >>> display = DwellTimeDisplay.from_estimator(hmm.fit(X), X, pooled=True)
    >>> display.observed.shape == display.law.shape == (1, len(display.durations))
    True
    """

    durations: Array
    observed: Floats
    law: Floats
    _: KW_ONLY
    n_segments: ArrayLike
    n_cut: ArrayLike
    expected: ArrayLike
    states: Sequence[int] | None = None

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM | Regimes,
        X: MatrixLike,
        *,
        method: str = "viterbi",
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        states: Sequence[int] | None = None,
        pooled: bool = False,
        level: float = 0.9,
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> DwellTimeDisplay:
        """Plot the segments of a predicted path, and those expected by the selected draw.

        Parameters
        ----------
        hmm : HCRPHMM or Regimes
            Fitted.
        X : array-like of shape (n_samples, n_features)
            The data.
        method : {"viterbi", "smooth", "filter"}, default="viterbi"
            As in :meth:`skihmm.HCRPHMM.predict`.  Segments of the new state, of which
            nothing is expected, are left out.
        groups, lengths
            As in :meth:`skihmm.HCRPHMM.fit`.
        states : list of int, default=None
            The states to show, one panel each.  None: the nine that have the most
            segments.
        pooled : bool, default=False
            Whether to show all these states (without `states`: all states) in one panel,
            by the distribution of any of their segments.
        level, names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : DwellTimeDisplay

        Raises
        ------
        ValueError
            If the path has no segment of these states.
        """
        hmm = check_fitted_chain(hmm)
        n_states = len(hmm.transmat_) - 1
        check_choice("method", method, METHODS)
        check_flag("pooled", pooled)
        path = hmm.predict(X, method=method, groups=groups, lengths=lengths)
        starts = sequence_starts(len(path), groups, lengths)
        segments = segments_of(path, starts)
        counts = np.bincount(segments.states, minlength=n_states + 1)[:-1]
        if states is None:
            shown = [int(k) for k in np.argsort(-counts, kind="stable") if counts[k]]
            shown = shown if pooled else sorted(shown[:_MOST_STATES])
        else:
            shown = [check_integer("states", k, 0) for k in states]
            for k in shown:
                if k >= n_states or not counts[k]:
                    raise ValueError(
                        f"states holds {k}, of which the path has no segment; expected "
                        f"some of {np.flatnonzero(counts).tolist()}."
                    )
        segments = segments.chosen(np.isin(segments.states, shown))
        if not len(segments.states):
            raise ValueError("The path has no segment to show: it stays in the new state.")
        durations = _grid(int(segments.durations.max()))
        law = dwell_law_of(hmm)
        probs = law.survival(durations)
        if pooled:
            parts = [segments]
            probs = _mixture(probs, segments.states)[None]
            expected = _mixture(law.mean[:, None], segments.states)
        else:
            parts = [segments.chosen(segments.states == k) for k in shown]
            probs, expected = probs[shown], law.mean[shown]
        display = cls(
            durations,
            np.array([shares_by_duration(part, durations) for part in parts]),
            probs,
            n_segments=np.array([len(part.states) for part in parts]),
            n_cut=np.array([part.is_cut.sum() for part in parts]),
            expected=expected,
            states=None if pooled else shown,
        )
        return display.plot(ax, level=level, names=names)

    @classmethod
    def from_draws(
        cls,
        draws: PosteriorDraws,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        max_draws: int = 100,
        level: float = 0.9,
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> DwellTimeDisplay:
        """Plot the segments of the training data in posterior draws, and those expected.

        Both are means over draws, for all states together, since labels differ between
        draws.

        Parameters
        ----------
        draws : PosteriorDraws
            ``draws_`` of a fitted model, with paths.
        groups, lengths
            As in :meth:`skihmm.HCRPHMM.fit`.
        max_draws : int, default=100
            Number of draws to use, evenly spaced.
        level, names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : DwellTimeDisplay

        Raises
        ------
        ValueError
            If the draws have no paths.
        """
        check_draws(draws)
        max_draws = check_integer("max_draws", max_draws, 1)
        used, weights = draws.weighted(max_draws, with_states=True)
        pairs = []
        for draw in used:
            if draw.states is None:
                raise ValueError(
                    "The draws have no paths: fit with store_states=True, or use from_estimator."
                )
            starts = sequence_starts(len(draw.states), groups, lengths)
            pairs.append((segments_of(draw.states, starts), DwellLaw.of_draw(draw)))
        average = partial(np.average, axis=0, weights=weights)
        durations = _grid(max(int(segments.durations.max()) for segments, _ in pairs))
        observed = [shares_by_duration(segments, durations) for segments, _ in pairs]
        # Unknown only if it is so in all draws.
        known = np.isfinite(observed)
        total = weights @ np.where(known, observed, 0.0)
        weight = weights @ known
        means = np.full(len(durations), np.nan)
        np.divide(total, weight, out=means, where=weight > 0)
        laws = [_mixture(law.survival(durations), one.states) for one, law in pairs]
        expected = [_mixture(law.mean[:, None], one.states) for one, law in pairs]
        display = cls(
            durations,
            means[None],
            average(laws)[None],
            n_segments=np.array([average([len(one.states) for one, _ in pairs])]),
            n_cut=np.array([average([one.is_cut.sum() for one, _ in pairs])]),
            expected=average(expected),
        )
        return display.plot(ax, level=level, names=names)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        level: float = 0.9,
        names: Mapping[int, str] | None = None,
    ) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to divide into panels, or the axes of all panels.  None: a new figure.
        level : float, default=0.9
            Probability of the band at every duration, between 0 and 1.
        names : mapping of {int: str}, default=None
            Names of states in this picture, such as ``{2: "REM"}``.  States without a name
            keep their numbers.

        Returns
        -------
        self : DwellTimeDisplay
        """
        check_probability("level", level)
        states = [] if self.states is None else self.states
        labels = state_labels(names, max([0, *states]) + 1, is_all=False)
        n_panels = len(self.observed)
        n_columns = min(3, n_panels)
        n_rows = -(-n_panels // n_columns)
        self.axes_ = self._panels(
            ax,
            n_panels,
            (1.2 + 2.6 * n_columns, 0.8 + 1.9 * n_rows) if n_panels > 1 else (5.4, 3.6),
            n_columns=n_columns,
        )
        for i, one in enumerate(self.axes_):
            self._plot_panel(one, i, level, labels)
            if i % n_columns == 0:
                one.set_ylabel("share that lasts\nat least so long", fontsize="small")
            if i + n_columns >= n_panels:
                one.set_xlabel("steps", fontsize="small")
        self._add_legend(self.axes_[n_columns - 1], level)
        return self

    def _add_legend(self, ax: Axes, level: float) -> None:
        """Add the key of all panels to the last panel of the first row."""
        from matplotlib.patches import Patch

        lines = ax.get_lines()[-2:]
        # The band has another colour in every panel.
        band = Patch(color=ink(0.8), label=f"{100 * level:g} % of samples")
        ax.legend(handles=[*lines[::-1], band], handlelength=1.6, **legend_place(ax))

    def _plot_panel(self, ax: Axes, i: int, level: float, labels: list[str]) -> None:
        durations, law = np.asarray(self.durations), np.asarray(self.law)[i]
        n = float(np.asarray(self.n_segments)[i])
        whole = max(round(n), 1)
        low, high = binom.ppf([[(1 - level) / 2], [(1 + level) / 2]], whole, law) / whole
        k = None if self.states is None else self.states[i]
        ax.fill_between(
            durations,
            low,
            high,
            color=_POOLED_COLOUR if k is None else state_colour(k),
            alpha=0.45,
            linewidth=0,
        )
        ax.plot(durations, law, color=ink(0.1), linestyle="--", linewidth=1, label="model")
        ax.plot(
            durations, np.asarray(self.observed)[i], color=ink(0.1), linewidth=1.4, label="observed"
        )
        set_log_scale(ax.xaxis)
        ax.set_xlim(durations[0], max(durations[-1], 2))
        ax.set_ylim(-0.02, 1.02)
        ax.tick_params(labelsize="small")
        name = "all states" if k is None else labels[k]
        if name.isdigit():
            name = f"state {name}"
        cut = float(np.asarray(self.n_cut)[i])
        ax.set_title(
            f"{name}: {n:.0f} segment{'s' * (round(n) != 1)}, {cut:.0f} cut,\n"
            f"expected {np.asarray(self.expected)[i]:.3g} steps",
            fontsize="small",
        )
