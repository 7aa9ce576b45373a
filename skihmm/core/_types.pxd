# One place for the widths of numbers that cross the native border.  Labels, symbols and
# counts are 32-bit (fixed width: they are stored); loop indices over time steps are as
# wide as a pointer; probabilities are doubles.
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

ctypedef Py_ssize_t intp_t
ctypedef double float64_t
