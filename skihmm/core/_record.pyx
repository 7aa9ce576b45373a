"""Conversion and checks of chains and draws as plain arrays."""

import numpy as np


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
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{what} is {_describe(value)}; expected an integer")
    if not least <= int(value) <= most:
        raise ValueError(f"{what} is {value}; expected {least} to {most}")
    return int(value)


cdef float64_t concentration_of(object value, str what) except? -1:
    cdef float64_t number = -1.0
    if isinstance(value, bool) or not isinstance(
            value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{what} is {_describe(value)}; expected a number")
    try:
        number = float(value)
    except OverflowError:
        pass  # out of range, then
    # False for NaN too.
    if not LEAST_CONCENTRATION <= number <= MOST_CONCENTRATION:
        raise ValueError(
            f"{what} is {value}; expected a concentration from {LEAST_CONCENTRATION} to "
            f"{MOST_CONCENTRATION}")
    return number


cdef object int32_of(object values, str what):
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or (
            values.ndim != 1):
        raise ValueError(
            f"{what} is {_describe(values)}; expected a one-dimensional array of integers")
    if values.dtype != np.int32:
        for extreme in (values.min(), values.max()) if values.size else ():
            if not -2**31 <= int(extreme) < 2**31:
                raise ValueError(f"{what} holds {extreme}, which no 32-bit integer is")
    return np.ascontiguousarray(values, dtype=np.int32)


cdef int integers_of(object values, str what, vector[int32_t] *out) except -1:
    cdef const int32_t[::1] view = int32_of(values, what)
    out.resize(view.shape[0])
    cdef intp_t i
    for i in range(view.shape[0]):
        out[0][i] = view[i]
    return 0


cdef int states_of(object values, int32_t n_states, intp_t n_steps,
                   vector[int32_t] *out) except -1:
    cdef vector[char] used
    cdef intp_t t
    cdef int32_t k, n_used = 0
    integers_of(values, "states", out)
    if <intp_t> out.size() != n_steps:
        raise ValueError(f"states has {out.size()} entries; expected {n_steps}, one per step")
    used.assign(n_states, 0)
    for t in range(n_steps):
        k = out[0][t]
        if not 0 <= k < n_states:
            raise ValueError(
                f"states[{t}] is {k}; expected 0 to {n_states - 1}, as there are {n_states} "
                "states")
        n_used += not used[k]
        used[k] = 1
    if n_used < n_states:
        raise ValueError(
            f"states holds {n_used} different ones; expected all of {n_states}")
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


cdef object array_of(const vector[int32_t] &values):
    cdef Py_ssize_t i, n = <Py_ssize_t> values.size()
    out = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] view = out
    for i in range(n):
        view[i] = values[i]
    return out


cdef dict record_to_arrays(const SeatingRecord &record):
    return {
        "rows": array_of(record.rows),
        "dishes": array_of(record.dishes),
        "n_customers": array_of(record.n_customers),
        "n_tables": array_of(record.n_tables),
        "sizes": array_of(record.sizes),
    }


cdef int record_from_arrays(object arrays, str what, int32_t n_rows, int32_t n_dishes,
                            bint seats, SeatingRecord *out) except -1:
    integers_of(entry_of(arrays, "rows", what), what + ": rows", &out.rows)
    integers_of(entry_of(arrays, "dishes", what), what + ": dishes", &out.dishes)
    integers_of(entry_of(arrays, "n_customers", what), what + ": n_customers",
                &out.n_customers)
    integers_of(entry_of(arrays, "n_tables", what), what + ": n_tables", &out.n_tables)
    integers_of(entry_of(arrays, "sizes", what), what + ": sizes", &out.sizes)
    check_record(out[0], n_rows, n_dishes, seats, what.encode())
    return 0
