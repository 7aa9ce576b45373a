# EmissionStats: the sufficient statistics of all states' emissions, for one chain.
from numpy.random cimport bitgen_t

from skihmm.core._family cimport Family
from skihmm.core._franchise cimport Product, SymbolSeating
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_rcd.hpp" namespace "skihmm" nogil:
    cdef cppclass SymbolColumn:
        # One symbol's probability under every state, sparse plus smooth:
        #     p(y | k) = (count_k + smooth) / (totals[k] + offset),
        # count_k > 0 only for the listed states.
        const int32_t *ids      # states with a positive count (0 possible inside a move)
        const int32_t *counts
        int32_t size
        float64_t smooth

    cdef cppclass SeatingEmission:
        # One franchise, the symbol of every step (-1: missing) and the hint of its cell.
        SymbolSeating *seating
        const int32_t *codes
        int32_t *hints


cdef class EmissionStats:
    # Slots are those of the transitions: NEW has no observations for ever.
    cdef readonly intp_t n_steps
    cdef int32_t n_slots
    # True if fill_column works, for every step.
    cdef bint has_columns
    # True if the hooks of the last part below work: for samplers that keep the states'
    # parameters during a sweep.
    cdef readonly bint draws_parameters
    # y[t] joins state k.  Multiplies into r the predictive probability (density) of y[t]
    # under state k as it was before; a missing y[t] is a no-op with factor one.
    cdef int add_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil
    # y[t] leaves state k.  Multiplies into r the predictive probability afterwards.
    cdef int remove_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil
    # out[k] = p(y[t] | k) / exp(returned value), for every slot; O(K).  No value may be
    # zero: what is negligible beside the largest is kept at a tiny positive number.
    cdef float64_t fill_probs(self, intp_t t, float64_t *out) except? -1 nogil
    # out[i] = p(y[t] | states[i]) for i = 0, 1, up to a factor common to the two.  The
    # default fills a whole row, O(K).
    cdef int fill_pair(self, intp_t t, const int32_t *states,
                       float64_t *out) except -1 nogil
    # Sparse view of the same row; False if y[t] is missing (p = 1 for all k).
    cdef bint fill_column(self, intp_t t, SymbolColumn *out) noexcept nogil
    # Observations per slot and the constant to add: 1/(totals[k] + offset) in the above.
    cdef const int32_t *totals(self, float64_t *offset_out) noexcept nogil
    # With columns: whether every concentration lies strictly between the two, so that
    # products of a few of these probabilities fit in a float.
    cdef bint is_moderate(self, float64_t least, float64_t most) noexcept nogil
    # True if add_value, remove_value, commit, rollback and all views of a column are those
    # of one franchise over symbols: kernels may then work on that directly.
    cdef bint as_seating(self, SeatingEmission *out) noexcept nogil
    # Storage for n_slots slots; only between moves.
    cdef int resize(self, int32_t n_slots) except -1 nogil
    # End of a move: keep it, or undo it exactly.
    cdef int commit(self) except -1 nogil
    cdef int rollback(self) except -1 nogil
    # log p(y, seating | states), nats.
    cdef float64_t log_joint(self) except? -1 nogil
    # Draw the emission's own concentrations and other hyperparameters, those without a fixed
    # value, given the labels and the seating.
    cdef int draw_hyperparameters(self, bitgen_t *g) except -1 nogil
    # Whatever rounding has worn is worked out again from states[t] = the slot of every step.
    # Called when a record is made or taken; the default does nothing.
    cdef int settle(self, const int32_t *states) except -1 nogil
    # The conjugate family, for particle filters: numbers_of returns those of all states,
    # shape (n_states, width), out of a record that nothing is believed of.
    cdef const Family *family(self) except NULL
    cdef object numbers_of(self, arrays, int32_t n_states)
    cdef size_t n_bytes(self) noexcept nogil

    # -- parameters.  From draw_parameters to reseat the statistics stay as they are,
    # whatever becomes of the labels; only resize may come between.
    #
    # Draw all parameters given the statistics: what the states share, and those of every
    # state with occupancy[k] > 0.  `lazy`: those may be drawn when they are asked for.
    cdef int draw_parameters(self, const int32_t *occupancy, bint lazy,
                             bitgen_t *g) except -1 nogil
    # p(y[t] | k) side by side for all slots, up to a common factor; in slot NEW that of a
    # fresh state, its parameters integrated out.  Slots with occupancy[k] = 0 hold anything
    # finite.  Valid until the next call.  Not after a lazy draw, but for emissions with
    # columns: there negative entries are not drawn yet.
    cdef const float64_t *likelihoods(self, intp_t t,
                                      const int32_t *occupancy) except NULL nogil
    # log p(y[t] | k) for any slot but NEW, occupied or not (a state that has emitted
    # nothing), after a lazy draw; what is not drawn yet is drawn.
    cdef float64_t log_likelihood(self, intp_t t, int32_t k, bitgen_t *g) except? -1 nogil
    # Parameters of a state that has emitted y[t] and nothing else.
    cdef int draw_newborn(self, int32_t k, intp_t t, bitgen_t *g) except -1 nogil
    # Statistics, and their seating, of states[t] = the slot of every step, given what the
    # states share; other parameters are integrated out.
    cdef int reseat(self, const int32_t *states, bitgen_t *g) except -1 nogil
