"""Progress of a fit: reports for callbacks, a progress bar, lines of a log."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass

# Seconds between two updates of the bar, and between two lines of a log.
BAR_EVERY = 0.1
LINE_EVERY = 1.0

# Seconds over which the speed is measured: sweeps of the start take longer than later sweeps.
WINDOW = 10.0

# With it the line has at most 80 columns.
BAR_WIDTH = 14


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
        1: a bar, or a line about once a second; 2: a line after every sweep, with the log joint
        probability and the acceptance rate.
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
        now = time.perf_counter()
        self._shown = [now] * len(n_sweeps)
        # Sweeps made at some times, the last few seconds of which give the speed.
        self._history = deque([(now, tuple(done))])
        # When searches for starts began, and how long those took that have ended.
        self._searching: dict[int, float] = {}
        self._searches: list[float] = []
        self._lock = threading.Lock()
        self._width = 0
        # Set here, because another process has another standard output.
        self._is_bar = verbose == 1 and sys.stdout.isatty()
        self._every = LINE_EVERY if verbose == 1 else 0.0
        self._has_details = verbose > 1

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_lock": None, "_is_bar": False}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def begin_search(self, chain: int) -> None:
        """Show that a chain searches its start, which takes as long as many sweeps."""
        with self._lock:
            self._searching[chain] = time.perf_counter()
            if self._is_bar:
                self._draw_bar()
            else:
                print(f"chain {chain}: searching a start", flush=True)

    def begin_sweeps(self, chain: int) -> None:
        """Begin to measure the speed: searches, and chains before in turn, are no time of it."""
        with self._lock:
            now = time.perf_counter()
            if chain in self._searching:
                self._searches.append(now - self._searching.pop(chain))
            self._history = deque([(now, tuple(self._done))])

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
            self._reports[report.chain] = report
            self._remember()
            if self._is_bar:
                self._draw_bar()
                return
            chain = report.chain
            line = f"chain {chain}: {self._summary([chain], 'sweep {}/{}')}"
            if self._has_details:
                line += f", log joint {report.lp:.1f}, acceptance {report.acceptance_rate:.3f}"
            print(line, flush=True)

    def close(self) -> None:
        """Leave the line that holds the bar."""
        if self._is_bar and self._width:
            print(flush=True)

    def _remember(self) -> None:
        """Add the present to the history, and forget what is older than the window."""
        now = time.perf_counter()
        if now - self._history[-1][0] >= BAR_EVERY:
            self._history.append((now, tuple(self._done)))
        while len(self._history) > 2 and now - self._history[1][0] > WINDOW:
            self._history.popleft()

    def _left(self, chains: list[int]) -> float:
        """Seconds left at the mean speed of the last seconds."""
        then, before = self._history[0]
        elapsed = time.perf_counter() - then
        made = sum(self._done[c] - before[c] for c in chains)
        left, n_waiting = 0.0, 0
        for c in chains:
            sweeps, own = float(self._total[c] - self._done[c]), self._done[c] - self._begun[c]
            if self._max_time < float("inf") and own and self._spent[c] > 0:
                rate = own / self._spent[c]
                sweeps = min(sweeps, (self._max_time - self._spent[c]) * rate)
            left += max(sweeps, 0.0)
            n_waiting += own == 0 and self._begun[c] == 0
        if left == 0:
            return 0.0
        if not made or elapsed <= 0:
            return float("inf")
        n_running = max(len(chains) - n_waiting, 1)
        mean_search = sum(self._searches) / max(len(self._searches), 1)
        return elapsed * left / made + mean_search * n_waiting / n_running

    def _summary(self, chains: list[int], sweeps: str) -> str:
        """Share, time left, sweeps and states of chains."""
        done, total = (sum(n[c] for c in chains) for n in (self._done, self._total))
        share = done / total if total else 1.0
        words = [f"{100 * share:3.0f} %"]
        reports = [self._reports[c] for c in chains if c in self._reports]
        if self._is_bar:
            words[0] += f" |{'#' * round(share * BAR_WIDTH):<{BAR_WIDTH}}|"
        if not reports:
            return f"{words[0]} searching a start"
        if (left := self._left(chains)) < float("inf"):
            words.append(f"{_duration(left)} left")
        words.append(sweeps.format(done, total))
        n_states = sorted({report.n_states for report in reports})
        words.append("-".join(map(str, dict.fromkeys([n_states[0], n_states[-1]]))) + " states")
        return f"{words[0]} {', '.join(words[1:])}"

    def _draw_bar(self) -> None:
        line = self._summary(list(range(len(self._total))), "{}/{} sweeps")
        # A longer line would wrap, and a wrapped line cannot be overwritten.
        line = line[: shutil.get_terminal_size().columns - 1]
        print("\r" + line.ljust(self._width), end="", flush=True)
        self._width = len(line)


def _duration(seconds: float) -> str:
    """Duration in seconds, minutes or hours."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
