"""Checks of exact transition matrices."""

from __future__ import annotations

import numpy as np


def stationarity_errors(matrix: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Largest errors of the rows' sums and of the target's probabilities."""
    rows = float(np.max(np.abs(matrix.sum(axis=1) - 1.0)))
    return rows, float(np.max(np.abs(target @ matrix - target)))


def irreversibility(matrix: np.ndarray, target: np.ndarray) -> float:
    """Largest difference between the flows from one state to another and back."""
    flow = target[:, None] * matrix
    return float(np.max(np.abs(flow - flow.T)))
