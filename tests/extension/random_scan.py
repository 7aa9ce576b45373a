"""Samplers that another package might have, in Python from beginning to end."""

from __future__ import annotations

from typing import Any

import numpy as np

from skihmm.samplers import BaseSampler, SweepInfo


class RandomScanGibbs(BaseSampler):
    """Step-wise sampler that visits a share of the steps in every sweep.

    Parameters
    ----------
    fraction : float, default=0.5
        Share of the steps that a sweep visits, in random order; one step at least.
    """

    releases_gil = False

    def __init__(self, fraction: float = 0.5) -> None:
        self.fraction = fraction

    def check_parameters(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction={self.fraction}; expected 0 < fraction <= 1.")

    def make_kernel(self, state: Any) -> RandomScanGibbs:
        return self

    def sweep(self, state: Any) -> SweepInfo:
        n_moves, n_accepted = max(1, round(self.fraction * state.n_steps)), 0
        for t in state.stream.generator.permutation(state.n_steps)[:n_moves]:
            with state.move(t, t + 1) as move:
                move.remove()
                log_w = move.log_weights(t)
                k = state.stream.categorical(log_w)
                move.add([k])
                n_accepted += move.accept(log_w[move.old[0]] - log_w[k])
        return SweepInfo(n_moves, n_accepted)


class SequentialBlocks(BaseSampler):
    """Proposes two or three steps at once, one after the other."""

    releases_gil = False

    def __init__(self, uses_ratio=True):
        self.uses_ratio = uses_ratio

    def make_kernel(self, state):
        return self

    @staticmethod
    def log_q(move, start, path):
        """Log probability of proposing a path."""
        total = 0.0
        for i, label in enumerate(path):
            log_w = move.log_weights(start + i, path[:i])
            total += log_w[label] - np.logaddexp.reduce(log_w)
        return total

    def sweep(self, state):
        n_accepted = 0
        for _ in range(2):
            length = int(state.stream.generator.integers(2, 4))
            start = int(state.stream.generator.integers(state.n_steps))
            stop = min(start + length, state.n_steps)
            try:
                block = state.move(start, stop)
            except ValueError:  # two sequences
                stop = start + 1
                block = state.move(start, stop)
            with block as move:
                move.remove()
                path = []
                for t in range(start, stop):
                    path.append(state.stream.categorical(move.log_weights(t, path)))
                ratio = self.log_q(move, start, move.old) - self.log_q(move, start, path)
                move.add(path)
                n_accepted += move.accept(ratio if self.uses_ratio else 0.0)
        return 2, n_accepted
