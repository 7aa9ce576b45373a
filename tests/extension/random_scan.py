"""A sampler that another package might have, in Python from beginning to end."""

from __future__ import annotations

from typing import Any

from skihmm.samplers import BaseSampler


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

    def sweep(self, state: Any) -> tuple[int, int]:
        n_moves, n_accepted = max(1, round(self.fraction * state.n_steps)), 0
        for t in state.stream.generator.permutation(state.n_steps)[:n_moves]:
            with state.move(t, t + 1) as move:
                move.remove()
                log_w = move.log_weights(t)
                k = state.stream.categorical(log_w)
                move.add([k])
                n_accepted += move.accept(log_w[move.old[0]] - log_w[k])
        return n_moves, n_accepted
