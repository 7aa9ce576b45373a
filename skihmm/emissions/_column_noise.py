"""Noise that a fit adds to columns of numbers whose exact values have no density."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from skihmm._data.scales import column_variances, constant_columns
from skihmm._typing import Floats, Integers
from skihmm.emissions._resolution import (
    NOISE_OF_DETERMINED,
    NOISE_OF_LEVELS,
    NOISE_OF_STEPS,
    dead_stretches,
    describe_constant,
    describe_dead,
    describe_determined,
    describe_levels,
    describe_repeats,
    describe_rounding,
    determined_columns,
    given_steps,
    grid_step,
    level_gap,
)


@dataclass(frozen=True, eq=False)
class ColumnNoise:
    """Noise of columns, and what users are told about it.

    Attributes
    ----------
    steps : ndarray of shape (n_features,)
        Steps of rounded columns, 0 for other columns.
    widths, deviations : ndarray of shape (n_features,)
        Widths of uniform noise, and standard deviations of normal noise.
    dead : sequence of tuple
        Column, first row, end and standard deviation of stretches of a constant value.
    notes, warnings : sequence of str
    """

    steps: Floats
    widths: Floats
    deviations: Floats
    dead: Sequence[tuple[int, int, int, float]] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @classmethod
    def none(cls, n_columns: int) -> ColumnNoise:
        """No noise."""
        return cls(*np.zeros((3, n_columns)))

    @classmethod
    def of_data(
        cls,
        X: Floats,
        starts: Integers,
        resolution: ArrayLike | str,
        labels: Sequence[str | int],
        comparable: Floats,
        precision: float,
        looks_back: bool,
    ) -> ColumnNoise:
        """Noise that suits the columns of sequences.

        `resolution` is the parameter of the emissions, and columns have their scales in
        `comparable`: rows without the levels of subjects and without wrong values.
        `precision` is the argument of :func:`grid_step`.  Rounded columns that later rows look
        back to have uniform noise: two autoregressions, rounded to two standard deviations of
        the innovation, have the adjusted Rand index .65 to .71 with it, .21 to .88 with normal
        noise.
        """
        n = X.shape[1]
        levels = np.zeros(n)
        if isinstance(resolution, str) and resolution == "auto":
            steps = np.array([grid_step(column, precision) for column in X.T])
            levels = NOISE_OF_LEVELS * np.array([level_gap(column, starts) for column in X.T])
            steps[levels > 0] = 0.0
        else:
            steps = given_steps(resolution, n)
        is_constant = constant_columns(X)
        steps[is_constant] = 0.0
        widths = steps if looks_back else np.zeros(n)
        deviations = levels + NOISE_OF_STEPS * (steps - widths)
        size = np.abs(X[:, is_constant])
        deviations[is_constant] = np.maximum(1.0, 1e-6 * np.nanmax(size, axis=0))
        is_free = (steps == 0) & (levels == 0) & ~is_constant
        repeats = describe_repeats(X, starts, is_free)
        dead: list[tuple[int, int, int, float]] = []
        if not repeats:
            scales = np.sqrt(column_variances(comparable)).tolist()
            for c in np.flatnonzero(is_free).tolist():
                dead += [(c, *rows, scales[c]) for rows in dead_stretches(X[:, c])]
        notes = describe_rounding(labels, steps, looks_back) + describe_levels(labels, levels)
        warnings = describe_constant(labels, is_constant) + repeats + describe_dead(labels, dead)
        return cls(steps, widths, deviations, dead, notes, warnings)

    def with_determined(
        self, rows: Floats, spread: Floats, labels: Sequence[str | int]
    ) -> ColumnNoise:
        """The same noise, and noise of columns that other columns determine in complete `rows`.

        `spread` are the standard deviations of the columns.
        """
        mask = determined_columns(rows)
        if not mask.any():
            return self
        deviations = np.where(mask, NOISE_OF_DETERMINED * spread, self.deviations)
        warnings = [*self.warnings, *describe_determined(labels, mask)]
        return replace(self, deviations=deviations, warnings=warnings)

    def of_rows(self, n_rows: int, first: int, entropy: Sequence[int]) -> Floats | None:
        """Noise of rows from number `first` on, a function of the entropy and the number.

        None without noise.
        """
        if not (self.widths.any() or self.deviations.any() or self.dead):
            return None
        deviations = np.tile(self.deviations, (n_rows, 1))
        for c, start, end, deviation in self.dead:
            deviations[max(start - first, 0) : max(end - first, 0), c] = deviation
        stream = np.random.PCG64(np.random.SeedSequence(list(entropy)))
        n = len(self.widths)
        stream.advance(2 * n * first)
        uniform = np.random.Generator(stream).random((n_rows, 2 * n))
        # A draw may be zero, whose normal quantile is infinite.
        normal = ndtri(np.maximum(uniform[:, n:], 2.0**-54))
        return np.asarray(self.widths * (uniform[:, :n] - 0.5) + deviations * normal)
