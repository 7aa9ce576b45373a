"""Checkpoint of one chain, and its checks against the run and the data."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain as chained
from pathlib import Path
from typing import Any, TypeGuard

from skihmm._data.validation import warn_caller
from skihmm._draws import Draw, check_number
from skihmm._fitting.chain import History
from skihmm._fitting.checkpoint import load, prepare, save
from skihmm._typing import NamedValues
from skihmm._version import __version__
from skihmm.core._sweep_info import SweepInfo

KIND = "chain"

# A file is not written again before so many times the time that it took have passed, so
# that writing costs at most five percent, however large the draws are.
PAUSE = 20

# Meaning of a header's entries, in terms of the estimator's parameters.
MEANING = {
    "data": "X (or its division into sequences)",
    "model": "emission or transitions",
    "sampler": "sampler",
    "start": "init or n_particles",
    "schedule": "n_burnin, thin or store_states",
    "seed": "random_state",
    "chain": "the number of the chain",
}


@dataclass(frozen=True)
class Header:
    """Identity of a run: an entry for each of MEANING; a seed is None if any seed will do."""

    data: str
    model: str
    sampler: str
    start: str
    schedule: list[int | None]
    seed: list[int] | None
    chain: int


class ChainFile:
    """File from which a chain can continue, written every `interval` seconds.

    `failure` is a warning, if a write has failed.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header, interval: float) -> None:
        # The target of a symbolic link is replaced; workers may be in other folders.
        self.path = Path(os.path.realpath(path))
        self.header = header
        self._interval = interval
        self._due = time.monotonic() + interval
        self._saved: History | None = None
        self._identity: tuple[int, ...] | None = None
        self.failure: str | None = None

    def load(self, check: Callable[[History], None]) -> History | None:
        """Read the history; None if there is no file or it has no sweep yet.

        A file that is torn, foreign, of another run, or not of a chain on this data, for
        which `check` raises an error, raises ValueError, and is kept.
        """
        try:
            content = load(self.path, KIND)
        except FileNotFoundError:
            return None
        self._check_header(content.get("header"))
        self._identity = self._identify()
        if "history" in content and content["history"] is None:
            return None
        try:
            history = _history(content["history"])
            check(history)
        except Exception as error:
            raise ValueError(
                f"{self.path} does not hold a chain on this data: {error}.  Delete or "
                "move it to start afresh."
            ) from error
        if content.get("version") != __version__:
            warn_caller(
                f"{self.path} was written by skihmm {content.get('version')}; with "
                f"{__version__} the run goes on, but other draws may follow."
            )
        self._saved = history
        return history

    def _check_header(self, header: object) -> None:
        if not isinstance(header, dict):
            header = {}
        seed = header.get("seed")
        if self.header.seed is None and _is_seed(seed):
            self.header = replace(self.header, seed=seed)
        expected = vars(self.header)
        other = [name for name in MEANING if header.get(name) != expected[name]]
        if other:
            raise ValueError(
                f"{self.path} is the checkpoint of another run: it differs in "
                f"{'; '.join(MEANING[name] for name in other)}.  Go on with what it was "
                "made with, or pass another checkpoint, or delete or move the file."
            )

    def _identify(self) -> tuple[int, ...] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def is_due(self) -> bool:
        """Whether the interval since the last write has passed."""
        return time.monotonic() >= self._due

    def begin(self) -> None:
        """Create the file if there is none, and check that it is writable."""
        try:
            prepare(self.path)
            if self._identity is None:
                self._write(None)
        except OSError as error:
            raise ValueError(
                f"{self._cannot_write(error)}.  Pass a path that can be written to, or "
                "checkpoint=None."
            ) from error

    def save(self, history: History) -> None:
        """Write the history, unless the file has it already.

        The first failure gives a warning.  The chain continues, because the next write
        may succeed.
        """
        if history.record is None or history is self._saved:
            return
        started = time.monotonic()
        try:
            self._write(history)
        except OSError as error:
            if self.failure is None:
                self.failure = (
                    f"{self._cannot_write(error)}.  The fit goes on and keeps its draws; "
                    "it tries again when the next write is due, and at the end."
                )
                warn_caller(self.failure)
        else:
            self._saved = history
        ended = time.monotonic()
        self._due = ended + max(self._interval, PAUSE * (ended - started))

    def _cannot_write(self, error: OSError) -> str:
        return f"The checkpoint {self.path} cannot be written: {error.strerror or error}"

    def _write(self, history: History | None) -> None:
        if self._identify() not in (None, self._identity):
            raise ValueError(
                f"{self.path} was changed by another process while this fit was running; "
                "it is left as it is.  Fits that run at the same time need different "
                "checkpoints."
            )
        save(
            self.path,
            KIND,
            {"version": __version__, "header": self.header, "history": history},
        )
        self._identity = self._identify()


def seed_of_run(path: Path) -> list[int] | None:
    """Seed in a file's header; None without a seed, which `ChainFile.load` judges."""
    try:
        header = load(path, KIND).get("header")
    except (OSError, ValueError):
        return None
    seed = header.get("seed") if isinstance(header, dict) else None
    return seed if _is_seed(seed) else None


def _is_seed(seed: object) -> TypeGuard[list[int]]:
    return isinstance(seed, list) and all(isinstance(word, int) and word >= 0 for word in seed)


def chain_paths(checkpoint: str | os.PathLike[str], n_chains: int) -> list[Path]:
    """List the paths of the files of all chains.

    `checkpoint` is a file that ends in ``.npz``, for one chain, or a folder, created if
    missing.
    """
    if isinstance(checkpoint, str) and not checkpoint:  # which is the current folder to pathlib
        raise ValueError(
            "checkpoint=''; expected the path of an .npz file or of a folder, or None. The "
            "current folder is '.'."
        )
    try:
        path = Path(checkpoint)
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
    except TypeError:
        raise TypeError(
            f"checkpoint={checkpoint!r}; expected the path of an .npz file or of a folder, or None."
        ) from None
    except (OSError, ValueError) as error:  # such as of a long name, and of a zero byte
        raise ValueError(
            f"checkpoint={str(checkpoint)!r}: {getattr(error, 'strerror', error)}.  Pass "
            "another path."
        ) from error
    if path.suffix != ".npz":
        if path.exists() and not path.is_dir():
            raise ValueError(
                f"checkpoint={str(checkpoint)!r} is a file whose name does not end in "
                ".npz; expected the path of an .npz file or of a folder."
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"checkpoint={str(checkpoint)!r}: this folder cannot be made: "
                f"{error.strerror or error}.  Pass a path that can be written to."
            ) from error
        return [path / f"chain-{c}.npz" for c in range(n_chains)]
    if n_chains > 1:
        raise ValueError(
            f"checkpoint={str(checkpoint)!r} is one file, but n_chains={n_chains}; pass "
            "a folder (a path that does not end in .npz)."
        )
    if path.is_dir():
        raise ValueError(
            f"checkpoint={str(checkpoint)!r} is a folder whose name ends in .npz; pass "
            "another path."
        )
    if not path.parent.is_dir():
        raise ValueError(
            f"checkpoint={str(checkpoint)!r}: there is no folder {str(path.parent)!r}."
        )
    return [path]


def _history(content: NamedValues) -> History:
    """Build the history from the content of a file."""
    draws = [Draw(**{**draw, "info": _info(draw["info"])}) for draw in content["draws"]]
    return History(**{**content, "draws": draws, "tally": _info(content["tally"])})


def _info(stored: Sequence[Any]) -> SweepInfo:
    # The sum has tuples where files have lists.
    info = SweepInfo().plus(SweepInfo(*stored))
    for value in (*info[:2], info.seconds, *chained(*info.trials.values())):
        check_number(value, 0)
    return info
