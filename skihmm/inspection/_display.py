"""The base of displays: a figure, its axes, and their division into panels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from skihmm._typing import Array
from skihmm.inspection._style import import_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase


class Display(ABC):
    """Base of displays, which are dataclasses: their attributes are what they show.

    Class methods such as ``from_estimator`` compute it, and plot it.
    """

    figure_: Figure

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to divide into panels, or the axes of all panels.  None: a new figure.

        Returns
        -------
        self : object
            The display.
        """

    def _panels(
        self,
        ax: Axes | None,
        n_axes: int,
        figsize: tuple[float, float],
        *,
        n_columns: int = 1,
        height_ratios: Sequence[float] | None = None,
        sharex: bool = False,
    ) -> Array:
        """Make axes of panels: new ones, the ones of the caller, or one divided into several.

        `figsize` is that of a new figure in inches, and `height_ratios` are relative
        heights of the rows.
        """
        axes = self._divided(ax, n_axes, figsize, n_columns, height_ratios, sharex)
        from matplotlib.ticker import ScalarFormatter

        for one in axes:
            for axis in (one.xaxis, one.yaxis):
                if isinstance(axis.get_major_formatter(), ScalarFormatter):
                    # Ticks of 20.97 and 21, not of -0.03 and 0 beside "+2.1e1".
                    axis.get_major_formatter().set_useOffset(False)
        return axes

    def _divided(
        self,
        ax: Axes | None,
        n_axes: int,
        figsize: tuple[float, float],
        n_columns: int,
        height_ratios: Sequence[float] | None,
        sharex: bool,
    ) -> Array:
        plt = import_pyplot(f"{type(self).__name__}.plot")
        from matplotlib.axes import Axes

        if ax is not None and not isinstance(ax, Axes):
            axes = np.asarray(ax, dtype=object).ravel()
            if len(axes) != n_axes or not all(isinstance(a, Axes) for a in axes):
                raise ValueError(
                    f"ax holds {len(axes)} entries; expected one Axes, which is divided, or "
                    f"{n_axes} of them, one per panel."
                )
            self.figure_ = axes[0].figure
            return axes
        if ax is not None and n_axes == 1:
            self.figure_ = cast("Figure", ax.figure)
            return np.array([ax], dtype=object)
        n_rows = -(-n_axes // n_columns)
        if ax is None:
            self.figure_ = plt.figure(figsize=figsize, layout="constrained")
            divide: Callable[..., GridSpecBase] = self.figure_.add_gridspec
        else:
            place = ax.get_subplotspec()
            if place is None:
                raise ValueError(
                    f"This plot has {n_axes} panels, and ax is not part of a grid that it "
                    "could be divided in. Pass one Axes per panel, or Axes made by "
                    "plt.subplots."
                )
            self.figure_ = cast("Figure", ax.figure)
            ax.set_axis_off()
            divide = place.subgridspec
        grid = divide(n_rows, n_columns, height_ratios=height_ratios)
        axes = np.empty(n_axes, dtype=object)
        for i in range(n_axes):
            shared = axes[0] if sharex and i else None
            axes[i] = self.figure_.add_subplot(grid[divmod(i, n_columns)], sharex=shared)
        if sharex and n_columns == 1:
            for one in axes[:-1]:
                one.tick_params(labelbottom=False)
        return axes
