# The sufficient statistics of all states' emissions, for one chain.  The arithmetic is a
# C++ Emission (_emission.hpp, with every function's contract); the class here does the work that
# needs Python.
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._family cimport Family
from skihmm.core._franchise cimport Product
from skihmm.core._record cimport Archive
from skihmm.core._types cimport float64_t, int32_t, int64_t


cdef extern from "_workers.hpp" namespace "skihmm" nogil:
    cdef cppclass Workers:
        Workers(int32_t n)

cdef extern from "_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass EmissionParameters:
        void draw_parameters(const vector[int32_t] &slots, const Workers &workers,
                             bitgen_t *g) except +
        void fill_log_likelihoods(int64_t t, const int32_t *slots, int32_t n,
                                  float64_t *out) except +

    cdef cppclass Emission:
        int64_t n_steps
        int32_t n_slots
        void add(int64_t t, int32_t k, bitgen_t *g, Product *r) except +
        void remove(int64_t t, int32_t k, bitgen_t *g, Product *r) except +
        void remove_block(int64_t start, int64_t stop, const int32_t *labels,
                          Product *r) except +
        float64_t fill_probs(int64_t t, float64_t *out) except +
        void fill_logs(int64_t t, float64_t *out) except +
        void only_evaluate()
        void look_ahead(int64_t start, int64_t stop) except +
        void fill_pair(int64_t t, const int32_t *states, float64_t *out) except +
        void fill_log_pair(int64_t t, const int32_t *states, float64_t *out) except +
        void fill_prefixes(int64_t start, int64_t stop, int32_t k, cbool backwards,
                           float64_t *out) except +
        void commit() except +
        void rollback() except +
        void resize(int32_t n) except +
        float64_t log_joint() except +
        void draw_hidden(bitgen_t *g) except +
        void recount(const int32_t *states) except +
        void write(const Archive &archive, const vector[int32_t] &labels) except +
        void check_record(const Archive &archive, const vector[int32_t] &labels) except +
        void load(const Archive &archive, int32_t n_states) except +
        void load_shared(const Archive &archive) except +
        string check(const vector[int32_t] &slots) except +
        int32_t n_inputs()
        cbool reread() except +
        void add_to(ParticleCounts *counts, int32_t n_states) except +
        EmissionParameters *parameters()
        const Family *family()

cdef extern from "_particle_counts.hpp" namespace "skihmm" nogil:
    cdef cppclass ParticleCounts:
        pass


cdef class EmissionStats:
    cdef shared_ptr[Emission] shared
