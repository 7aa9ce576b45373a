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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skihmm._callbacks import FitTasks
from skihmm._chain import Chain, ModelSettings, SweepInfo
from skihmm._chain_file import ChainFile
from skihmm._draws import compact
from skihmm._log_joint import summed_lp
from skihmm._progress import Progress, SweepReport
from skihmm._sequences import Sequences

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

    def on_interrupt(number: int, frame: Any) -> None:
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

    def new_history(self) -> dict[str, Any]:
        """History of a chain that has not begun.

        Returns
        -------
        history : dict
            ``draws``: list of dict; ``record``: of the chain, to go on from, or None;
            ``last``: number of the sweep that made the last draw, or ended the burn-in;
            ``tally``: counts since then; ``seconds``: CPU seconds in all;
            ``origin_sweeps`` and ``origin_seconds``: sweeps and seconds of earlier fits;
            ``best_lp``, ``best_states``: of the draw with the highest log joint
            probability, summed over seatings.
        """
        return {
            "draws": [],
            "record": None,
            "last": self.n_burnin,
            "tally": [0, 0, 0, 0, 0.0],
            "seconds": 0.0,
            "origin_sweeps": 0,
            "origin_seconds": 0.0,
            "best_lp": -np.inf,
            "best_states": None,
        }

    def continue_history(self, history: dict[str, Any]) -> dict[str, Any]:
        """History of an earlier fit, as a further one (``warm_start``) begins with it.

        Parameters
        ----------
        history : dict

        Returns
        -------
        history : dict
        """
        record = history["record"]
        if record is None:
            return self.new_history()
        return {
            **history,
            # (If thin has become shorter, a draw may be due already.)
            "last": max(history["last"], record["n_sweeps"] + 1 - self.thin),
            "origin_sweeps": record["n_sweeps"],
            "origin_seconds": history["seconds"],
        }

    def n_sweeps(self, history: dict[str, Any], n_draws: int) -> int:
        """Sweeps of this fit that a chain will have made when it has all draws.

        Parameters
        ----------
        history : dict
        n_draws : int
            Draws wanted, those of the history included.

        Returns
        -------
        n_sweeps : int
        """
        n_missing = n_draws - len(history["draws"])
        return history["last"] + n_missing * self.thin - history["origin_sweeps"]


def sweeps_made(history: dict[str, Any]) -> int:
    """Sweeps of this fit that a history holds."""
    record = history["record"]
    return 0 if record is None else record["n_sweeps"] - history["origin_sweeps"]


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
        callback: Callable[[SweepReport], Any] | None,
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
        history: dict[str, Any],
        n_draws: int,
        n_sweeps: int,
        seconds: float,
    ) -> bool:
        """Tell whoever wants to know; the answer ends the chain if it is true."""
        sweep = chain.n_sweeps - history["origin_sweeps"]
        seconds -= history["origin_seconds"]
        due = self.progress is not None and self.progress.is_due(index, sweep, seconds)
        end = False
        if due or self.callback is not None:
            seating = chain.state.transitions
            report = SweepReport(
                chain=index,
                sweep=sweep,
                n_sweeps=n_sweeps,
                n_draws=n_draws,
                n_states=chain.state.n_states,
                lp=chain.state.log_joint(),
                alpha=seating.alpha,
                gamma=seating.gamma,
                acceptance_rate=info.n_accepted / info.n_proposed,
                split_merge_acceptance_rate=(
                    info.n_trials_accepted / info.n_trials if info.n_trials else np.nan
                ),
                seconds=seconds,
            )
            if self.callback is not None:
                end = bool(self.callback(report))
            if due and self.progress is not None:
                self.progress.show(report)
        if self.tasks is not None:
            end |= self.tasks.after_sweep(
                index, lambda: with_last_state(history, chain, history["tally"])
            )
        return end


def run_chain(
    index: int,
    sequences: Sequences,
    settings: ModelSettings,
    seed: np.random.SeedSequence | None,
    history: dict[str, Any],
    n_draws: int,
    plan: Plan,
    monitor: Monitor,
    file: ChainFile | None = None,
) -> tuple[dict[str, Any], str | None, str | None]:
    """Run one chain until it has its draws: the unit of work that joblib distributes.

    Parameters
    ----------
    index : int
        Number of the chain.
    sequences : Sequences
    settings : ModelSettings
    seed : numpy.random.SeedSequence or None
        Where the chain's random stream starts; not used if the history has a record.
    history : dict
        What was done already: see :meth:`Plan.new_history`.
    n_draws : int
        Draws wanted, those of the history included.
    plan : Plan
    monitor : Monitor
    file : ChainFile, optional
        Where the history is written to, now and then and in the end.

    Returns
    -------
    history : dict
        Ends at the last record of the chain's own schedule, which is at most a few sweeps
        back, so that to go on from it is to go on as if nothing had happened.
    stopped : {INTERRUPTED, MAX_TIME, CALLBACK, NO_DRAW} or None
        What ended the chain early.
    failure : str or None
        The warning, if the file could not be written.
    """
    if len(history["draws"]) >= n_draws:
        return history, None, None
    stop = monitor.stop
    n_sweeps = plan.n_sweeps(history, n_draws)
    limit = history["origin_seconds"] + plan.max_time
    stopped = None
    with _watched(stop):
        try:
            if stop.is_raised():
                return history, INTERRUPTED, None
            chain = Chain(
                sequences, settings, seed, history["record"], is_stopped=stop.is_raised
            )
            if stop.is_raised():
                return history, INTERRUPTED, None
            if monitor.tasks is not None:
                monitor.tasks.begin_chain(index)
            draws, tally = list(history["draws"]), list(history["tally"])
            last, seconds = history["last"], history["seconds"]
            best = {key: history[key] for key in ("best_lp", "best_states")}
            started = time.thread_time() - seconds

            def snapshot() -> dict[str, Any]:
                return {
                    **history,
                    **best,
                    # Not a copy of the list, which may be long.
                    "draws": draws,
                    "n_draws": len(draws),
                    "record": chain.saved,
                    "last": last,
                    "tally": tally,
                    "seconds": seconds,
                }

            while stopped is None and len(draws) < n_draws:
                if chain.n_sweeps == last:
                    tally = [0, 0, 0, 0, 0.0]
                saved = chain.saved
                info = next(chain)
                if chain.saved is not saved:
                    # (Of the moment before the sweep.)
                    history = snapshot()
                    if file is not None and file.is_due():
                        file.save(_closed(history))
                tally = [
                    tally[0] + info.n_proposed,
                    tally[1] + info.n_accepted,
                    tally[2] + info.n_trials,
                    tally[3] + info.n_trials_accepted,
                    tally[4] + info.seconds,
                ]
                is_draw = chain.n_sweeps == last + plan.thin
                if is_draw:
                    draw = _finished(chain.draw(), chain, tally)
                    best = _better(best, draw)
                    draws.append(compact(draw, plan.store_states))
                    last = chain.n_sweeps
                seconds = time.thread_time() - started
                if is_draw:
                    history = snapshot()
                if monitor.after_sweep(
                    index, chain, info, history, len(draws), n_sweeps, seconds
                ):
                    stopped = CALLBACK
                if seconds >= limit:
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
            history = _closed(history)
            if file is not None:
                file.save(history)
        if stopped in (MAX_TIME, CALLBACK) and not draws:
            # Something to predict with.  It is not part of the chain's schedule, and a
            # file that the chain goes on from does not have it.
            history, stopped = with_last_state(history, chain, tally), NO_DRAW
    return history, stopped, None if file is None else file.failure


def with_last_state(
    history: dict[str, Any], chain: Chain, tally: list[Any]
) -> dict[str, Any]:
    """A history whose only draw is the chain's state.

    Parameters
    ----------
    history : dict
    chain : Chain
        Is not touched.
    tally : list
        Counts of its last sweeps.

    Returns
    -------
    history : dict
    """
    draw = _finished(chain.peek(), chain, tally)
    return {
        **history,
        "draws": [compact(draw, store_states=True)],
        "best_lp": summed_lp(draw),
        "best_states": draw["states"],
    }


def _closed(history: dict[str, Any]) -> dict[str, Any]:
    """The history with a list of draws of its own, which does not grow any more."""
    if "n_draws" not in history:
        return history
    closed = {**history, "draws": history["draws"][: history["n_draws"]]}
    del closed["n_draws"]
    return closed


def _finished(draw: dict[str, Any], chain: Chain, tally: list[Any]) -> dict[str, Any]:
    n_proposed, n_accepted, n_trials, n_trials_accepted, seconds = tally
    draw["acceptance_rate"] = n_accepted / n_proposed if n_proposed else np.nan
    draw["split_merge_acceptance_rate"] = (
        n_trials_accepted / n_trials if n_trials else np.nan
    )
    draw["seconds"] = seconds
    draw["sweep"] = chain.n_sweeps
    return draw


def _better(best: dict[str, Any], draw: dict[str, Any]) -> dict[str, Any]:
    lp = summed_lp(draw)
    if best["best_states"] is not None and lp <= best["best_lp"]:
        return best
    return {"best_lp": lp, "best_states": draw["states"]}
