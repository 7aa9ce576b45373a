"""Steps of one chain in the processes of a backend of joblib, such as a cluster."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from skihmm._typing import Array, Integers, Labels, NamedValues
from skihmm.core._emission import EmissionStats
from skihmm.core._state import ChainState
from skihmm.samplers._stick_breaking_kernel import StickBreakingShard

# Chains whose shards a process keeps; those of others are sent once more.
MOST_CHAINS = 4
# Fewer steps are drawn by threads: a call of the backend takes hundredths of a second.
LEAST_STEPS = 20_000
_shards: OrderedDict[str, dict[int, StickBreakingShard]] = OrderedDict()
_lock = threading.Lock()


class MakesStats(Protocol):
    """The part of an emission that is used here."""

    def make_stats(self, codes: Array) -> EmissionStats:
        """Build the empty statistics of encoded rows."""


class Shards:
    """The steps of a chain, divided among the processes of a backend.

    A process keeps the observations of the shards that it has drawn.  Every sweep sends
    the transition probabilities, the statistics of the emission and a shard's labels, and
    gets back the new labels.  As it need not be the same process every time, one that
    does not have the observations asks for them.

    Parameters
    ----------
    emission : BaseEmission
        Fitted.
    codes : ndarray of shape (n_samples, n_features + n_inputs)
    starts : ndarray of shape (n_sequences,)
        First steps of the sequences.
    block_size : int
        Most free steps of a piece; 0: pieces are sequences.
    n_jobs : int
        Number of shards, as for joblib.
    """

    def __init__(
        self,
        emission: MakesStats,
        codes: Array,
        starts: Integers,
        block_size: int,
        n_jobs: int,
    ) -> None:
        n_steps = len(codes)
        self._n_jobs = n_jobs
        self._name = uuid.uuid4().hex
        self._emission = emission
        self._codes = codes
        self._first = np.zeros(n_steps + 1, dtype=np.uint8)
        self._first[[*starts, n_steps]] = 1
        n_shards = effective_n_jobs(n_jobs)
        self._edges = np.arange(n_shards + 1) * n_steps // n_shards
        if block_size == 0:
            ends = [*starts, n_steps]
            self._edges = np.asarray(ends)[np.searchsorted(ends, self._edges)]
        # A piece that begins in a shard ends here at the latest.
        self._stops = np.minimum(self._edges[1:] + block_size, n_steps)
        self._is_sent = False

    def draw(self, sweep: NamedValues, pieces: NDArray[np.int64], labels: Labels) -> None:
        """Draw the labels of pieces.

        Parameters
        ----------
        sweep : dict
            What all pieces need; see :meth:`StickBreakingShard.draw`.
        pieces : ndarray of shape (n_pieces, 3)
            First step, first held step and end of every piece, in the order of time.
        labels : ndarray of shape (n_samples,)
            Of all steps; changed in place.
        """
        bounds = np.searchsorted(pieces[:, 0], self._edges)
        narrow = labels.astype(np.min_scalar_type(sweep["n_slots"] - 1))
        jobs = {}
        for s, (i, j) in enumerate(pairwise(bounds)):
            if i == j:
                continue
            start, stop = pieces[i, 0], pieces[j - 1, 2]
            before = int(labels[start - 1]) if start > 0 else -1
            jobs[s] = (sweep, int(i), pieces[i:j], narrow[start:stop], before)
        found = self._run(jobs, with_data=not self._is_sent)
        self._is_sent = True
        missing = {s: job for s, job in jobs.items() if found[s] is None}
        if missing:
            found |= self._run(missing, with_data=True)
        for s, (_, _, own, _, _) in jobs.items():
            labels[own[0, 0] : own[-1, 2]] = found[s]

    def _run(self, jobs: dict[int, Any], with_data: bool) -> dict[int, Any]:
        """Draw the pieces of some shards; None where the process lacks the data."""
        results = Parallel(n_jobs=self._n_jobs)(
            delayed(_draw_pieces)(
                self._name, s, job, *(self._data(s) if with_data else ())
            )
            for s, job in jobs.items()
        )
        return dict(zip(jobs, results, strict=True))

    def _data(self, s: int) -> tuple[MakesStats, Array, NDArray[np.uint8], int]:
        start, stop = self._edges[s], self._stops[s]
        return (
            self._emission,
            self._codes[start:stop],
            self._first[start : stop + 1],
            int(start),
        )


def shards_of(state: ChainState, block_size: int, n_jobs: int | None) -> Shards | None:
    """Divide the steps of a chain, if the user has chosen a backend with processes.

    Parameters
    ----------
    state : ChainState
    block_size : int
        As for :class:`Shards`.
    n_jobs : int or None

    Returns
    -------
    shards : Shards or None
        None: threads draw the steps.
    """
    if n_jobs is None or n_jobs == 1:
        return None
    if state.source is None or state.n_steps < LEAST_STEPS:
        return None
    backend = get_active_backend(prefer="threads")[0]
    if getattr(backend, "supports_sharedmem", False):
        return None
    emission, sequences = state.source
    return Shards(emission, sequences.codes, sequences.starts, block_size, n_jobs)


def _draw_pieces(
    name: str,
    s: int,
    job: tuple[NamedValues, int, NDArray[np.int64], Labels, int],
    *data: Any,
) -> Labels | None:
    """Draw the pieces of shard s of a chain, in the process that runs this."""
    with _lock:
        kept = _shards.setdefault(name, {})
        _shards.move_to_end(name)
        while len(_shards) > MOST_CHAINS:
            _shards.popitem(last=False)
        shard = kept.get(s)
    if shard is None:
        if not data:
            return None
        emission, codes, first, start = data
        shard = StickBreakingShard(emission.make_stats(codes), first, start)
        kept[s] = shard
    return shard.draw(*job)
