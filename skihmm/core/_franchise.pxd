# Franchise: the seating of a two-level Chinese restaurant process.
#
# Paper (arXiv 1106.0474)       here
#   restaurant j, dish k          row, dish
#   n_jk, m_jk                    restaurants.count(j, k), restaurants.table_count(j, k)
#   n_j., m_.k, m_..              restaurants.row_customers[j], .dish_tables[k], .n_tables
#   alpha_0, gamma                restaurants.alpha, restaurants.gamma
#   getProb(j, k)                 restaurants.prob(j, k)
#   addCustomer, removeCustomer   restaurants.add, restaurants.remove
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from numpy.random cimport bitgen_t

from skihmm.core._record cimport Archive, SeatingRecord
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_containers.hpp" namespace "skihmm" nogil:
    cdef cppclass Stack[T]:
        void push(T value) except +
        T operator[](size_t i)
        size_t size()
        void clear()

    cdef cppclass Line:
        int32_t *ids            # dish of a row's entry, row of a dish's entry
        int32_t *counts         # n_jk; 0 only inside a move
        int32_t size


cdef extern from "_law.hpp" namespace "skihmm" nogil:
    float64_t dish_weight "skihmm::dish_weight<double>"(float64_t n, float64_t new_table)


cdef extern from "_restaurants.hpp" namespace "skihmm" nogil:
    cdef cppclass Root:
        cbool has_tables()

    cdef cppclass InfiniteRoot(Root):
        pass

    cdef cppclass SymbolBase(Root):
        pass

    cdef cppclass Restaurants[Base]:
        Base base
        float64_t alpha
        float64_t gamma "base.gamma"
        vector[Line] rows                   # by restaurant
        vector[Line] columns                # by dish
        vector[int32_t] row_customers       # n_j.
        vector[int32_t] dish_tables "base.dish_tables"      # m_.k, of the root
        int64_t n_tables "base.n_tables"    # m_..
        void set_concentrations(float64_t alpha, float64_t gamma)
        void resize(int32_t n_rows, int32_t n_dishes) except +
        void set_dense_limit(int32_t limit) except +
        cbool has_dense "dense.are_complete"()
        void clear()
        float64_t total(int32_t row)        # n_j. + alpha
        float64_t scale()                   # alpha * beta_k = scale() * mass(k)
        float64_t mass(int32_t dish)
        float64_t new_table(int32_t dish)   # scale() * mass(dish)
        float64_t prob(int32_t row, int32_t dish)
        void fill_probs(int32_t row, float64_t *out)
        int32_t count(int32_t row, int32_t dish)
        int32_t count(int32_t row, int32_t dish, int32_t hint)
        int32_t table_count(int32_t row, int32_t dish)
        # `hint` remembers the cell between calls about the same pair; any value is safe.
        float64_t add(int32_t row, int32_t dish, bitgen_t *g) except +
        float64_t add(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) except +
        float64_t remove(int32_t row, int32_t dish, bitgen_t *g) except +
        float64_t remove(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) except +
        void prefetch_cell(int32_t hint)
        void prefetch_lists(int32_t hint)
        void commit() except +
        void commit_same() except +         # commit a move that changed no count
        void rollback() except +
        SeatingRecord record() except +
        # A record that check_record has passed: nothing is checked here.
        void load(const SeatingRecord &record) except +
        void load(const SeatingRecord &record, int32_t n_rows, int32_t n_dishes) except +
        float64_t log_joint()
        size_t n_bytes()
        const char *check() except +

        # Emissions only.
        int32_t n_symbols "base.n_symbols"
        cbool is_fixed "base.is_fixed"
        void set_symbols(int32_t n_symbols)


cdef extern from "_context_shape.hpp" namespace "skihmm" nogil:
    cdef struct ContextPlace:
        int32_t depth, prefix

    cdef cppclass ContextShape:
        cbool exists()
        int32_t n_columns()
        vector[ContextPlace] places(const vector[int32_t] &depths,
                                    const vector[int32_t] &prefixes) except +
        void visit(const Archive &archive) except +


cdef extern from "_coins.hpp" namespace "skihmm" nogil:
    cdef cppclass Coins:
        cbool exist()
        const vector[int32_t] &stays()


cdef extern from "_transitions.hpp" namespace "skihmm" nogil:
    cdef cppclass CoinsRecord:
        vector[float64_t] weights
        int32_t n_inputs()

    cdef cppclass TransitionsRecord:
        int32_t n_states
        ContextShape contexts
        CoinsRecord coins
        void visit(const Archive &archive) except +

    cdef cppclass Transitions "skihmm::HCRPTransitions"(Restaurants[InfiniteRoot]):
        int32_t n_slots()
        cbool has_contexts()
        const ContextShape &shape()
        int64_t count_deep_tables()
        void set_contexts(const ContextShape &shape) except +
        void set_places(vector[ContextPlace] places)
        void write_hyperparameters(const Archive &archive) except +
        void set_hyperparameters(const vector[float64_t] &values)
        void set_prior(float64_t shape, float64_t rate)
        void set_stays(const Archive &options) except +
        void set_switch_penalty(float64_t nats)
        cbool has_inputs()
        void set_inputs(int32_t n_inputs) except +
        void set_input_rows(vector[float64_t] rows) except +
        const Coins &coins()
        void draw_hyperparameters(bitgen_t *g)
        TransitionsRecord record(const vector[int32_t] &labels) except +
        void load(const TransitionsRecord &record, int32_t n_slots) except +
        # With the context of step t, or of a step without one.
        float64_t prob(int64_t t, int32_t j, int32_t k)
        void look(int64_t t, int32_t k, float64_t *stay, float64_t *leave)
        float64_t draw_coin(int32_t k, cbool of_stay, bitgen_t *g)
        const vector[int32_t] &draws()
        void fill_row(int64_t t, int32_t j, float64_t *out)
        void fill_draws(int64_t t, int32_t j, float64_t *out)


ctypedef Restaurants[SymbolBase] SymbolRestaurants  # emissions: dishes are symbols


cdef class Franchise:
    # Seating of the transitions: rows and dishes are slots.
    cdef shared_ptr[Transitions] shared
    cdef Transitions *native            # owned by `shared`


# Transitions and stays in a record of a chain or of a draw; and back, checked.
cdef dict transitions_to_arrays(TransitionsRecord &transitions)
cdef int transitions_from_arrays(object arrays, TransitionsRecord *out) except -1
# A tree of contexts, checked, and steps' leaves in it: arrays of depths and prefixes.
cdef int shape_of(n_before, parents, ContextShape *out) except -1
cdef int places_of(depths, prefixes, const ContextShape &shape, vector[ContextPlace] *out) except -1
# The transitions of a draw: state k has the slot FIRST + k, and there are no further slots.
cdef Franchise frozen_transitions(object arrays, object contexts=*)
# Inputs of all steps.
cdef int set_input_rows(Transitions *native, inputs) except -1
