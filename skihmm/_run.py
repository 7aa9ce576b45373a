"""Runs of chains: how far they go, what is kept, what ends them early."""

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

from skihmm._callbacks import FitTasks
from skihmm._chain import Chain, History, ModelSettings
from skihmm._chain_file import ChainFile
from skihmm._progress import Progress, SweepReport
from skihmm._sequences import Sequences
from skihmm.core._sweep_info import SweepInfo

# Why a chain ended before it had all its draws.
INTERRUPTED, MAX_TIME, CALLBACK = "interrupted", "max_time", "callback"
# The latter two, before the first draw was due.
NO_DRAW = "no draw"

# Seconds between two looks of a worker process at the flag and at its parent.
LOOK_EVERY = 0.05


class StopFlag:
    """Tells the chains of a fit to end after the sweep that they are in.

    Threads share the object; a copy in another process of this machine looks for a file,
    which exists only from the moment when the flag is raised until it is closed.

    Parameters
    ----------
    has_processes : bool
        Chains may run in other processes.
    """

    def __init__(self, has_processes: bool) -> None:
        self._is_raised = False
        self._pid = os.getpid()
        self._file = (
            Path(tempfile.gettempdir(), f"skihmm-{uuid.uuid4().hex}")
            if has_processes
            else None
        )

    @property
    def is_copy(self) -> bool:
        """Whether this is another process than the one that made the flag."""
        return os.getpid() != self._pid

    def raise_(self) -> None:
        """Raise the flag."""
        if self._file is not None and not self._is_raised:
            with suppress(OSError):
                self._file.touch()
        self._is_raised = True

    def look(self) -> None:
        """Notice, in a copy, that the flag was raised."""
        if self._file is not None and self._file.exists():
            self._is_raised = True

    def is_raised(self) -> bool:
        """Whether the flag is raised."""
        return self._is_raised

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()


@contextmanager
def raised_by_interrupts(flag: StopFlag) -> Iterator[None]:
    """Let the first Ctrl-C raise the flag, and a second one end the fit at once.

    Does nothing outside the main thread, which alone gets signals, and leaves a handler
    that somebody else has installed.

    Parameters
    ----------
    flag : StopFlag
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
    """Whether this is a worker process and the one that started it has ended."""
    parent = multiprocessing.parent_process()
    if parent is None or os.getppid() == parent.pid:
        return False
    try:
        # A fork server stands between the two.
        return not parent.is_alive()
    except ValueError:
        # loky's workers cannot ask that, and nothing stands between.
        return True


@contextmanager
def _watched(stop: StopFlag) -> Iterator[None]:
    """In a worker process: look for the flag, and end if the main process has ended.

    A copy of the flag says what Ctrl-C does; the signal, which goes to all processes of a
    terminal, is ignored meanwhile.
    """
    if not stop.is_copy and multiprocessing.parent_process() is None:
        yield
        return

    def look() -> None:
        if _is_orphan():
            # At once, without another write: a new fit may use the checkpoint by now.
            stop.close()
            os._exit(1)
        stop.look()

    def keep_looking() -> None:
        while not is_done.wait(LOOK_EVERY):
            look()

    look()
    is_done = threading.Event()
    thread = threading.Thread(target=keep_looking, daemon=True)
    ignores_interrupts = (
        stop.is_copy and threading.current_thread() is threading.main_thread()
    )
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
    """What all chains of a fit do.

    Attributes
    ----------
    n_burnin, thin : int
        Sweeps discarded, sweeps per draw.
    store_states : bool
        Keep every draw's path.
    max_time : float
        CPU seconds after which a chain ends.
    """

    n_burnin: int
    thin: int
    store_states: bool
    max_time: float

    def n_sweeps(self, history: History, n_draws: int) -> int:
        """Sweeps of this fit that a chain will have made when it has all draws.

        Parameters
        ----------
        history : History
        n_draws : int
            Draws wanted, those of the history included.

        Returns
        -------
        n_sweeps : int
        """
        n_missing = n_draws - len(history.draws)
        return history.last + n_missing * self.thin - history.origin_sweeps


class Monitor:
    """What looks at chains while they run.

    Parameters
    ----------
    stop : StopFlag
    progress : Progress or None
    callback : callable or None
        Called with a SweepReport after every sweep; a true answer ends the chain.
    tasks : FitTasks or None
        scikit-learn's callbacks.
    """

    def __init__(
        self,
        stop: StopFlag,
        progress: Progress | None,
        callback: Callable[[SweepReport], object] | None,
        tasks: FitTasks | None,
    ) -> None:
        self.stop = stop
        self.progress = progress
        self.callback = callback
        self.tasks = tasks

    def after_sweep(
        self,
        index: int,
        chain: Chain,
        info: SweepInfo,
        now: History,
        n_draws: int,
        n_sweeps: int,
    ) -> bool:
        """Report a sweep to all observers; a true answer ends the chain.

        Parameters
        ----------
        index : int
            Number of the chain.
        chain : Chain
        info : SweepInfo
        now : History
            As far as this sweep.
        n_draws, n_sweeps : int
            Draws made, and sweeps that this fit will have made.

        Returns
        -------
        end : bool
        """
        sweep = chain.n_sweeps - now.origin_sweeps
        seconds = now.seconds - now.origin_seconds
        due = self.progress is not None and self.progress.is_due(index, sweep, seconds)
        end = False
        if due or self.callback is not None:
            report = SweepReport(
                chain=index,
                sweep=sweep,
                n_sweeps=n_sweeps,
                n_draws=n_draws,
                n_states=chain.state.n_states,
                lp=chain.state.log_joint(),
                alpha=chain.state.transitions.alpha,
                gamma=chain.state.transitions.gamma,
                acceptance_rate=info.acceptance_rate,
                split_merge_acceptance_rate=info.split_merge_acceptance_rate,
                seconds=seconds,
            )
            if self.callback is not None:
                end = bool(self.callback(report))
            if due and self.progress is not None:
                self.progress.show(report)
        if self.tasks is not None:
            end |= self.tasks.after_sweep(
                index, lambda: with_last_state(now, chain, now.tally)
            )
        return end


@dataclass
class ChainTask:
    """One chain of a fit: the unit of work that joblib distributes.

    Attributes
    ----------
    index : int
        Number of the chain.
    seed : numpy.random.SeedSequence
        Where the chain's random stream starts; not used if the history has a record.
    history : History
        What was done already.
    n_draws : int
        Draws wanted, those of the history included.
    file : ChainFile or None
        Where the history is written to, now and then and in the end.
    """

    index: int
    seed: np.random.SeedSequence
    history: History
    n_draws: int
    file: ChainFile | None = None


class ChainResult(NamedTuple):
    """How a chain has ended.

    Attributes
    ----------
    history : History
        Ends at the last record of the chain's own schedule, which is at most a few sweeps
        back, so that to go on from it is to go on as if nothing had happened.
    stopped : {INTERRUPTED, MAX_TIME, CALLBACK, NO_DRAW} or None
        What ended the chain early.
    failure : str or None
        The warning, if the file could not be written.
    """

    history: History
    stopped: str | None
    failure: str | None


def run_chain(
    task: ChainTask,
    sequences: Sequences,
    settings: ModelSettings,
    plan: Plan,
    monitor: Monitor,
) -> ChainResult:
    """Run one chain until it has its draws.

    Parameters
    ----------
    task : ChainTask
    sequences : Sequences
    settings : ModelSettings
    plan : Plan
    monitor : Monitor

    Returns
    -------
    result : ChainResult
    """
    index, history, n_draws, file = task.index, task.history, task.n_draws, task.file
    if len(history.draws) >= n_draws:
        return ChainResult(history, None, None)
    stop = monitor.stop
    n_sweeps = plan.n_sweeps(history, n_draws)
    limit = history.origin_seconds + plan.max_time
    stopped = None
    # All draws, and of how many of them the last record knows.
    draws = list(history.draws)
    kept = history, len(draws)

    def closed() -> History:
        history, n_kept = kept
        return replace(history, draws=draws[:n_kept])

    with _watched(stop):
        try:
            if stop.is_raised():
                return ChainResult(history, INTERRUPTED, None)
            chain = Chain(
                sequences, settings, task.seed, history.record, is_stopped=stop.is_raised
            )
            if stop.is_raised():
                return ChainResult(history, INTERRUPTED, None)
            if monitor.tasks is not None:
                monitor.tasks.begin_chain(index)
            now = history
            started = time.thread_time() - now.seconds
            while stopped is None and len(draws) < n_draws:
                if chain.n_sweeps == now.last:
                    now = replace(now, tally=SweepInfo())
                saved = chain.saved
                info = next(chain)
                if chain.saved is not saved:
                    # (Of the moment before the sweep.)
                    now = replace(now, record=chain.saved)
                    kept = now, len(draws)
                    if file is not None and file.is_due():
                        file.save(closed())
                now = replace(now, tally=now.tally.plus(info))
                is_draw = chain.n_sweeps == now.last + plan.thin
                if is_draw:
                    draw = chain.draw(now.tally)
                    now = replace(now.with_best(draw), last=chain.n_sweeps)
                    draws.append(draw.compact(plan.store_states))
                now = replace(now, seconds=time.thread_time() - started)
                if is_draw:
                    now = replace(now, record=chain.saved)
                    kept = now, len(draws)
                if monitor.after_sweep(index, chain, info, now, len(draws), n_sweeps):
                    stopped = CALLBACK
                if now.seconds >= limit:
                    stopped = MAX_TIME
                if stop.is_raised():
                    stopped = INTERRUPTED
            if len(draws) == n_draws:
                stopped = None
            if monitor.tasks is not None:
                monitor.tasks.end_chain(index)
        except KeyboardInterrupt:
            # The chain may be broken in the middle of something; its history is not.
            stop.raise_()
            stopped = INTERRUPTED
        finally:
            history = closed()
            if file is not None:
                file.save(history)
        if stopped in (MAX_TIME, CALLBACK) and not draws:
            # Something to predict with.  It is not part of the chain's schedule, and a
            # file that the chain goes on from does not have it.
            history, stopped = with_last_state(history, chain, now.tally), NO_DRAW
    return ChainResult(history, stopped, None if file is None else file.failure)


def with_last_state(history: History, chain: Chain, tally: SweepInfo) -> History:
    """A history whose only draw is the chain's state.

    Parameters
    ----------
    history : History
    chain : Chain
        Is not touched.
    tally : SweepInfo
        Sum over its last sweeps.

    Returns
    -------
    history : History
    """
    draw = chain.peek(tally)
    return replace(
        history,
        draws=[draw.compact(store_states=True)],
        best_lp=draw.summed_lp,
        best_states=draw.states,
    )
