# The sufficient statistics of all states' emissions, for one chain.  The arithmetic is a
# C++ Emission (_emission.hpp, with every function's contract); the class here does the work that
# needs Python.
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._family cimport Family
from skihmm.core._product cimport Product
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport Archive
from skihmm.core._types cimport float64_t, int32_t, int64_t


cdef extern from "_workers.hpp" namespace "skihmm" nogil:
    cdef cppclass Workers:
        Workers(int32_t n)

cdef extern from "_hidden.hpp" namespace "skihmm" nogil:
    cdef cppclass Hidden:
        const char *name()
        cbool is_of_draws()
        int64_t size()
        vector[float64_t] numbers()

    cdef cppclass Gap:
        int64_t t
        int32_t column
        int64_t end

cdef extern from "_family_part.hpp" namespace "skihmm" nogil:
    cdef cppclass FamilyPart:
        const Family *family
        void watch(int (*poll)(void *) except -1 with gil, void *watcher)
        size_t n_hidden()
        const Hidden *hidden(size_t i)
        void set_hidden(size_t i, const float64_t *numbers) except +
        const Hidden *of_draws()
        void set_of_draws(const vector[float64_t] &numbers) except +
        void fill_entries(const vector[Gap] &gaps) except +
        void open_weights() except +
        cbool draws_hidden(cbool is_chain)
        vector[float64_t] draw_hidden(const int32_t *slots, bitgen_t *g, cbool is_chain) except +
        void restore(vector[float64_t] *filled)

cdef extern from "_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass ParticleCounts:
        pass

    cdef cppclass EmissionParameters:
        void draw_parameters(const vector[int32_t] &slots, const Workers &workers,
                             bitgen_t *g) except +
        void fill_log_likelihoods(int64_t t, const int32_t *slots, int32_t n,
                                  float64_t *out) except +

    cdef cppclass PredictedColumn:
        int32_t n_symbols
        cbool is_angle
        int32_t n_numbers()

    cdef cppclass Emission:
        int64_t n_steps
        int32_t n_slots
        FamilyPart *family_part
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
        void draw_hyperparameters(bitgen_t *g) except +
        void recount(const int32_t *states) except +
        void write(const Archive &archive, const vector[int32_t] &labels) except +
        void check_record(const Archive &archive, const vector[int32_t] &labels) except +
        void load(const Archive &archive, int32_t n_states) except +
        void load_shared(const Archive &archive) except +
        string check(const vector[int32_t] &slots) except +
        int32_t n_inputs()
        cbool reread() except +
        vector[int64_t] table_counts()
        void add_to(ParticleCounts *counts, int32_t n_states) except +
        vector[PredictedColumn] columns()
        void fill_predictives(const int32_t *slots, int64_t n, const float64_t *inputs,
                              float64_t *out) except +
        void draw_values(const int32_t *slots, int64_t n, const float64_t *inputs,
                         const int32_t *n_known, float64_t *out, bitgen_t *g) except +
        EmissionParameters *parameters()


cdef class EmissionStats:
    cdef shared_ptr[Emission] shared
    cdef readonly tuple parts       # type: tuple[EmissionStats, ...]; of a product, or empty
    cdef readonly object data       # type: Array; rows that `shared` points to
    cdef readonly object places     # type: tuple[Integers, Integers] | None; of filled entries
    cdef readonly object is_stopped  # type: Callable[[], bool] | None
    cdef public object effects      # what the numbers of draws do to rows; None without
    cdef object kept                # what else `shared` points to
    cdef list predictives_of_part(self, const int32_t[::1] slot, object inputs)
    cdef list values_of_part(self, const int32_t[::1] slot, list n_known, RandomStream stream,
                             object inputs)


# Statistics of an emission, whose ownership they take, over rows in an array.
cdef EmissionStats stats_of(Emission *emission, object data)
