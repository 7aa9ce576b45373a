from libcpp cimport bool as cbool
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._family cimport Family
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_gaps.hpp" namespace "skihmm" nogil:
    cdef cppclass Gap:
        int64_t t
        int32_t column
        int64_t end

cdef extern from "_hidden.hpp" namespace "skihmm" nogil:
    cdef cppclass Hidden:
        const char *name()
        cbool is_of_draws()
        int64_t size()
        void read(float64_t *out)

cdef extern from "_subject_offsets.hpp" namespace "skihmm" nogil:
    cdef cppclass SubjectOffsets:
        cbool is_drawn_alone()
        int32_t n_subjects()
        int64_t size()
        void read(float64_t *out)

cdef extern from "_data_rows.hpp" namespace "skihmm" nogil:
    cdef cppclass DataRows:
        void open_gaps(const vector[Gap] &gaps) except +
        void open_subjects(const vector[int32_t] &codes, int32_t n_fitted,
                           const float64_t *variances, cbool has_scales) except +
        void open_subject_logs(int32_t n_offsets, const vector[int32_t] &codes, int32_t n_fitted,
                               const float64_t *variances) except +
        void open_weights() except +
        SubjectOffsets *subjects()
        size_t n_hidden()
        const Hidden *hidden(size_t i)
        int64_t n_means()

cdef extern from "_conjugate_table.hpp" namespace "skihmm" nogil:
    cdef cppclass ConjugateTable(Emission):
        ConjugateTable(Family *family, const float64_t *values, int64_t n_steps) except +
        void read_hyperparameters(float64_t *out)
        void watch(int (*poll)(void *) except -1 with gil, void *watcher)
        DataRows &data()
        void set_hidden(size_t i, const float64_t *numbers)
        void set_of_draws(const vector[float64_t] &numbers) except +
        void draw_hidden(const int32_t *slots, bitgen_t *g, float64_t *means,
                         cbool is_chain) except +
        void read(int32_t k, float64_t *out)
        void mean(int32_t k, float64_t *y) except +
        void draw_predictive(int32_t k, float64_t *y, bitgen_t *g) except +


cdef class ConjugateStats(EmissionStats):
    # The numbers of all states for one conjugate family (core/_family.hpp); only after
    # set_family, which takes ownership.
    cdef ConjugateTable *table              # what `shared` owns
    cdef const float64_t[:, ::1] values     # rows: values, of which NaN is missing, and inputs
    cdef cbool is_circular
    cdef int32_t n_options                  # of choices; otherwise 0
    cdef object is_stopped
    cdef object subjects                    # that of every row; None without
    cdef cbool has_scales                   # of subjects
    cdef object places                      # steps and columns of gaps that are filled
    cdef ConjugateStats set_family(self, Family *family)
    cdef object subject_numbers(self)
    cdef object filled_values(self, filled)
    cdef object directions(self, const int32_t[::1] slot)
    cdef object shares(self, const int32_t[::1] slot, inputs)
    cdef object values_of(self, rows, subjects)
    cdef object rows_with(self, int64_t n, inputs)
