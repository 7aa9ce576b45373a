"""Conversion and checks of chains and draws as plain arrays."""

import numpy as np

cimport numpy as cnp
from cython.operator cimport dereference, preincrement
from libc.string cimport memcpy
from libcpp.list cimport list as CppList
from libcpp.memory cimport make_shared, shared_ptr

from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t

cnp.import_array()


cdef object _describe(object value):
    if isinstance(value, np.ndarray):
        return f"an array of type {value.dtype} and shape {value.shape}"
    return f"of type {type(value).__name__}"


cdef object entry_of(object arrays, str key, str what):
    if not isinstance(arrays, dict):
        raise ValueError(f"{what} is {_describe(arrays)}; expected a dict")
    if key not in arrays:
        raise ValueError(f"{what} has no entry {key!r}")
    return arrays[key]


cdef int64_t integer_of(object value, str what, int64_t least, int64_t most) except? -1:
    cdef int64_t number = 0
    archive_of(value, what).scalar(&number, Range(least, most))
    return number


cdef float64_t concentration_of(object value, str what) except? -1:
    cdef float64_t number = 0.0
    archive_of(value, what).scalar(&number, CONCENTRATION)
    return number


cdef object INT32 = np.dtype(np.int32)


cdef object int32_of(object values, str what):
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or (
            values.ndim != 1):
        raise ValueError(
            f"{what} is {_describe(values)}; expected a one-dimensional array of integers")
    if values.dtype is INT32 and values.flags.c_contiguous:
        return values
    if values.dtype != np.int32:
        wide = values.size and values.dtype.itemsize > 2
        for extreme in (values.min(), values.max()) if wide else ():
            if not -2**31 <= int(extreme) < 2**31:
                raise ValueError(f"{what} holds {extreme}, which no 32-bit integer is")
    return np.ascontiguousarray(values, dtype=np.int32)


cdef int integers_of(object values, str what, vector[int32_t] *out) except -1:
    cdef const int32_t[::1] view = int32_of(values, what)
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0] * sizeof(int32_t))
    return 0


cdef int states_of(object values, int32_t n_states, intp_t n_steps,
                   vector[int32_t] *out) except -1:
    cdef Range range = Range(0, n_states - 1)
    archive_of(values, "states").array(out, [n_steps], &range)
    n_used = len(np.unique(values))
    if n_used < n_states:
        raise ValueError(f"states holds {n_used} different ones; expected all of {n_states}")
    return 0


cdef int starts_of(object values, intp_t n_steps, bint from_zero,
                   vector[int32_t] *out) except -1:
    cdef size_t i
    array = np.asarray(values)
    integers_of(array if array.size else array.astype(np.int32), "starts", out)
    for i in range(out.size()):
        if not 0 <= out[0][i] < n_steps:
            raise ValueError(f"a sequence starts at step {out[0][i]} of {n_steps}")
        if i > 0 and out[0][i] <= out[0][i - 1]:
            raise ValueError(
                f"a sequence that starts at step {out[0][i]} follows one that starts at "
                f"step {out[0][i - 1]}; expected increasing steps")
    if from_zero and (out.size() == 0 or out[0][0] != 0):
        raise ValueError("no sequence starts at step 0")
    return 0


cdef object copy_of(const void *values, cnp.npy_intp n, int dtype, size_t size):
    # (A memoryview would take longer than the copy of a short array.)
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &n, dtype, False)
    if n > 0:  # an empty vector may have no address
        memcpy(cnp.PyArray_DATA(out), values, n * size)
    return out


cdef object array_of(const vector[int32_t] &values):
    return copy_of(values.data(), values.size(), cnp.NPY_INT32, sizeof(int32_t))


cdef object numbers_of(const vector[float64_t] &values):
    return copy_of(values.data(), values.size(), cnp.NPY_FLOAT64, sizeof(float64_t))


# Levels of the deepest record, a product's with known states, and some more.
cdef int DEEPEST = 16
cdef tuple NUMBERS_OF_PYTHON = (int, float, np.integer, np.floating)


cdef int to_record(object value, Record *out, str what, int depth=0) except -1:
    cdef const float64_t[::1] numbers
    if depth > DEEPEST:
        raise ValueError(f"the record has more than {DEEPEST} levels")
    if isinstance(value, dict):
        out.kind = DICT
        for name, item in value.items():
            if isinstance(name, str):
                to_record(item, out.add(name.encode()), name, depth + 1)
    elif isinstance(value, (list, tuple)):
        out.kind = LIST
        for item in value:
            to_record(item, out.add(b""), what, depth + 1)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.ndim == 1:
        out.kind = INTEGERS
        out.shape.push_back(len(value))
        integers_of(value, what, &out.integers)
    elif isinstance(value, np.ndarray) and value.dtype == np.float64:
        out.kind = NUMBERS
        out.shape = value.shape
        if value.size:
            numbers = np.ascontiguousarray(value).ravel()
            out.numbers.assign(&numbers[0], &numbers[0] + numbers.shape[0])
    elif isinstance(value, NUMBERS_OF_PYTHON) and not isinstance(value, bool):
        out.kind = INTEGER if isinstance(value, (int, np.integer)) else NUMBER
        try:
            out.number = float(value)
        except OverflowError:
            out.number = np.inf
        out.seen = str(value).encode()
    else:
        out.seen = _describe(value).encode()
    return 0


cdef Archive archive_of(object arrays, str what) except *:
    cdef shared_ptr[Record] record = make_shared[Record]()
    to_record(arrays, record.get(), what)
    return Archive(record, True, what.encode())


cdef object from_record(const Record &record):
    cdef CppList[Record].const_iterator item = record.items.const_begin()
    if record.kind == INTEGER:
        return int(record.number)
    if record.kind == NUMBER:
        return record.number
    if record.kind == INTEGERS:
        return array_of(record.integers)
    if record.kind == BYTES:
        return copy_of(record.bytes.data(), record.bytes.size(), cnp.NPY_UINT8, 1)
    if record.kind == NUMBERS:
        return numbers_of(record.numbers).reshape(record.shape)
    names, items = [], []
    while item != record.items.const_end():
        names.append(dereference(item).name.decode())
        items.append(from_record(dereference(item)))
        preincrement(item)
    return items if record.kind == LIST else dict(zip(names, items, strict=True))
