"""Progress of a fit: reports for callbacks, a progress bar, lines of a log."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from dataclasses import dataclass

# Seconds between two updates of the bar, and between two lines of a log.
BAR_EVERY = 0.1
LINE_EVERY = 1.0

BAR_WIDTH = 20


@dataclass(frozen=True)
class SweepReport:
    """Report of one sweep of one chain: the argument of ``HCRPHMM(callback=...)``.

    Attributes
    ----------
    chain : int
        Number of the chain.
    sweep : int
        Sweeps of this fit in this chain so far, with the burn-in and those of a resumed
        checkpoint.
    n_sweeps : int
        Total number of sweeps of this fit in this chain.
    n_draws : int
        Draws stored by the chain so far, with those of earlier fits and checkpoints.
    n_states : int
        Number of states.
    lp : float
        Log joint probability of states, seating and data given the concentrations, nats.
    alpha, gamma : float
        Transition concentrations.
    acceptance_rate : float
        Acceptance rate of this sweep's local proposals.
    split_merge_acceptance_rate : float
        The same of its split-merge trials; NaN if there were none.
    run_split_merge_acceptance_rate : float
        The same of its split-merge trials of whole runs.
    seconds : float
        CPU seconds of this fit in this chain.
    """

    chain: int
    sweep: int
    n_sweeps: int
    n_draws: int
    n_states: int
    lp: float
    alpha: float
    gamma: float
    acceptance_rate: float
    split_merge_acceptance_rate: float
    run_split_merge_acceptance_rate: float
    seconds: float


class Progress:
    """Progress of all chains: a bar on a terminal, otherwise lines.

    Chains that run as threads share one object and one bar.  A copy in another process
    writes lines, because it does not have the progress of the other chains.

    Parameters
    ----------
    n_sweeps : list of int
        Total number of sweeps of every chain.
    done : list of int
        Number of sweeps already made.
    verbose : int
        1: a bar, or a line about once a second; 2: a line after every sweep.
    max_time : float
        CPU seconds after which a chain ends.
    """

    def __init__(self, n_sweeps: list[int], done: list[int], verbose: int, max_time: float) -> None:
        self._total = n_sweeps
        self._begun = list(done)
        self._done = list(done)
        self._spent = [0.0] * len(n_sweeps)
        self._reports: dict[int, SweepReport] = {}
        self._max_time = max_time
        self._started = time.perf_counter()
        self._shown = [self._started] * len(n_sweeps)
        self._lock = threading.Lock()
        self._width = 0
        # Set here, because another process has another standard output.
        self._is_bar = verbose == 1 and sys.stdout.isatty()
        self._every = LINE_EVERY if verbose == 1 else 0.0

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_lock": None, "_is_bar": False}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def is_due(self, chain: int, sweep: int, n_sweeps: int, seconds: float) -> bool:
        """Count sweeps and CPU seconds of a chain; return whether a report is due.

        The total number of sweeps, `n_sweeps`, is less once a burn-in has ended early.
        """
        self._total[chain] = n_sweeps
        self._done[chain] = sweep
        self._spent[chain] = seconds
        now = time.perf_counter()
        # A bar has a single clock, lines have a clock per chain.
        clock, every = (0, BAR_EVERY) if self._is_bar else (chain, self._every)
        if now - self._shown[clock] < every and sweep < self._total[chain]:
            return False
        self._shown[clock] = now
        return True

    def show(self, report: SweepReport) -> None:
        """Show the report of the chain for which :meth:`is_due` was true."""
        with self._lock:
            if self._is_bar:
                self._reports[report.chain] = report
                self._draw_bar()
            else:
                print(
                    f"chain {report.chain}: sweep {report.sweep}/{report.n_sweeps}, "
                    f"{self._summary([report], [report.chain])}",
                    flush=True,
                )

    def close(self) -> None:
        """Leave the line that holds the bar."""
        if self._is_bar and self._width:
            print(flush=True)

    def _left(self, chains: list[int]) -> float:
        """Seconds left at the mean speed so far."""
        elapsed = time.perf_counter() - self._started
        done = sum(self._done[c] - self._begun[c] for c in chains)
        left = 0.0
        for c in chains:
            sweeps = float(self._total[c] - self._done[c])
            made = self._done[c] - self._begun[c]
            if self._max_time < float("inf") and made and self._spent[c] > 0:
                rate = made / self._spent[c]
                sweeps = min(sweeps, (self._max_time - self._spent[c]) * rate)
            left += max(sweeps, 0.0)
        return elapsed * left / done if done else float("inf")

    def _summary(self, reports: list[SweepReport], chains: list[int]) -> str:
        elapsed = time.perf_counter() - self._started
        done = sum(self._done[c] - self._begun[c] for c in chains)
        n_states = sorted({report.n_states for report in reports})
        states = f"{n_states[0]}" + (f"-{n_states[-1]}" if len(n_states) > 1 else "")
        acceptance = sum(report.acceptance_rate for report in reports) / len(reports)
        return (
            f"{done / elapsed if elapsed > 0 else float('inf'):.1f} sweeps/s, "
            f"{states} states, "
            f"log joint {max(report.lp for report in reports):.1f}, "
            f"acceptance {acceptance:.3f}, {self._left(chains):.0f} s left"
        )

    def _draw_bar(self) -> None:
        reports = [self._reports[c] for c in sorted(self._reports)]
        total = sum(self._total)
        share = sum(self._done) / total if total else 1.0
        bar = "#" * round(share * BAR_WIDTH)
        summary = self._summary(reports, list(range(len(self._total))))
        line = f"{share:4.0%} |{bar:<{BAR_WIDTH}}| {sum(self._done)}/{total} sweeps, {summary}"
        # A longer line would wrap, and a wrapped line cannot be overwritten.
        line = line[: shutil.get_terminal_size().columns - 1]
        print("\r" + line.ljust(self._width), end="", flush=True)
        self._width = len(line)
