"""Counts and time of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import NamedTuple

# Acceptance rates of sweeps, draws and reports.
RATES = tuple(f"{kind}acceptance_rate" for kind in ("", "split_merge_", "run_split_merge_"))


def _rate(n: int, n_accepted: int) -> float:
    return n_accepted / n if n else float("nan")


class SweepInfo(NamedTuple):
    """Counts and CPU time of one sweep, returned by a kernel's ``sweep``.

    Parameters
    ----------
    n_proposed, n_accepted : int
        Numbers of local moves.
    trials : dict of {str: (int, int)}
        Numbers of trials made and accepted of ``"split_merge"``, of ``"run_split_merge"``
        (trials of whole runs), and of a sampler's own kinds.
    seconds : float
        CPU seconds of this thread, which the chain measures.

    See Also
    --------
    BaseSampler : Base class of samplers.

    Examples
    --------
    >>> from skihmm.samplers import SweepInfo
    >>> SweepInfo(n_proposed=40, n_accepted=30).acceptance_rate
    0.75
    """

    n_proposed: int = 0
    n_accepted: int = 0
    trials: Mapping[str, tuple[int, ...]] = {}
    seconds: float = 0.0

    @property
    def acceptance_rate(self) -> float:
        """Acceptance rate of the local proposals.  NaN without proposals."""
        return _rate(self.n_proposed, self.n_accepted)

    @property
    def split_merge_acceptance_rate(self) -> float:
        """Acceptance rate of split-merge trials.  NaN without trials."""
        return _rate(*self.trials.get("split_merge", (0, 0)))

    @property
    def run_split_merge_acceptance_rate(self) -> float:
        """Acceptance rate of split-merge trials of whole runs.  NaN without trials."""
        return _rate(*self.trials.get("run_split_merge", (0, 0)))

    def plus(self, other: SweepInfo) -> SweepInfo:
        """Add the counts and seconds of another sweep.

        Parameters
        ----------
        other : SweepInfo

        Returns
        -------
        total : SweepInfo
        """
        trials = {**self.trials}
        for name, pair in other.trials.items():
            trials[name] = tuple(map(add, trials.get(name, (0, 0)), pair))
        n_proposed, n_accepted = map(add, self[:2], other[:2])
        return SweepInfo(n_proposed, n_accepted, trials, self.seconds + other.seconds)
