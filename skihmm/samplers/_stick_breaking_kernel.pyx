"""Stick-breaking sweeps; arithmetic: _stick_breaking_steps.hpp, _stick_breaking_paths.hpp."""

import numpy as np

from cython.operator cimport dereference as deref
from libc.string cimport memcpy
from libcpp.vector cimport vector

from skihmm.core._emission cimport EmissionParameters, EmissionStats
from skihmm.core._franchise cimport FIRST, START
from skihmm.core._rcd cimport CompiledKernel, Kernel
from skihmm.core._record cimport array_of
from skihmm.core._state cimport Chain
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_pieces.hpp" namespace "skihmm" nogil:
    cdef cppclass TaskStreams:
        unsigned long long a, b

    cdef cppclass Piece:
        int64_t start, held, stop

    cdef cppclass PieceDraw:
        vector[int32_t] states
        vector[float64_t] pi
        vector[Piece] pieces
        TaskStreams parameters, cuts, streams
        float64_t low
        vector[int32_t] staying

    cdef cppclass PieceCalls:
        void *self
        int (*draw)(void *self, const PieceDraw *draw, int32_t n_slots,
                    int32_t *path) except -1

    cdef cppclass ShardSteps:
        vector[uint8_t] first
        vector[int32_t] states
        int32_t before

cdef extern from "_stick_breaking_steps.hpp" namespace "skihmm" nogil:
    cdef cppclass StickBreakingSteps "skihmm::StickBreakingSteps<skihmm::Chain>"(Kernel):
        StickBreakingSteps(int64_t block_size, int32_t n_workers,
                           const PieceCalls &elsewhere) except +

cdef extern from "_stick_breaking_paths.hpp" namespace "skihmm" nogil:
    cdef cppclass StickBreakingPaths "skihmm::StickBreakingPaths<skihmm::Chain>"(Kernel):
        StickBreakingPaths(int64_t block_size, int32_t n_workers,
                           const PieceCalls &elsewhere) except +

cdef extern from "_stick_breaking_shard.hpp" namespace "skihmm" nogil:
    cdef cppclass NativeShard "skihmm::StickBreakingShard":
        ShardSteps steps
        void draw(const PieceDraw &what, int32_t n_slots, int64_t first,
                  EmissionParameters &emission) except +


cdef class StickBreakingKernel(CompiledKernel):
    """Sweeps that draw all parameters first, without rejections.

    The parameters of the emission are part of its statistics.

    Parameters
    ----------
    beam : bool, default=False
        Whether to draw paths with slices instead of single steps.
    block_size : int, default=0
        Steps per block that threads draw; 0: whole sequences of the beam, no blocks of
        single steps.
    n_threads : int, default=1
    stats : EmissionStats, optional
        Those of the chain, with `shards`.
    shards : object, optional
        What draws pieces in other processes: its method ``draw(sweep, pieces, labels)``
        changes the labels of all steps in place; see :class:`StickBreakingShard`.
    """

    cdef readonly bint beam
    cdef readonly int64_t block_size
    cdef readonly int32_t n_threads
    cdef EmissionStats stats
    cdef readonly object shards

    def __init__(self, bint beam=False, int64_t block_size=0, int32_t n_threads=1,
                 EmissionStats stats=None, shards=None):
        self.beam = beam
        self.block_size = block_size
        self.n_threads = n_threads
        self.stats = stats
        self.shards = shards

    cdef Kernel *build(self, Chain &chain) except NULL:
        cdef PieceCalls elsewhere
        if chain.emission.get().parameters() is NULL:
            raise TypeError("the emission does not draw parameters")
        cdef int64_t size = min(self.block_size, chain.n_steps)
        if self.shards is not None:
            elsewhere.self = <void *> self
            elsewhere.draw = _draw_elsewhere
        if self.beam:
            return new StickBreakingPaths(size, self.n_threads, elsewhere)
        return new StickBreakingSteps(size, self.n_threads, elsewhere)


cdef int _draw_elsewhere(void *self, const PieceDraw *what, int32_t n_slots,
                         int32_t *path) except -1 with gil:
    cdef StickBreakingKernel kernel = <StickBreakingKernel> self
    cdef intp_t i, n = <intp_t> what.pieces.size(), n_states = <intp_t> what.states.size()
    pieces = np.empty((n, 3), dtype=np.int64)
    cdef int64_t[:, ::1] piece = pieces
    for i in range(n):
        piece[i, 0] = what.pieces[i].start
        piece[i, 1] = what.pieces[i].held
        piece[i, 2] = what.pieces[i].stop
    pi = np.asarray(<float64_t[:n_states, :n_states]> <float64_t *> what.pi.data()).copy()
    # Every slot is a state of the record, whether it has steps or not.
    labels = np.arange(-FIRST, n_slots - FIRST, dtype=np.int32)
    labels[:FIRST] = -1
    labels[START] = n_slots - FIRST
    sweep = {
        "n_slots": n_slots,
        "states": array_of(what.states),
        "pi": pi,
        "low": what.low,
        "staying": array_of(what.staying),
        "parameters": (what.parameters.a, what.parameters.b),
        "cuts": (what.cuts.a, what.cuts.b),
        "streams": (what.streams.a, what.streams.b),
        "emission": kernel.stats.to_arrays(labels),
    }
    n = kernel.stats.n_steps
    kernel.shards.draw(sweep, pieces, np.asarray(<int32_t[:n]> path))
    return 0


cdef TaskStreams _streams_of(numbers):
    cdef TaskStreams streams
    streams.a, streams.b = numbers
    return streams


cdef class StickBreakingShard:
    """Consecutive steps of a chain in another process, which draws pieces of them.

    Parameters
    ----------
    stats : EmissionStats
        Empty statistics of their observations.
    first : ndarray of shape (n_steps + 1,), uint8
        Whether a step, or the one after them, begins a sequence.
    start : int
        Number of their first step.
    """

    cdef EmissionStats stats
    cdef NativeShard native
    cdef readonly int64_t start

    def __init__(self, EmissionStats stats, const uint8_t[::1] first, int64_t start):
        cdef intp_t i
        self.stats = stats
        self.start = start
        for i in range(first.shape[0]):
            self.native.steps.first.push_back(first[i])
        self.native.steps.states.resize(first.shape[0] - 1)

    def draw(self, dict sweep, int64_t first, const int64_t[:, ::1] pieces, labels,
             int32_t before):
        """Draw pieces; the same labels as in the process of the chain.

        Parameters
        ----------
        sweep : dict
            ``n_slots``; ``states``, the start and the slots with parameters; ``pi``, the
            transition probabilities among them; ``emission``, the record of the statistics
            with every slot as a state; ``parameters``, ``cuts`` and ``streams``, the seeds
            of streams of random numbers; ``low`` of the beam; ``staying`` of single steps,
            which is empty for the beam.
        first : int
            Number of the first piece among all.
        pieces : ndarray of shape (n_pieces, 3), int64
            First step, first held step and end.
        labels : ndarray of shape (n,)
            Slots of the steps from the first piece to the last one.
        before : int
            Slot of the step before them.

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        cdef PieceDraw what
        cdef Piece piece
        cdef intp_t i
        cdef int32_t n_slots = sweep["n_slots"]
        cdef const int32_t[::1] old = np.ascontiguousarray(labels, dtype=np.int32)
        cdef intp_t offset = pieces[0, 0] - self.start, n = old.shape[0]
        cdef const float64_t[:, ::1] probs = sweep["pi"]
        what.states = sweep["states"]
        what.staying = sweep["staying"]
        what.low = sweep["low"]
        what.parameters = _streams_of(sweep["parameters"])
        what.cuts = _streams_of(sweep["cuts"])
        what.streams = _streams_of(sweep["streams"])
        what.pi.assign(&probs[0, 0], &probs[0, 0] + probs.shape[0] * probs.shape[1])
        for i in range(pieces.shape[0]):
            piece.start = pieces[i, 0] - self.start
            piece.held = pieces[i, 1] - self.start
            piece.stop = pieces[i, 2] - self.start
            what.pieces.push_back(piece)
        memcpy(&self.native.steps.states[offset], &old[0], n * sizeof(int32_t))
        if offset > 0:
            self.native.steps.states[offset - 1] = before
        self.native.steps.before = before
        self.stats.shared.get().resize(n_slots)
        self.stats.load(sweep["emission"], n_slots - FIRST)
        with nogil:
            self.native.draw(what, n_slots, first, deref(self.stats.shared.get().parameters()))
        drawn = np.asarray(<int32_t[:n]> &self.native.steps.states[offset])
        return drawn.astype(labels.dtype)
