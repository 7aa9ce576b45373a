"""Joint law of the columns of a row in states: multivariate Student's t."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtr

from skihmm._typing import Floats, Integers

# (Without weights of rows.)
_ONE = np.ones(1)


@dataclass
class JointLaw:
    """Student's t of several columns in every state.

    Parameters
    ----------
    residuals : callable
        From values of shape (..., n_rows, 1, n_columns) to values less the location, of shape (...,
        n_rows, n_states, n_columns).
    roots : ndarray of shape (n_states, n_columns, n_columns)
        Lower triangular; the scales are their squares.
    spreads : ndarray of shape (n_rows or 1, n_states)
        Factors of the scales due to the uncertainty of the location.
    dof : ndarray of shape (n_states,)
        Degrees of freedom of the first column.
    noise, weights : ndarray of shape (n_nodes,)
        Factors of the scales due to the noise of a row, and their probabilities.
    """

    residuals: Callable[[Floats], Floats]
    roots: Floats
    spreads: Floats
    dof: Floats
    noise: Floats = field(default_factory=lambda: _ONE)
    weights: Floats = field(default_factory=lambda: _ONE)
    _inverses: dict[bytes, Floats] = field(default_factory=dict)

    def cdf(self, values: Floats) -> Floats:
        """Cumulative probabilities of columns given the columns before them.

        Parameters
        ----------
        values : ndarray of shape (..., n_rows, n_columns)
            The NaN of all leading axes are at the same places.

        Returns
        -------
        probs : ndarray of shape (..., n_rows, n_states, n_columns)
            NaN where the value is.
        """
        seen = ~np.isnan(values.reshape(-1, *values.shape[-2:])[0])
        residuals = self.residuals(values[..., None, :])
        probs = np.full(residuals.shape, np.nan)
        patterns, which = np.unique(seen, axis=0, return_inverse=True)
        for i, pattern in enumerate(patterns):
            columns, rows = np.flatnonzero(pattern), np.flatnonzero(which.ravel() == i)
            if len(columns):
                part = residuals[..., rows, :, :][..., columns]
                part = np.einsum("kij,...kj->...ki", self._inverse(columns), part)
                spreads = self.spreads[rows if len(self.spreads) > 1 else slice(None)]
                states = np.arange(len(self.dof))[:, None]
                found = self._conditional(part, spreads[..., None])
                probs[..., rows[:, None, None], states, columns] = found
        return probs

    def _inverse(self, columns: Integers) -> Floats:
        """Inverse root of the scales of some columns."""
        key = columns.tobytes()
        if key not in self._inverses:
            root = self.roots[:, columns]
            if columns[-1] == len(columns) - 1:
                root = root[:, :, : len(columns)]
            else:
                root = np.linalg.qr(root.transpose(0, 2, 1)).R.transpose(0, 2, 1)
                root = root * np.sign(np.einsum("kii->ki", root))[:, None]
            self._inverses[key] = np.asarray(np.linalg.inv(root), dtype=np.float64)
        return self._inverses[key]

    def _conditional(self, x: Floats, spreads: Floats) -> Floats:
        """Cumulative probabilities of whitened residuals; earlier squares add to t's scale."""
        dof = self.dof[:, None] + np.arange(x.shape[-1])
        before = np.cumsum(x**2, axis=-1) - x**2
        if len(self.noise) == 1:
            return np.asarray(stdtr(dof, x * np.sqrt(dof / (spreads + 1 + before))))
        x, dof = x[..., None], dof[..., None]
        scale = spreads[..., None] + self.noise + before[..., None]
        logs = -0.5 * np.log(scale) - 0.5 * (dof + 1) * np.log1p(x**2 / scale)
        logs = np.log(self.weights) + np.cumsum(logs, axis=-2) - logs
        shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
        probs = stdtr(dof, x * np.sqrt(dof / scale))
        return np.asarray((probs * shares).sum(axis=-1) / shares.sum(axis=-1))
