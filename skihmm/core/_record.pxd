# Records: chains and draws as plain arrays, and their checks (_record.hpp).
#
# The functions raise ValueError, and `what` begins its message.
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_record.hpp" namespace "skihmm" nogil:
    float64_t LEAST_CONCENTRATION "skihmm::kLeastConcentration"
    float64_t MOST_CONCENTRATION "skihmm::kMostConcentration"
    int64_t MOST_CUSTOMERS "skihmm::kMostCustomers"

    cdef cppclass SeatingRecord:
        vector[int32_t] rows, dishes, n_customers, n_tables, sizes

    void check_record(const SeatingRecord &record, int32_t n_rows, int32_t n_dishes,
                      cbool seats, const string &what) except +
    void check_customers(const SeatingRecord &record, const int32_t *row_of,
                         const int32_t *dish_of, int64_t stride, int64_t n,
                         int32_t n_rows, const string &what) except +
    # Row j becomes row_labels[j].
    SeatingRecord relabelled(const SeatingRecord &record,
                             const vector[int32_t] &row_labels) except +


# An entry of a dictionary; an integer in least .. most; a concentration; integers of any
# width as int32.
cdef object entry_of(object arrays, str key, str what)
cdef int64_t integer_of(object value, str what, int64_t least, int64_t most) except? -1
cdef float64_t concentration_of(object value, str what) except? -1
cdef object int32_of(object values, str what)
cdef int integers_of(object values, str what, vector[int32_t] *out) except -1
# States 0 .. n_states - 1 of n_steps steps, every one of them used.
cdef int states_of(object values, int32_t n_states, intp_t n_steps,
                   vector[int32_t] *out) except -1
# First steps of sequences, increasing; the first of all is 0 if `from_zero`.
cdef int starts_of(object values, intp_t n_steps, bint from_zero,
                   vector[int32_t] *out) except -1

cdef object array_of(const vector[int32_t] &values)
cdef dict record_to_arrays(const SeatingRecord &record)
# A seating that has passed check_record.
cdef int record_from_arrays(object arrays, str what, int32_t n_rows, int32_t n_dishes,
                            bint seats, SeatingRecord *out) except -1
