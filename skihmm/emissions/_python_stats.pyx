"""Statistics of a conjugate emission in Python."""

import numpy as np

cimport numpy as cnp
from libc.math cimport isfinite, isnan
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport EmissionStats
from skihmm.core._family cimport Family  # no-cython-lint
from skihmm.core._random cimport BorrowedBits
from skihmm.core._types cimport float64_t, int32_t, int64_t
from skihmm.emissions._conjugate_stats cimport family_stats

cnp.import_array()


cdef extern from "_python_family.hpp" namespace "skihmm" nogil:
    struct PythonCalls:
        void *self
        int (*fill)(void *, const float64_t *, int64_t, int32_t, const float64_t *,
                    float64_t *) except -1 nogil
        int (*fill_rows)(void *, const float64_t *, int32_t, const float64_t *,
                         const float64_t *, float64_t *) except -1 nogil
        int (*fill_densities)(void *, const float64_t *, int64_t, int32_t,
                              const float64_t *, float64_t *) except -1 nogil
        int (*add)(void *, float64_t *, int64_t, const float64_t *) except -1 nogil
        int (*remove)(void *, float64_t *, int64_t, const float64_t *) except -1 nogil
        int (*log_marginal)(void *, const float64_t *, int64_t, float64_t *) except -1 nogil
        int (*is_sound)(void *, const float64_t *, int64_t) except -1 nogil
        int (*draw)(void *, const float64_t *, int64_t, float64_t *, int64_t,
                    bitgen_t *) except -1 nogil
        int (*emit)(void *, const float64_t *, int64_t, float64_t *, bitgen_t *) except -1 nogil
        int (*mean)(void *, const float64_t *, int64_t, float64_t *) except -1 nogil
        int (*next_inputs)(void *, const float64_t *, float64_t *) except -1 nogil

    cdef cppclass PythonFamily(Family):
        bint draws_parameters
        PythonFamily(const PythonCalls &calls, int32_t columns, int32_t inputs,
                     int32_t n, const float64_t *empty, int32_t n_parameters,
                     bint takes_partial_rows) except +


# -- arrays, always copies: emissions may keep them.

cdef cnp.ndarray _vector(const float64_t *at, int64_t stride, int64_t n):
    cdef cnp.npy_intp size = n
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &size, cnp.NPY_FLOAT64, False)
    cdef float64_t *data = <float64_t *> cnp.PyArray_DATA(out)
    cdef int64_t i
    for i in range(n):
        data[i] = at[i * stride]
    return out


cdef cnp.ndarray _columns(const float64_t *table, int64_t stride, int64_t n, int64_t width):
    # Row k is table[k::stride]; in Fortran order, because whole columns are used.
    cdef cnp.npy_intp[2] shape = [n, width]
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(2, shape, cnp.NPY_FLOAT64, True)
    cdef float64_t *data = <float64_t *> cnp.PyArray_DATA(out)
    cdef int64_t i, k
    for i in range(width):
        for k in range(n):
            data[i * n + k] = table[i * stride + k]
    return out


cdef cnp.ndarray _checked(object found, int64_t n, object owner, str name):
    # Convert the result of a function to n finite floats.
    cdef cnp.ndarray out
    cdef int64_t i
    cdef const float64_t *data
    if found is None:
        raise TypeError(
            f"{type(owner).__name__}.{name} returned None; expected an array of {n} "
            "numbers. (Does it end without a return?)")
    try:
        out = np.ascontiguousarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{type(owner).__name__}.{name} returned {type(found).__name__} "
            f"{found!r:.80}; expected an array of {n} numbers.") from error
    if cnp.PyArray_NDIM(out) != 1 or cnp.PyArray_DIM(out, 0) != n or np.ndim(found) != 1:
        raise ValueError(
            f"{type(owner).__name__}.{name} returned an array of shape "
            f"{np.shape(found)}; expected ({n},).")
    data = <const float64_t *> cnp.PyArray_DATA(out)
    for i in range(n):
        if not isfinite(data[i]):
            raise ValueError(
                f"{type(owner).__name__}.{name} returned {data[i]} at place {i}; expected "
                "finite numbers. (What is all but impossible needs a log probability that "
                "is very negative, not minus infinity.)")
    return out


# -- the functions as PythonCalls.  An error is -1 with Python's exception set.

cdef class _Calls:
    # The `self` of PythonCalls.
    cdef object emission
    cdef object generator
    cdef BorrowedBits bits
    cdef int64_t width, parameter_width, n_columns, n_inputs, row_width

    def __init__(self, emission):
        self.emission = emission
        self.bits = BorrowedBits()
        self.generator = np.random.Generator(self.bits)


cdef int _add_to(float64_t *out, cnp.ndarray values) noexcept:
    cdef const float64_t *data = <const float64_t *> cnp.PyArray_DATA(values)
    cdef int64_t k
    for k in range(cnp.PyArray_DIM(values, 0)):
        out[k] += data[k]
    return 0


cdef int _fill(void *self, const float64_t *table, int64_t stride, int32_t n,
               const float64_t *y, float64_t *out) except -1 with gil:
    cdef _Calls c = <_Calls> self
    return _add_to(out, _checked(
        c.emission.log_predictive(_columns(table, stride, n, c.width), _vector(y, 1, c.row_width)),
        n, c.emission, "log_predictive"))


cdef int _fill_rows(void *self, const float64_t *rows, int32_t n, const float64_t *last,
                    const float64_t *y, float64_t *out) except -1 with gil:
    cdef _Calls c = <_Calls> self
    cdef cnp.npy_intp[2] shape = [n + 1, c.width]
    cdef cnp.ndarray numbers = cnp.PyArray_EMPTY(2, shape, cnp.NPY_FLOAT64, False)
    cdef float64_t *data = <float64_t *> cnp.PyArray_DATA(numbers)
    cdef int64_t i
    for i in range(n * c.width):
        data[i] = rows[i]
    for i in range(c.width):
        data[n * c.width + i] = last[i]
    return _add_to(out, _checked(
        c.emission.log_predictive(numbers, _vector(y, 1, c.row_width)), n + 1, c.emission,
        "log_predictive"))


cdef int _fill_densities(void *self, const float64_t *table, int64_t stride, int32_t n,
                         const float64_t *y, float64_t *out) except -1 with gil:
    cdef _Calls c = <_Calls> self
    cdef cnp.ndarray parameters = _columns(table, stride, n, c.parameter_width)
    cdef cnp.ndarray values
    cdef float64_t *data
    cdef int64_t k, at = 0
    # Slots without parameters have NaN, with arbitrary results.
    drawn = ~np.isnan(parameters[:, 0])
    parameters = parameters[drawn]
    if cnp.PyArray_DIM(parameters, 0) == 0:
        return 0
    values = _checked(
        c.emission.log_density(parameters, _vector(y, 1, c.row_width)),
        cnp.PyArray_DIM(parameters, 0), c.emission, "log_density")
    data = <float64_t *> cnp.PyArray_DATA(values)
    for k in range(n):
        if not isnan(table[k]):
            out[k] += data[at]
            at += 1
    return 0


cdef int _write(float64_t *s, int64_t stride, cnp.ndarray values) noexcept:
    cdef const float64_t *data = <const float64_t *> cnp.PyArray_DATA(values)
    cdef int64_t i
    for i in range(cnp.PyArray_DIM(values, 0)):
        s[i * stride] = data[i]
    return 0


cdef int _add(void *self, float64_t *s, int64_t stride,
              const float64_t *y) except -1 with gil:
    cdef _Calls c = <_Calls> self
    return _write(s, stride, _checked(
        c.emission.add(_vector(s, stride, c.width), _vector(y, 1, c.row_width)), c.width,
        c.emission, "add"))


cdef int _remove(void *self, float64_t *s, int64_t stride,
                 const float64_t *y) except -1 with gil:
    cdef _Calls c = <_Calls> self
    found = c.emission.remove(_vector(s, stride, c.width), _vector(y, 1, c.row_width))
    if found is None:
        return 1
    return _write(s, stride, _checked(found, c.width, c.emission, "remove"))


cdef int _log_marginal(void *self, const float64_t *s, int64_t stride,
                       float64_t *out) except -1 with gil:
    cdef _Calls c = <_Calls> self
    return _add_to(out, _checked(
        c.emission.log_marginal(_columns(s, stride, 1, c.width)), 1, c.emission, "log_marginal"))


cdef int _is_sound(void *self, const float64_t *s, int64_t stride) except -1 with gil:
    cdef _Calls c = <_Calls> self
    cdef int64_t i
    for i in range(c.width):
        if not isfinite(s[i * stride]):
            return 0
    return bool(c.emission.is_sound(_vector(s, stride, c.width)))


cdef int _draw(void *self, const float64_t *s, int64_t stride, float64_t *p,
               int64_t p_stride, bitgen_t *g) except -1 with gil:
    cdef _Calls c = <_Calls> self
    c.bits.target = g
    return _write(p, p_stride, _checked(
        c.emission.draw_parameters(_vector(s, stride, c.width), c.generator), c.parameter_width,
        c.emission, "draw_parameters"))


cdef tuple _inputs(_Calls c, const float64_t *y):
    # The further argument of an emission with inputs.
    return (_vector(y + c.n_columns, 1, c.n_inputs),) if c.n_inputs else ()


cdef int _emit(void *self, const float64_t *p, int64_t stride, float64_t *y,
               bitgen_t *g) except -1 with gil:
    cdef _Calls c = <_Calls> self
    c.bits.target = g
    return _write(y, 1, _checked(
        c.emission.emit(_vector(p, stride, c.parameter_width), c.generator, *_inputs(c, y)),
        c.n_columns, c.emission, "emit"))


cdef int _mean(void *self, const float64_t *s, int64_t stride,
               float64_t *y) except -1 with gil:
    cdef _Calls c = <_Calls> self
    return _write(y, 1, _checked(
        c.emission.mean(_vector(s, stride, c.width), *_inputs(c, y)), c.n_columns, c.emission,
        "mean"))


cdef int _next_inputs(void *self, const float64_t *row,
                      float64_t *inputs) except -1 with gil:
    cdef _Calls c = <_Calls> self
    found = c.emission.next_inputs(None if row is NULL else _vector(row, 1, c.row_width))
    # NaN is possible: earlier rows may be missing.
    values = np.asarray(found, dtype=np.float64)
    if values.shape != (c.n_inputs,):
        raise ValueError(
            f"{type(c.emission).__name__}.next_inputs returned an array of shape "
            f"{values.shape}; expected ({c.n_inputs},).")
    return _write(inputs, 1, np.ascontiguousarray(values))


def python_stats(rows: Floats, emission: ConjugateEmission) -> EmissionStats:
    """Build empty statistics of every state, by the functions of an emission.

    Parameters
    ----------
    rows : ndarray of shape (n_steps, n_columns + n_inputs), float64
        Observations, of which NaN is missing, and their inputs.
    emission : ConjugateEmission
        Fitted.

    Returns
    -------
    stats : EmissionStats

    Raises
    ------
    TypeError, ValueError
        If a function returns something else than it should.
    """
    cdef PythonCalls calls
    cdef _Calls c = _Calls(emission)
    cdef PythonFamily *family
    cdef EmissionStats stats
    found = emission.empty()
    cdef cnp.ndarray empty = _checked(found, np.size(found), emission, "empty")
    if len(empty) == 0:
        raise ValueError(
            f"{type(emission).__name__}.empty returned no numbers; expected at least "
            "one per state.")
    c.width = len(empty)
    c.row_width = rows.shape[1]
    c.n_inputs = emission.n_inputs
    c.n_columns = c.row_width - c.n_inputs
    draws, has_densities = emission.capabilities()
    if draws:
        # Count the parameters in a draw, here from a stream of its own.
        found = emission.draw_parameters(empty.copy(), np.random.default_rng(0))
        c.parameter_width = len(_checked(
            found, np.size(found), emission, "draw_parameters"))
        if c.parameter_width == 0:
            raise ValueError(
                f"{type(emission).__name__}.draw_parameters returned no numbers; "
                "expected at least one.")
    calls = PythonCalls(
        <void *> c, _fill, _fill_rows, _fill_densities, _add, _remove, _log_marginal, _is_sound,
        _draw, _emit, _mean, _next_inputs)
    family = new PythonFamily(
        calls, <int32_t> c.n_columns, <int32_t> c.n_inputs, <int32_t> c.width,
        <const float64_t *> cnp.PyArray_DATA(empty), <int32_t> c.parameter_width,
        emission.takes_partial_rows)
    family.draws_parameters = has_densities
    # The family calls through it.
    stats = family_stats(family, rows)
    stats.kept = c
    return stats
