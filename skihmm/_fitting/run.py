"""Runs of chains: lengths, stored draws, stopping and observers."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np

from skihmm._data.sequences import Sequences
from skihmm._draws import narrow
from skihmm._fitting.burnin import (
    LEVEL_EVERY,
    MOST,
    end_of_burnin,
    has_settled,
    least_burnin,
    usual_thin,
)
from skihmm._fitting.callbacks import FitTasks
from skihmm._fitting.chain import Chain, History, begin_chain, resume_chain
from skihmm._fitting.chain_file import ChainFile
from skihmm._fitting.progress import Progress, SweepReport
from skihmm._fitting.starts import ModelSettings
from skihmm.core._sweep_info import RATES, SweepInfo

# Why a chain ended before it had all its draws.
INTERRUPTED, MAX_TIME, CALLBACK = "interrupted", "max_time", "callback"
# Ended by max_time or a callback before the first draw was due.
NO_DRAW = "no draw"

# Seconds between two polls: of the flag and the parent by a worker process, of its other
# chains by a failed fit.
POLL_EVERY = 0.05


class StopFlag:
    """Flag that ends the chains of a fit after their current sweeps.

    Threads share the object; a copy in another process of this machine, if there may be
    any, looks for a file, which exists from the raising of the flag until it is closed.
    """

    def __init__(self, has_processes: bool) -> None:
        self._is_raised = False
        self._running: set[int] = set()
        self._pid = os.getpid()
        self._file = (
            Path(tempfile.gettempdir(), f"skihmm-{uuid.uuid4().hex}") if has_processes else None
        )

    @property
    def is_copy(self) -> bool:
        """Whether the flag was made in another process."""
        return os.getpid() != self._pid

    def raise_(self) -> None:
        """Raise the flag."""
        if self._file is not None and not self._is_raised:
            with suppress(OSError):
                self._file.touch()
        self._is_raised = True

    def read_file(self) -> None:
        """Update a copy from the file."""
        if self._file is not None and self._file.exists():
            self._is_raised = True

    def is_raised(self) -> bool:
        """Whether the flag is raised."""
        return self._is_raised

    @contextmanager
    def running(self, index: int) -> Iterator[None]:
        """Let `wait` wait for this chain, if it runs in the same process."""
        self._running.add(index)
        try:
            yield
        finally:
            self._running.discard(index)

    def wait(self) -> None:
        """Wait until the chains in this process have ended, after their sweeps."""
        while self._running:
            time.sleep(POLL_EVERY)

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()


@contextmanager
def raised_by_interrupts(flag: StopFlag) -> Iterator[None]:
    """Let the first Ctrl-C raise the flag, and a second one end the fit at once.

    It has no effect outside of the main thread, which alone gets signals, and replaces no handler
    but Python's own.
    """
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield
        return

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if flag.is_raised():
            signal.default_int_handler(number, frame)
        flag.raise_()

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_orphan() -> bool:
    """Whether this is a worker process whose parent has ended."""
    parent = multiprocessing.parent_process()
    if parent is None or os.getppid() == parent.pid:
        return False
    try:
        # With a fork server the parent is not the main process.
        return not parent.is_alive()
    except ValueError:
        # loky's workers, direct children of the main process, do not support the query.
        return True


@contextmanager
def _watched(stop: StopFlag) -> Iterator[None]:
    """Poll the flag in a worker process, which ends if the main process has ended.

    The signal of Ctrl-C, which goes to all processes of a terminal, is ignored meanwhile,
    since the flag reports it.
    """
    if not stop.is_copy and multiprocessing.parent_process() is None:
        yield
        return

    def poll() -> None:
        if _is_orphan():
            # At once, without another write: a new fit may use the checkpoint already.
            stop.close()
            os._exit(1)
        stop.read_file()

    def keep_polling() -> None:
        while not is_done.wait(POLL_EVERY):
            poll()

    poll()
    is_done = threading.Event()
    thread = threading.Thread(target=keep_polling, daemon=True)
    ignores_interrupts = stop.is_copy and threading.current_thread() is threading.main_thread()
    if ignores_interrupts:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()
        if ignores_interrupts:
            signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Plan:
    """Schedule of all chains of a fit; they end after `max_time` CPU seconds.

    With `n_burnin` None a burn-in ends when its chain has settled; a `thin` of 0 is
    chosen by :meth:`for_steps`.
    """

    n_burnin: int | None
    thin: int
    store_states: bool
    max_time: float

    def for_steps(self, n_steps: int) -> Plan:
        """Return the schedule for data of so many steps, with a number as `thin`."""
        return replace(self, thin=self.thin or usual_thin(n_steps))

    def begin(self) -> History:
        """Return the history of a new chain."""
        if self.n_burnin is None:
            return History(MOST, MOST, levels=np.zeros((0, 2)))
        return History(self.n_burnin, self.n_burnin)

    def check(self, history: History, sequences: Sequences, settings: ModelSettings) -> None:
        """Raise an error if a history from a file is not of this schedule, on this data."""
        n_burnin, draws = self.n_burnin, history.draws
        if n_burnin is None:
            levels = np.empty(0) if history.levels is None else history.levels
            n_burnin = end_of_burnin(levels, sequences.n_steps)
        if history.record is None:
            raise ValueError("it has no record")
        n_sweeps, last = history.record["n_sweeps"], n_burnin + self.thin * len(draws)
        if (
            type(n_sweeps) is not int
            or history.last != last
            or history.n_burnin != n_burnin
            or not (last if draws else 0) <= n_sweeps < last + self.thin
            or history.origin_sweeps != 0
            or history.origin_seconds != 0
        ):
            raise ValueError("the numbers of sweeps and draws do not go together")
        if any(draw.sweep != n_burnin + d * self.thin for d, draw in enumerate(draws, 1)):
            raise ValueError("a draw is of another sweep than it should be")
        history.check(sequences, settings)

    def n_sweeps(self, history: History, n_draws: int) -> int:
        """Total number of sweeps of this fit in a chain, at most.

        `n_draws` includes the history's draws.
        """
        n_missing = n_draws - len(history.draws)
        return history.last + n_missing * self.thin - history.origin_sweeps


@dataclass
class Monitor:
    """Observers of running chains: stop flag, progress, callbacks.

    `callback` gets a SweepReport after every sweep, and returns True to end the chain; `tasks`
    belong to scikit-learn's callbacks.
    """

    stop: StopFlag
    progress: Progress | None
    callback: Callable[[SweepReport], object] | None
    tasks: FitTasks | None

    def before_start(self, index: int) -> None:
        """Report that a chain searches its start."""
        if self.progress is not None:
            self.progress.begin_search(index)

    def after_start(self, index: int) -> None:
        """Report that a chain has its start, or its record."""
        if self.progress is not None:
            self.progress.begin_sweeps(index)

    def after_sweep(
        self,
        index: int,
        chain: Chain,
        info: SweepInfo,
        now: History,
        n_draws: int,
        n_sweeps: int,
    ) -> bool:
        """Report a sweep to all observers; return whether to end the chain.

        `now` is the history up to this sweep, `n_sweeps` the total of this fit.
        """
        sweep = chain.n_sweeps - now.origin_sweeps
        seconds = now.seconds - now.origin_seconds
        due = self.progress is not None and self.progress.is_due(index, sweep, n_sweeps, seconds)
        end = False
        if due or self.callback is not None:
            hyperparameters = chain.state.transitions.hyperparameters
            report = SweepReport(
                chain=index,
                sweep=sweep,
                n_sweeps=n_sweeps,
                n_draws=n_draws,
                n_states=chain.state.n_states,
                lp=chain.state.log_joint(),
                alpha=hyperparameters["alpha"],
                gamma=hyperparameters["gamma"],
                seconds=seconds,
                **{name: getattr(info, name) for name in RATES},
            )
            if self.callback is not None:
                try:
                    end = _is_true(self.callback(report))
                except StopIteration as error:
                    # The exception would end a generator of joblib's.
                    raise RuntimeError(
                        "callback raised StopIteration; return True to end the chain."
                    ) from error
            if due and self.progress is not None:
                self.progress.show(report)
        if self.tasks is not None:
            end |= self.tasks.after_sweep(index, lambda: with_last_state(now, chain, now.tally))
        return end


def _is_true(result: object) -> bool:
    """Whether a callback returned True; values that are true by accident are refused."""
    if result is not None and not isinstance(result, bool | np.bool_):
        raise TypeError(
            f"callback returned {result!r:.100}; expected True to end the chain, False "
            "or None to go on. Let a lambda that only reports return None."
        )
    return bool(result)


@dataclass
class ChainTask:
    """One chain of a fit: the unit of work that joblib distributes.

    The seed is not used if the history, the earlier part of the chain, has a record; `n_draws` is
    the total, with the history's draws; the file is written at intervals and at the end.
    """

    index: int
    seed: np.random.SeedSequence
    history: History
    n_draws: int
    file: ChainFile | None = None


class ChainResult(NamedTuple):
    """Result of a chain: history, why it ended early, and a failure to write the file.

    The history ends at the last record of the chain's schedule, at most a few sweeps
    back, from which the chain continues as without the interruption.
    """

    history: History
    stopped: str | None
    failure: str | None


class Recorder:
    """Draws and records of a chain while it runs.

    `draws` are the draws of the task's history and of all sweeps, `now` is the progress up to the
    last sweep, without the new draws.
    """

    def __init__(self, task: ChainTask, plan: Plan) -> None:
        self._file = task.file
        self._plan = plan
        # The start counts, which may take as long as many sweeps.
        self._started = time.thread_time() - task.history.seconds
        self.now = task.history
        self.draws = list(task.history.draws)
        self._recorded = self.now, len(self.draws)

    def history(self) -> History:
        """Return the history up to the last record.

        An interrupt may have come between a draw and its record.
        """
        recorded, n_draws = self._recorded
        return replace(recorded, draws=self.draws[:n_draws])

    def step(self, chain: Chain) -> SweepInfo:
        """Make a sweep, and the draw and the records that are due."""
        if chain.n_sweeps == self.now.last:
            self.now = replace(self.now, tally=SweepInfo())
        saved = chain.saved
        info = next(chain)
        if chain.saved is not saved:
            # The record is from before the sweep.
            self._record(chain)
            if self._file is not None and self._file.is_due():
                self._file.save(self.history())
        tally = self.now.tally.plus(info)
        self._end_burnin(chain)
        is_draw = chain.n_sweeps == self.now.last + self._plan.thin
        if is_draw:
            draw = chain.draw(tally)
            self.now = replace(self.now.with_best(draw), last=chain.n_sweeps)
            self.draws.append(draw.compact(self._plan.store_states))
        seconds = time.thread_time() - self._started
        self.now = replace(self.now, tally=tally, seconds=seconds)
        if is_draw:
            self._record(chain)
        return info

    def _end_burnin(self, chain: Chain) -> None:
        """End a burn-in without a fixed length if the chain has settled."""
        n_steps, levels = chain.state.n_steps, self.now.levels
        if (
            levels is None
            or chain.n_sweeps > self.now.last
            or chain.n_sweeps % LEVEL_EVERY
            # On short data the burn-in ends with its last sweep.
            or least_burnin(n_steps) == MOST
        ):
            return
        levels = np.vstack([levels, chain.level()])
        end = chain.n_sweeps if has_settled(levels, n_steps) else self.now.n_burnin
        self.now = replace(self.now, levels=levels, last=end, n_burnin=end)

    def _record(self, chain: Chain) -> None:
        self.now = replace(self.now, record=chain.saved)
        self._recorded = self.now, len(self.draws)


def run_chain(
    task: ChainTask,
    sequences: Sequences,
    settings: ModelSettings,
    plan: Plan,
    monitor: Monitor,
) -> ChainResult:
    """Run one chain until it has its draws."""
    if len(task.history.draws) >= task.n_draws:
        return ChainResult(task.history, None, None)
    stop, recorder = monitor.stop, Recorder(task, plan)
    stopped: str | None = INTERRUPTED
    with _watched(stop), stop.running(task.index):
        try:
            if not stop.is_raised():
                record = task.history.record
                if record is None:
                    monitor.before_start(task.index)
                    chain = begin_chain(sequences, settings, task.seed, stop.is_raised)
                else:
                    chain = resume_chain(sequences, settings, record, stop.is_raised)
                monitor.after_start(task.index)
            if not stop.is_raised():
                stopped = _sweep(chain, recorder, task, plan, monitor)
        except KeyboardInterrupt:
            # The chain may be in an inconsistent state; its history is not.
            stop.raise_()
        finally:
            history = recorder.history()
            if task.file is not None:
                task.file.save(history)
        if stopped in (MAX_TIME, CALLBACK) and not recorder.draws:
            # A draw for predictions, which is not part of the chain's schedule and not in
            # its file.
            history = with_last_state(history, chain, recorder.now.tally)
            stopped = NO_DRAW
    return ChainResult(history, stopped, None if task.file is None else task.file.failure)


def _sweep(
    chain: Chain, recorder: Recorder, task: ChainTask, plan: Plan, monitor: Monitor
) -> str | None:
    """Sweep until all draws are there; return the reason to end the chain earlier."""
    limit = task.history.origin_seconds + plan.max_time
    stopped = None
    if monitor.tasks is not None:
        monitor.tasks.begin_chain(task.index)
    while stopped is None and len(recorder.draws) < task.n_draws:
        info = recorder.step(chain)
        now, n_draws = recorder.now, len(recorder.draws)
        so_far = replace(now, draws=recorder.draws)
        n_sweeps = plan.n_sweeps(so_far, task.n_draws)
        if monitor.after_sweep(task.index, chain, info, now, n_draws, n_sweeps):
            stopped = CALLBACK
        if now.seconds >= limit:
            stopped = MAX_TIME
        if monitor.stop.is_raised():
            stopped = INTERRUPTED
    if monitor.tasks is not None:
        monitor.tasks.end_chain(task.index)
    return stopped if len(recorder.draws) < task.n_draws else None


def with_last_state(history: History, chain: Chain, tally: SweepInfo) -> History:
    """Return a history whose only draw is the chain's state, which is not changed."""
    draw = chain.peek(tally)
    return replace(
        history,
        draws=[draw.compact(store_states=True)],
        best_lp=draw.summed_lp,
        best_states=None if draw.states is None else narrow(draw.states),
    )
