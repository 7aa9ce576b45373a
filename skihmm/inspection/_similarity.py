"""Posterior similarity matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from skihmm._draws import PosteriorDraws
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Array, Floats
from skihmm._validation import check_choice, check_flag
from skihmm.inspection._style import (
    SEQUENTIAL,
    check_fitted_hmm,
    make_axes,
)
from skihmm.posterior import coassignment, match_states, point_estimate
from skihmm.posterior._partitions import check_path, draw_weights, state_paths

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar


ORDERS = ("estimate", "time")

# Default number of steps, evenly spaced.
_N_STEPS = 500


class PosteriorSimilarityDisplay:
    """Posterior probabilities that two steps share a state.

    They do not depend on the labels of the draws.  Clear blocks are states that the draws
    agree on; grey between two blocks are states that some draws merge.

    Use :meth:`from_estimator` or :meth:`from_draws` to create and plot one.

    Parameters
    ----------
    similarity : ndarray of shape (n_steps, n_steps)
        Probabilities.
    steps : ndarray of shape (n_steps,), int
        Indices of the steps.
    states : ndarray of shape (n_steps,), int, optional
        A partition of these steps, by which they can be ordered.

    Attributes
    ----------
    order_ : ndarray of shape (n_steps,)
        Rows of `similarity` in the order in which they were drawn.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    im_ : matplotlib AxesImage
    colorbar_ : matplotlib Colorbar or None

    See Also
    --------
    skihmm.posterior.coassignment : The matrix itself.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.inspection import PosteriorSimilarityDisplay
    >>> X, _ = make_repeating_sequence(100)
    >>> hmm = HCRPHMM(n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> display = PosteriorSimilarityDisplay.from_estimator(hmm)
    >>> display.similarity.shape
    (100, 100)
    """

    def __init__(
        self,
        similarity: Floats,
        *,
        steps: Array,
        states: Array | None = None,
    ) -> None:
        self.similarity = similarity
        self.steps = steps
        self.states = states

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM,
        *,
        steps: ArrayLike | None = None,
        order: str = "estimate",
        colorbar: bool = True,
        ax: Axes | None = None,
    ) -> PosteriorSimilarityDisplay:
        """Plot the similarity matrix of the training data of a fitted model.

        Parameters
        ----------
        hmm : HCRPHMM
            Fitted, with ``store_states=True``.  States are numbered like ``labels_``.
        steps, order, colorbar, ax
            As in :meth:`from_draws`.

        Returns
        -------
        display : PosteriorSimilarityDisplay
        """
        hmm = check_fitted_hmm("hmm", hmm)
        return cls.from_draws(
            hmm.draws_,
            steps=steps,
            reference=hmm.labels_,
            order=order,
            colorbar=colorbar,
            ax=ax,
        )

    @classmethod
    def from_draws(
        cls,
        draws: PosteriorDraws | ArrayLike,
        *,
        steps: ArrayLike | None = None,
        reference: ArrayLike | None = None,
        order: str = "estimate",
        colorbar: bool = True,
        ax: Axes | None = None,
    ) -> PosteriorSimilarityDisplay:
        """Plot the similarity matrix of all draws.

        Parameters
        ----------
        draws : PosteriorDraws or array-like of shape (n_draws, n_samples)
            State paths; all chains have equal weight per draw.
        steps : array-like of int, default=None
            Indices of the steps.  None: all up to 500 steps, beyond that 500 evenly
            spaced ones.
        reference : array-like of shape (n_samples,), default=None
            A path of all steps, such as ``labels_``, whose numbering the states get by
            :func:`skihmm.posterior.match_states`.  None: by decreasing occupancy.
        order, colorbar, ax
            As in :meth:`plot`; the partition is :func:`skihmm.posterior.point_estimate`
            of these steps.

        Returns
        -------
        display : PosteriorSimilarityDisplay

        Raises
        ------
        ValueError
            If `reference` has another length than the paths of the draws.
        """
        check_choice("order", order, ORDERS)
        paths = state_paths(draws)
        n_samples = paths.shape[1]
        if reference is not None:
            reference = check_path("reference", reference, n_samples)
        if steps is None:
            n_steps = min(n_samples, _N_STEPS)
            steps = np.linspace(0, n_samples - 1, n_steps).round().astype(np.intp)
        similarity = coassignment(draws, steps)
        chosen = np.asarray(steps, dtype=np.intp) % n_samples
        states = point_estimate(paths[:, chosen], weights=draw_weights(draws))
        if reference is not None:
            largest = reference[chosen].max()
            states = match_states(reference[chosen], states)
            # A state without a partner must not get the number of a state of other steps.
            states[states > largest] += reference.max() - largest
        display = cls(similarity, steps=chosen, states=states)
        return display.plot(ax, order=order, colorbar=colorbar)

    def plot(
        self, ax: Axes | None = None, *, order: str = "estimate", colorbar: bool = True
    ) -> PosteriorSimilarityDisplay:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: a new figure.
        order : {"estimate", "time"}, default="estimate"
            "estimate": the steps of one state of the partition after the other, the
            largest first, with lines between them.  "time": all in the order of `steps`.
        colorbar : bool, default=True
            Whether to add a colour bar.

        Returns
        -------
        self : PosteriorSimilarityDisplay
        """
        check_choice("order", order, ORDERS)
        check_flag("colorbar", colorbar)
        if order == "estimate" and self.states is None:
            raise ValueError(
                "order='estimate', but this display has no states. Use order='time'."
            )
        n = len(self.similarity)
        self.figure_, axes = make_axes(
            "PosteriorSimilarityDisplay.plot", ax, 1, (5.0 + 0.9 * colorbar, 4.6)
        )
        self.ax_ = axes[0]
        self.order_ = np.arange(n)
        if order == "estimate":
            names, labels, counts = np.unique(
                np.asarray(self.states), return_inverse=True, return_counts=True
            )
            # Ties in the order of the labels.
            rank = np.empty(len(names), dtype=np.intp)
            rank[np.argsort(-counts, kind="stable")] = np.arange(len(names))
            self.order_ = np.argsort(rank[labels.ravel()], kind="stable")
        matrix = np.asarray(self.similarity)[np.ix_(self.order_, self.order_)]
        self.im_ = self.ax_.imshow(
            matrix, cmap=SEQUENTIAL, vmin=0, vmax=1, interpolation="nearest"
        )
        self.colorbar_: Colorbar | None = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(
                self.im_, ax=self.ax_, label="probability of the same state"
            )
        if order == "estimate":
            self._mark_states(np.asarray(self.states)[self.order_])
        else:
            self._mark_steps()
        return self

    def _mark_states(self, states: Array) -> None:
        """Draw lines between the states and a tick with a name for each."""
        from matplotlib.ticker import FixedLocator

        from skihmm.inspection._ticks import SparseFormatter

        borders = np.flatnonzero(np.diff(states)) + 1
        for border in borders:
            self.ax_.axhline(border - 0.5, color="white", linewidth=0.5)
            self.ax_.axvline(border - 0.5, color="white", linewidth=0.5)
        begins, ends = np.r_[0, borders], np.r_[borders, len(states)]
        middles = (begins + ends - 1) / 2
        names = [str(k) for k in states[begins]]
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            # The largest states come first, so that they get their names.
            axis.set_major_locator(FixedLocator(middles))
            axis.set_major_formatter(SparseFormatter(middles, names))
            axis.set_tick_params(labelsize=8)
        self.ax_.set(xlabel="state of the step", ylabel="state of the step")

    def _mark_steps(self) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        def name(place: float, _: object) -> str:
            i = round(place)
            return str(self.steps[i]) if 0 <= i < len(self.steps) else ""

        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
            axis.set_major_formatter(FuncFormatter(name))
        self.ax_.set(xlabel="step", ylabel="step")
