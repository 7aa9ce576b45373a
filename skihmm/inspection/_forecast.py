"""Forecasts of columns of numbers: medians and bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from skihmm._data.row_index import forecast_times
from skihmm._data.sequences import sequence_starts
from skihmm._data.validation import (
    as_matrix,
    check_integer,
    check_probability,
    is_missing,
    unify_frame,
    unmask,
)
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats, MatrixLike, VectorLike
from skihmm._using.fitted import fitted_of
from skihmm.inspection._display import Display
from skihmm.inspection._emissions import column_kinds
from skihmm.inspection._style import (
    Columns,
    check_fitted_hmm,
    column_names,
    ink,
    lay_out,
    legend_place,
    places_of_columns,
    set_label,
    write_times,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Opacity of the widest and of the narrowest band.
_OPACITIES = (0.25, 0.6)

# Kinds of columns that are not shown, and why.
_NO_NUMBERS = {
    "symbols": "symbols, which have no bands. Use predict_next and its proba.",
    "context": "contexts, which are not predicted.",
}


@dataclass(eq=False, repr=False)
class ForecastDisplay(Display):
    """Forecast of the steps after the end of a sequence: medians and bands.

    One panel per column of numbers: the last observations, the median of the posterior
    predictive distribution, and central intervals of given probabilities at each step.
    Autoregressions continue from the last rows.

    Use :meth:`from_estimator` to create and plot one.

    Parameters
    ----------
    median : ndarray of shape (n_steps, n_columns)
    bands : ndarray of shape (n_levels, 2, n_steps, n_columns)
        Lower and upper ends.
    levels : sequence of float
        Probabilities of the bands.
    past : ndarray of shape (n_past, n_columns)
        The observations before the forecast.  NaN is missing.
    names : list of str
        Names of the columns.
    times : ndarray of shape (n_past + n_steps,), datetime64, optional
        Times of the observations and the future steps, shown on the axis.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One per column.
    figure_ : matplotlib Figure

    See Also
    --------
    skihmm.HCRPHMM.predict_next : The forecast as numbers.
    ResidualDisplay : Check forecasts of one step.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.inspection import ForecastDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0], [5.0], [0.0], [5.0]], 25, axis=0)
    >>> X += rng.normal(size=X.shape)
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> display = ForecastDisplay.from_estimator(hmm, X, n_steps=20)
    >>> display.median.shape, display.bands.shape
    ((20, 1), (2, 2, 20, 1))
    """

    median: Floats
    bands: Floats
    levels: Sequence[float]
    past: Floats
    names: list[str]
    times: NDArray[np.datetime64] | None = None

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM,
        X: MatrixLike,
        n_steps: int = 20,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        contexts: MatrixLike | None = None,
        inputs: MatrixLike | None = None,
        columns: Columns | None = None,
        n_past: int = 50,
        levels: Sequence[float] = (0.5, 0.9),
        ax: Axes | None = None,
    ) -> ForecastDisplay:
        """Plot the forecast of a fitted model, averaged over its posterior draws.

        Parameters
        ----------
        hmm : HCRPHMM
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Data.  The last of several sequences is continued.  Dates in the index of a
            data frame are shown on the axis, and go on at its frequency.
        n_steps : int, default=20
            Steps to forecast.
        groups, lengths
            As in :meth:`skihmm.HCRPHMM.fit`.
        contexts, inputs : array-like of shape (n_steps,) or (n_steps, n_columns), \
default=None
            As in :meth:`skihmm.HCRPHMM.predict_next`.
        columns : int, str or list of these, default=None
            Indices or names of the columns to show.  None: all columns of numbers.
        n_past : int, default=50
            Observations before the forecast to show.
        levels : sequence of float, default=(0.5, 0.9)
            Probabilities of the bands, between 0 and 1.
        ax : matplotlib Axes or array-like of Axes, default=None
            As in :meth:`plot`.

        Returns
        -------
        display : ForecastDisplay

        Raises
        ------
        ValueError
            If no column holds numbers, or one of `columns` does not.
        """
        fitted = fitted_of(check_fitted_hmm(hmm))
        n_past = check_integer("n_past", n_past, 0)
        for level in levels:
            check_probability("levels", level)
        following = hmm.predict_next(
            X, n_steps, contexts=contexts, inputs=inputs, groups=groups, lengths=lengths
        )
        data = as_matrix(unify_frame(unmask(X)))
        names = column_names(fitted)
        kinds = column_kinds(fitted)
        numeric = [c for c, kind in enumerate(kinds) if kind not in _NO_NUMBERS]
        if not numeric:
            raise ValueError(f"All columns hold {_NO_NUMBERS['symbols']}")
        chosen = numeric if columns is None else places_of_columns(columns, names)
        for c in chosen:
            if c not in numeric:
                raise ValueError(f"Column {names[c]!r} holds {_NO_NUMBERS[kinds[c]]}")
        start = int(sequence_starts(len(data), groups, lengths)[-1])
        first = max(start, len(data) - n_past)
        past = data[first:, chosen].T
        observed = np.array([np.where(is_missing(c), np.nan, c) for c in past], float).T
        # Contexts are not predicted.
        places = np.searchsorted(fitted.observed, chosen)
        ends = [(0.5 - 0.5 * level, 0.5 + 0.5 * level) for level in levels]
        found = following.quantile(np.append(0.5, ends))[..., places].astype(float)
        bands = found[1:].reshape(len(levels), 2, *found.shape[1:])
        times = forecast_times(X, start, following.n_steps)
        times = None if times is None else times[first - start :]
        shown = [names[c] for c in chosen]
        return cls(found[0], bands, levels, observed, shown, times).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        n_columns = len(self.names)
        self.axes_ = self._panels(ax, n_columns, (8.0, 1.2 + 1.8 * n_columns), sharex=True)
        before = np.arange(-len(self.past), 0) + 1
        after = np.arange(len(self.median)) + 1
        widest_first = np.argsort(self.levels)[::-1]
        opacities = np.linspace(_OPACITIES[0], _OPACITIES[1], len(widest_first))
        for c, one in enumerate(self.axes_):
            for i, opacity in zip(widest_first, opacities, strict=True):
                one.fill_between(
                    after,
                    *self.bands[i, :, :, c],
                    color="#E69F00",
                    alpha=opacity,
                    lw=0,
                    label=f"{100 * self.levels[i]:g} %",
                )
            one.plot(after, self.median[:, c], color="#D55E00", lw=2, label="median")
            one.plot(before, self.past[:, c], ".", color=ink(), ms=4, label="observed")
        self.axes_[0].legend(**legend_place(self.axes_[0]))
        self.axes_[-1].set_xlabel("steps from the end" if self.times is None else "time")
        lay_out(self.axes_[0])
        for one, name in zip(self.axes_, self.names, strict=True):
            set_label(one.yaxis, name)
        if self.times is not None:
            write_times(self.axes_, np.asarray(self.times), 1 - len(self.past))
        return self
