# ChainState: everything that one chain's sweeps change.
from libcpp.vector cimport vector

from skihmm.core._emission cimport EmissionStats
from skihmm.core._franchise cimport START, Franchise, Product, Stack
from skihmm.core._random cimport RandomStream
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef class ChainState:
    cdef readonly intp_t n_steps
    cdef readonly Franchise transitions
    cdef readonly EmissionStats emission
    cdef readonly RandomStream stream
    cdef vector[int32_t] states         # states[t]: slot of step t; FIRST <= slot < n_slots
    cdef vector[uint8_t] first          # first[t]: t begins a sequence (predecessor START)
    cdef vector[uint8_t] last           # last[t]: t ends a sequence (no successor)
    cdef vector[int32_t] hints          # cell of the draw into step t (Seating.add)
    cdef vector[int32_t] occupancy      # steps per slot
    cdef vector[int32_t] free_slots     # slots that no step carries, used from the back
    cdef vector[int32_t] free_place     # place of a free slot in free_slots, else -1
    # Within a run of block moves, the slots whose statistics changed since `prepare` last
    # looked: proposals that cache per-state weights refresh exactly these.  Between runs
    # it says nothing: what has changed then is for `attach` to find.
    cdef Stack[int32_t] touched
    cdef int32_t n_slots
    # A move of Python code is open: customers are missing, and nothing else may start.
    cdef bint is_moving
    # Counted over a sweep: proposals made and accepted.
    cdef int64_t n_proposed
    cdef int64_t n_accepted
    # The same of split-merge trials.
    cdef int64_t n_trials
    cdef int64_t n_trials_accepted

    cdef inline int32_t previous(self, intp_t t) noexcept nogil:
        # The restaurant that x[t] is drawn in.
        return START if self.first[t] else self.states[t - 1]

    cdef inline int32_t successor(self, intp_t t) noexcept nogil:
        # The label drawn in x[t]'s restaurant, or -1 at the end of a sequence.
        return -1 if self.last[t] else self.states[t + 1]

    # The i-th slot (i = 0, 1, ...) that no step carries.  Valid for i < the number given
    # to reserve() at the start of the move; stays free until the move is committed.
    cdef inline int32_t free_slot(self, intp_t i) noexcept nogil:
        return self.free_slots[self.free_slots.size() - 1 - i]

    # Raise RuntimeError if a move is open.
    cdef int require_settled(self) except -1
    cdef int _set_slots(self, int32_t n_slots) except -1 nogil
    cdef int reserve(self, intp_t n_free) except -1 nogil
    cdef int _rebuild_free(self) except -1 nogil
    cdef int _take(self, arrays) except -1
