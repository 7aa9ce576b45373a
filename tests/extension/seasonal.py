"""A sampler whose proposals read the labels of other steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from skihmm.samplers import BaseSampler, SweepInfo


class SeasonalGibbs(BaseSampler):
    """Step-wise sampler that also proposes the state of one period before or after.

    Parameters
    ----------
    period : int, default=24
    share : float, default=0.5
        Probability to propose such a state, at least 0 and below 1.
    """

    releases_gil = False

    def __init__(self, period: int = 24, share: float = 0.5) -> None:
        self.period = period
        self.share = share

    def make_kernel(self, state: Any) -> SeasonalGibbs:
        return self

    def sweep(self, state: Any) -> SweepInfo:
        slots, n_accepted = state.slots, 0
        for t in state.stream.generator.permutation(state.n_steps):
            before_and_after = t - self.period, t + self.period
            seasonal = [s for s in before_and_after if 0 <= s < state.n_steps]
            with state.move(t, t + 1) as move:
                move.remove()
                log_w = move.log_weights(t)
                q = np.exp(log_w - np.logaddexp.reduce(log_w))
                if seasonal:
                    q *= 1 - self.share
                    np.add.at(q, slots[seasonal], self.share / len(seasonal))
                k = state.stream.generator.choice(len(q), p=q / q.sum())
                move.add([k])
                if move.accept(np.log(q[slots[t]]) - np.log(q[k])):
                    slots[t] = k
                    n_accepted += 1
        return SweepInfo(state.n_steps, n_accepted)
