# The state of one chain.  Sweeps change a C++ Chain (_chain_state.hpp); the class here owns it and
# has the functions that need Python.
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._franchise cimport Franchise, Stack, Transitions, TransitionsRecord
from skihmm.core._random cimport RandomStream
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_chain_state.hpp" namespace "skihmm" nogil:
    cdef cppclass Chain:
        int64_t n_steps
        int32_t n_slots
        vector[int32_t] states          # states[t]: slot of step t
        vector[uint8_t] first           # first[t]: t, or n_steps, begins a sequence
        vector[int32_t] hints
        vector[int32_t] occupancy       # steps per slot
        vector[int32_t] free_slots
        vector[int32_t] free_place
        Stack[int32_t] touched
        shared_ptr[Transitions] transitions
        shared_ptr[Emission] emission
        bitgen_t *bits
        Chain(const vector[int32_t] &starts, shared_ptr[Transitions] transitions,
              shared_ptr[Emission] emission, bitgen_t *bits) except +
        bint is_last(int64_t t)         # t ends a sequence
        int32_t previous(int64_t t)     # START at the start of a sequence
        int32_t successor(int64_t t)    # -1 at its end
        int32_t free_slot(size_t i)
        bint reserve(int64_t n_free) except +
        void start_from(const int32_t *labels) except +
        vector[int32_t] record_labels() except +
        void load[Label](const TransitionsRecord &record, const Label *labels) except +
        void check_path(const TransitionsRecord &record,
                        const vector[int32_t] &labels) except +
        void draw_hyperparameters() except +
        float64_t log_joint() except +
        size_t n_bytes()


cdef class ChainState:
    cdef unique_ptr[Chain] chain
    cdef readonly Franchise transitions
    cdef readonly EmissionStats emission
    cdef readonly RandomStream stream
    # A move of Python code is open: customers are removed, and no other move may start.
    cdef bint is_moving

    # Raise RuntimeError if a move is open.
    cdef int require_no_move(self) except -1
    cdef int _read(self, arrays, TransitionsRecord *record, vector[int32_t] *path) except -1
    cdef int _take(self, arrays) except -1
