"""Comparison of samplers: quality of the draws against CPU time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from skihmm._draws import PosteriorDraws
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats, Labels
from skihmm._validation import check_choice, check_flag
from skihmm.inspection._style import (
    check_fitted_hmm,
    line_look,
    make_axes,
    set_log_scale,
)
from skihmm.inspection._trace import as_floats, concentration_name, elapsed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


_NAMES = {
    "lp": "log joint probability (nats)",
    "n_states": "number of states",
    "n_tables": "number of tables",
}
SUMMARIES = ("chains", "median")


def _scores_of_paths(
    draws: PosteriorDraws, score: Callable[[Labels], float], label: str
) -> Floats:
    """Compute a score of every draw's path, NaN where there is no draw."""
    states = draws.states
    if states is None:
        raise ValueError(
            f"score is computed from state paths, but the draws of {label!r} have none: "
            "they were made with store_states=False. Fit with store_states=True, or use "
            "score='lp'."
        )
    values = np.full(draws.shape, np.nan)
    for c, n_draws in enumerate(draws.n_draws):
        values[c, :n_draws] = [float(score(path)) for path in states[c, :n_draws]]
    return values


class SamplerComparisonDisplay:
    """Quality of the draws against CPU time, for several fitted models.

    Every model has a colour, every chain a line.

    Use :meth:`from_estimators` to create and plot one.

    Parameters
    ----------
    seconds : dict of {str: ndarray of shape (n_chains, n_draws)}
        CPU seconds from the end of the burn-in to every draw, by label; NaN where a chain
        has fewer draws.
    scores : dict of {str: ndarray of shape (n_chains, n_draws)}
        Score of every draw, by label.
    score_name : str
        Name of the score.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of {str: list of matplotlib Line2D}
        Lines of every label.

    Notes
    -----
    Seconds are those of the sweeps of one chain, without the time of initialisation and
    of storing draws.  The time of the burn-in is not stored; to include it, fit with
    ``n_burnin=0``.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.inspection import SamplerComparisonDisplay
    >>> X, _ = make_repeating_sequence(100)
    >>> fits = {
    ...     name: HCRPHMM(name, n_burnin=0, n_draws=20, random_state=0).fit(X)
    ...     for name in ("stepwise", "beam")
    ... }
    >>> display = SamplerComparisonDisplay.from_estimators(fits)
    >>> display.scores["beam"].shape
    (1, 20)
    """

    def __init__(
        self,
        seconds: Mapping[str, Floats],
        scores: Mapping[str, Floats],
        *,
        score_name: str,
    ) -> None:
        self.seconds = seconds
        self.scores = scores
        self.score_name = score_name

    @classmethod
    def from_estimators(
        cls,
        hmms: Mapping[str, HCRPHMM],
        *,
        score: str | Callable[[Labels], float] = "lp",
        score_name: str | None = None,
        summary: str = "chains",
        log_time: bool = False,
        ax: Axes | None = None,
    ) -> SamplerComparisonDisplay:
        """Plot several fitted models.

        Parameters
        ----------
        hmms : dict of {str: HCRPHMM}
            Fitted models by label.
        score : {"lp", "n_states", "n_tables"}, str or callable, default="lp"
            Score of every draw: the log joint probability of states, seating and data
            (comparable for the same data and emission only), another attribute of
            `draws_`, one of ``draws_.hyperparameters`` such as "alpha" or
            "emission_gamma", or a function of a state path, such as
            ``lambda states: mutual_information(states_true, states)``.
        score_name : str, default=None
            Label of the axis.  None: the name of `score`.
        summary, log_time, ax
            As in :meth:`plot`.

        Returns
        -------
        display : SamplerComparisonDisplay
        """
        if not isinstance(hmms, Mapping):
            raise TypeError(
                f"hmms is a {type(hmms).__name__}; expected a dict of fitted models by "
                "the labels that they are to have."
            )
        if not hmms:
            raise ValueError("hmms is empty; expected one or more fitted models.")
        fitted = {
            str(label): check_fitted_hmm(f"hmms[{label!r}]", hmm).draws_
            for label, hmm in hmms.items()
        }
        if not callable(score):
            every = dict.fromkeys(
                name for d in fitted.values() for name in d.positive_hyperparameters()
            )
            check_choice("score", score, (*_NAMES, *every))
        seconds, scores = {}, {}
        for label, draws in fitted.items():
            if callable(score):
                scores[label] = _scores_of_paths(draws, score, label)
            elif score in _NAMES:
                scores[label] = as_floats(getattr(draws, score), draws.n_draws)
            elif score in draws.positive_hyperparameters():
                scores[label] = as_floats(
                    draws.positive_hyperparameters()[score], draws.n_draws
                )
            else:
                raise ValueError(
                    f"score={score!r}, but the emission of {label!r} has no such "
                    "concentration. Choose another score."
                )
            seconds[label] = elapsed(draws)
        if score_name is None:
            if callable(score):
                score_name = "score"
            elif score in _NAMES:
                score_name = _NAMES[score]
            else:
                kind = "emission" if score.startswith("emission_") else "transition"
                score_name = f"{kind} {concentration_name(score)}"
        display = cls(seconds, scores, score_name=score_name)
        return display.plot(ax, summary=summary, log_time=log_time)

    def plot(
        self, ax: Axes | None = None, *, summary: str = "chains", log_time: bool = False
    ) -> SamplerComparisonDisplay:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: a new figure.
        summary : {"chains", "median"}, default="chains"
            "chains": a line for every chain.  "median": also a thick line for the median
            over the chains of their latest scores, as long as all of them have draws.
        log_time : bool, default=False
            Whether the axis of time is logarithmic.

        Returns
        -------
        self : SamplerComparisonDisplay
        """
        check_choice("summary", summary, SUMMARIES)
        check_flag("log_time", log_time)
        self.figure_, axes = make_axes("SamplerComparisonDisplay.plot", ax, 1, (7.2, 4.2))
        self.ax_ = axes[0]
        self.lines_: dict[str, list[Line2D]] = {}
        for i, (label, scores) in enumerate(self.scores.items()):
            seconds, look = np.asarray(self.seconds[label]), line_look(i)
            faint = {"linewidth": 0.7, "alpha": 0.5} if summary == "median" else {}
            marker = "." if np.shape(scores)[1] < 2 else None
            self.lines_[label] = [
                self.ax_.plot(
                    t, y, **{"linewidth": 1.2, "marker": marker, **look, **faint}
                )[0]
                for t, y in zip(seconds, np.asarray(scores), strict=True)
            ]
            if summary == "median":
                t, y = self._median(seconds, np.asarray(scores))
                self.lines_[label] += self.ax_.plot(t, y, linewidth=2.5, **look)
            self.lines_[label][-1].set_label(label)
        if log_time:
            set_log_scale(self.ax_.xaxis)
        else:
            self.ax_.set_xlim(left=0)
        self.ax_.set(xlabel="CPU seconds per chain", ylabel=self.score_name)
        if ax is None:
            # A new figure has a layout that makes room for it.
            self.figure_.legend(fontsize="small", loc="outside right upper")
        else:
            self.ax_.legend(fontsize="small", loc="best")
        return self

    @staticmethod
    def _median(seconds: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Median over the chains of their latest draws, at the time of every draw."""
        chains = [
            (t[~np.isnan(t)], y[~np.isnan(t)])
            for t, y in zip(seconds, scores, strict=True)
            if not np.isnan(t).all()
        ]
        first = max(t[0] for t, _ in chains)
        last = min(t[-1] for t, _ in chains)
        times = np.unique(np.concatenate([t for t, _ in chains]))
        times = times[(times >= first) & (times <= last)]
        reached = [y[np.searchsorted(t, times, "right") - 1] for t, y in chains]
        return times, np.median(reached, axis=0)
