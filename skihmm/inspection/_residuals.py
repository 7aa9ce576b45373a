"""Pseudo-residuals: quantiles, autocorrelation, and by state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from skihmm._data.sequences import sequence_starts
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats, MatrixLike, VectorLike
from skihmm._using.fitted import fitted_of
from skihmm.inspection._display import Display
from skihmm.inspection._room import fitted_text, size_in_points
from skihmm.inspection._style import (
    Columns,
    check_fitted_hmm,
    ink,
    lay_out,
    places_of_columns,
    set_state_ticks,
    state_colour,
    state_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_LAGS = 20
# Probability of the bands, pointwise.
_LEVEL = 0.95
_MOST_POINTS = 1000


@dataclass(eq=False, repr=False)
class ResidualDisplay(Display):
    """Pseudo-residuals of one column, which show whether a model fits.

    Quantiles against normal quantiles: an S means heavy tails, an arc skewness.
    Autocorrelation: bars beyond the band are memory without states.  With states, a box
    for each: a box far from zero is a part of the noise of another state.  Bands have 95
    % of the points of a right model.

    Use :meth:`from_estimator` or :meth:`from_residuals` to create and plot one.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples,)
        NaN is missing.
    starts : ndarray of int
        First rows of sequences.
    states : ndarray of shape (n_samples,), int, optional
    name : str, default=""
        Name of the column, the title.

    Attributes
    ----------
    autocorrelations_ : ndarray of shape (20,)
        At lags 1, 2, ...
    axes_ : ndarray of matplotlib Axes
        Two panels, or three with states.
    figure_ : matplotlib Figure

    See Also
    --------
    skihmm.HCRPHMM.residuals : The residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.inspection import ResidualDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=20, n_draws=5, random_state=0).fit(X)
    >>> display = ResidualDisplay.from_estimator(hmm, X)
    >>> len(display.axes_)
    3
    """

    residuals: Floats
    _: KW_ONLY
    starts: NDArray[np.intp]
    states: NDArray[np.integer] | None = None
    name: str = ""

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM,
        X: MatrixLike,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        column: Columns = 0,
        join_states: bool = True,
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> ResidualDisplay:
        """Plot the residuals of data under a fitted model.

        Parameters
        ----------
        hmm : HCRPHMM
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Data of the fit, or new data.
        groups, lengths
            As in :meth:`skihmm.HCRPHMM.fit`.
        column : int or str, default=0
            Index or name of one of the columns that are modelled.
        join_states : bool, default=True
            Whether to join the states of every regime
            (:meth:`skihmm.HCRPHMM.find_regimes`), as :meth:`skihmm.HCRPHMM.diagnose`
            does.  Boxes are of all states.
        names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : ResidualDisplay
        """
        columns = fitted_of(check_fitted_hmm(hmm)).observed_labels
        c = places_of_columns(column, columns.tolist())[0]
        residuals = hmm.residuals(X, groups=groups, lengths=lengths, join_states=join_states)
        states = hmm.predict(X, groups=groups, lengths=lengths)
        return cls.from_residuals(
            residuals[:, c],
            states=states,
            groups=groups,
            lengths=lengths,
            name=str(columns[c]),
            names=names,
            ax=ax,
        )

    @classmethod
    def from_residuals(
        cls,
        residuals: ArrayLike,
        *,
        states: ArrayLike | None = None,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        name: str = "",
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> ResidualDisplay:
        """Plot residuals.

        Parameters
        ----------
        residuals : array-like of shape (n_samples,)
            One column.  NaN is missing.
        states : array-like of shape (n_samples,), int, default=None
            None: no boxes.
        groups, lengths
            As in :meth:`skihmm.HCRPHMM.fit`.
        name : str, default=""
            Title.
        names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : ResidualDisplay
        """
        values = np.asarray(residuals, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).any():
            raise ValueError(
                f"residuals has the shape {values.shape}; expected numbers of one "
                "column, such as residuals[:, 0]."
            )
        starts = sequence_starts(len(values), groups, lengths)
        path = None if states is None else np.asarray(states)
        return cls(values, starts=starts, states=path, name=name).plot(ax, names=names)

    def plot(self, ax: Axes | None = None, *, names: Mapping[int, str] | None = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to divide into panels, or the axes of all panels.  None: a new figure.
        names : mapping of {int: str}, default=None
            Names of states in this picture, such as ``{2: "REM"}``.  States without a name
            keep their numbers.

        Returns
        -------
        self : ResidualDisplay
        """
        n_axes = 2 + (self.states is not None)
        self.axes_ = self._panels(ax, n_axes, (3.4 * n_axes, 3.2), n_columns=n_axes)
        self._plot_quantiles(self.axes_[0])
        self._plot_autocorrelations(self.axes_[1])
        if self.states is not None:
            is_known = np.isfinite(self.residuals)
            every = np.unique(self.states[is_known])
            boxes = self.axes_[2].boxplot(
                [self.residuals[is_known & (self.states == k)] for k in every],
                positions=np.arange(len(every)),
                patch_artist=True,
                medianprops={"color": ink()},
                flierprops={"marker": ".", "markersize": 3},
            )["boxes"]
            for k, box in enumerate(boxes):
                box.set_facecolor(state_colour(k))
            self.axes_[2].axhline(0.0, color=ink(0.7), linewidth=0.8, zorder=0)
            self.axes_[2].set(xlabel="state", ylabel="residual")
        lay_out(self.axes_[0])
        if self.states is not None:
            labels = state_labels(names, int(np.max(every)) + 1, is_all=False)
            set_state_ticks(self.axes_[2].xaxis, [labels[k] for k in every])
        title = self.axes_[0].set_title("", fontsize="medium", loc="left")
        room = size_in_points(self.axes_[0])[0]
        title.set_text(fitted_text(self.name, room, title.get_fontsize(), 2))
        return self

    def _plot_quantiles(self, ax: Axes) -> None:
        values = np.sort(self.residuals[np.isfinite(self.residuals)])
        n = len(values)
        places = np.unique(np.linspace(0, n - 1, _MOST_POINTS).astype(int))
        expected = ndtri((places + 0.5) / n)
        ends = np.array([0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2])[:, None]
        band = ndtri(betaincinv(places + 1, n - places, ends))
        ax.fill_between(expected, *band, color=ink(0.85), linewidth=0)
        ax.plot(expected, expected, color=ink(0.4), linewidth=0.8)
        ax.plot(expected, values[places], ".", color="#0072B2", markersize=4)
        ax.set(xlabel="normal quantile", ylabel="residual")

    def _plot_autocorrelations(self, ax: Axes) -> None:
        residuals = self.residuals - np.nanmean(self.residuals)
        which = np.searchsorted(self.starts, np.arange(len(residuals)), side="right")
        found = []
        for lag in range(1, _N_LAGS + 1):
            products = residuals[lag:] * residuals[:-lag]
            products = products[which[lag:] == which[:-lag]]
            known = products[np.isfinite(products)]
            found.append(known.mean() if len(known) else np.nan)
        self.autocorrelations_ = np.array(found) / np.nanvar(self.residuals)
        limit = ndtri(0.5 + _LEVEL / 2) / np.sqrt(np.isfinite(residuals).sum())
        ax.axhspan(-limit, limit, color=ink(0.85), linewidth=0)
        ax.axhline(0.0, color=ink(0.4), linewidth=0.8)
        lags = np.arange(1, _N_LAGS + 1)
        ax.vlines(lags, 0.0, self.autocorrelations_, color="#0072B2", linewidth=3)
        ax.set(xlabel="lag", ylabel="autocorrelation")
