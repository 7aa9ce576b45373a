"""Several emissions at once, and known states, from their definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from skihmm.emissions._product_stats import known_states, product_stats


@dataclass(frozen=True)
class Product:
    """Parts with their numbers of columns; known states (-1: not known) if given.

    If these are closed, there are no others.
    """

    parts: tuple
    widths: tuple
    known: tuple | None = None
    is_closed: bool = False

    def split(self, y) -> list[tuple]:
        """The rows of every part."""
        stops = np.cumsum(self.widths)
        return [
            tuple(row[stop - width : stop] for row in y)
            for width, stop in zip(self.widths, stops, strict=True)
        ]

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{0: log p(y | x)}``, summed over tables; nothing if x is not as known."""
        if self.known is not None:
            pairs = {(k, known) for k, known in zip(x, self.known, strict=True)}
            pairs = {pair for pair in pairs if pair[1] >= 0}
            if len({k for k, _ in pairs}) < len(pairs):
                return {}
            if len({known for _, known in pairs}) < len(pairs):
                return {}
            if self.is_closed and {k for k, _ in pairs} != {*x}:
                return {}
        total = 0.0
        for part, rows in zip(self.parts, self.split(y), strict=True):
            total += logsumexp([*part.log_likelihood_by_tables(x, rows).values()])
        assert math.isfinite(total)
        return {0: total}

    def stats(self, y):
        """Compiled statistics."""
        # (Models know how to build those of one emission.)
        from small_models import Model

        parts = [
            Model(rows, part).stats() for part, rows in zip(self.parts, self.split(y), strict=True)
        ]
        if self.known is None:
            return product_stats(parts)
        # As chains do: of mixed data a product of a product.
        data = parts[0] if len(parts) == 1 else product_stats(parts)
        known = known_states(np.array(self.known), self.is_closed)
        return product_stats([data, known])

    def start(self, n_steps: int) -> np.ndarray:
        """Labels that are as known."""
        if self.known is None:
            return np.zeros(n_steps, dtype=int)
        return np.unique(np.maximum(self.known, 0), return_inverse=True)[1]
