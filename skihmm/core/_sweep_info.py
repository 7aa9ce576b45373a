"""Counts and time of a sweep."""

from __future__ import annotations

from operator import add
from typing import NamedTuple


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


class SweepInfo(NamedTuple):
    """Counts and CPU time of one sweep, returned by a kernel's ``sweep``.

    Parameters
    ----------
    n_proposed, n_accepted : int
        Numbers of local moves.
    n_trials, n_trials_accepted : int
        Numbers of split-merge trials.
    n_run_trials, n_run_trials_accepted : int
        Numbers of split-merge trials of whole runs.
    seconds : float
        CPU seconds of this thread, which the chain measures.

    Examples
    --------
    >>> from skihmm.samplers import SweepInfo
    >>> SweepInfo(n_proposed=40, n_accepted=30).acceptance_rate
    0.75
    """

    n_proposed: int = 0
    n_accepted: int = 0
    n_trials: int = 0
    n_trials_accepted: int = 0
    n_run_trials: int = 0
    n_run_trials_accepted: int = 0
    seconds: float = 0.0

    @property
    def acceptance_rate(self) -> float:
        """Acceptance rate of the local proposals; NaN if there were none."""
        return _share(self.n_accepted, self.n_proposed)

    @property
    def split_merge_acceptance_rate(self) -> float:
        """The same of split-merge trials."""
        return _share(self.n_trials_accepted, self.n_trials)

    @property
    def run_split_merge_acceptance_rate(self) -> float:
        """The same of split-merge trials of whole runs."""
        return _share(self.n_run_trials_accepted, self.n_run_trials)

    def plus(self, other: SweepInfo) -> SweepInfo:
        """Add the counts and seconds of another sweep.

        Parameters
        ----------
        other : SweepInfo

        Returns
        -------
        total : SweepInfo
        """
        return SweepInfo(*map(add, self, other))
