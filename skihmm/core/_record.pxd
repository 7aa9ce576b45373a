# Records: chains and draws as plain dicts, arrays and numbers, converted to trees that C++ classes
# read and check (_archive.hpp); and checks of arguments.
#
# The functions raise ValueError, and `what` begins its message.
from libcpp cimport bool as cbool
from libcpp.list cimport list as CppList
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_archive.hpp" namespace "skihmm" nogil:
    cdef struct Range:
        float64_t least, most

    Range CONCENTRATION "skihmm::kConcentration"
    Range FINITE "skihmm::kFinite"

    ctypedef enum RecordKind "skihmm::Record::Kind":
        INTEGER "skihmm::Record::kInteger"
        NUMBER "skihmm::Record::kNumber"
        INTEGERS "skihmm::Record::kIntegers"
        BYTES "skihmm::Record::kBytes"
        NUMBERS "skihmm::Record::kNumbers"
        LIST "skihmm::Record::kList"
        DICT "skihmm::Record::kDict"

    cdef cppclass Record:
        RecordKind kind
        string name, seen
        float64_t number
        vector[int64_t] shape
        vector[int32_t] integers
        vector[uint8_t] bytes
        vector[float64_t] numbers
        CppList[Record] items
        Record *add(const string &name) except +

    # Without arguments it is written.
    cdef cppclass Archive:
        Archive() except +
        Archive(shared_ptr[Record] record, cbool reads, const string &what) except +
        const Record &record()
        void scalar[T](T *value, const Range &range) except +
        void array[T](vector[T] *values, vector[int64_t] shape, const Range *range) except +

cdef extern from "_record.hpp" namespace "skihmm" nogil:
    int64_t MOST_CUSTOMERS "skihmm::kMostCustomers"

    cdef cppclass SeatingRecord:
        vector[int32_t] rows, dishes, n_customers, n_tables, sizes
        void visit(const Archive &archive, int32_t n_rows, int32_t n_dishes, cbool seats) except +


# An entry of a dictionary; an integer in least .. most; a concentration; integers of any
# width as int32.
cdef object entry_of(object arrays, str key, str what)
cdef int64_t integer_of(object value, str what, int64_t least, int64_t most) except? -1
cdef float64_t concentration_of(object value, str what) except? -1
cdef object int32_of(object values, str what)
cdef int integers_of(object values, str what, vector[int32_t] *out) except -1
# States 0 .. n_states - 1 of n_steps steps, each state used.
cdef int states_of(object values, int32_t n_states, intp_t n_steps,
                   vector[int32_t] *out) except -1
# First steps of sequences, increasing; the first of all is 0 if `from_zero`.
cdef int starts_of(object values, intp_t n_steps, bint from_zero,
                   vector[int32_t] *out) except -1

cdef object array_of(const vector[int32_t] &values)
cdef object numbers_of(const vector[float64_t] &values)
# An archive of a dict that may hold anything; and back.
cdef Archive archive_of(object arrays, str what) except *
cdef object from_record(const Record &record)
