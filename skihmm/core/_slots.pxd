# Slots of labels that are no states of the data.
from skihmm.core._types cimport int32_t


cdef extern from "_slots.hpp" namespace "skihmm" nogil:
    const int32_t NEW "skihmm::kNew"
    const int32_t START "skihmm::kStart"
    const int32_t FIRST "skihmm::kFirst"
