"""Statistics of categorical emissions: HCRP, with contexts or without, and Dirichlet."""

import numpy as np

from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats, stats_of
from skihmm.core._record cimport concentration_of, integer_of
from skihmm.core._types cimport float64_t, int32_t, int64_t


cdef extern from "_symbol_columns.hpp" namespace "skihmm" nogil:
    cdef cppclass SymbolColumns(Emission):
        void set_concentrations(vector[float64_t] alphas, float64_t gamma) except +

cdef extern from "_categorical_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass CategoricalEmission(SymbolColumns):
        CategoricalEmission(const int32_t *codes, int64_t n_steps,
                            const vector[int32_t] &n_symbols, cbool is_hierarchical,
                            float64_t prior_shape, float64_t prior_rate,
                            cbool draws_pseudo_count) except +

cdef extern from "_context_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass ContextEmission(SymbolColumns):
        ContextEmission(const int32_t *codes, const int32_t *contexts, int32_t n_contexts,
                        int64_t n_steps, const vector[int32_t] &n_symbols,
                        float64_t prior_shape, float64_t prior_rate) except +


cdef object _checked(codes, n_symbols):
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.dtype.kind not in "iu":
        raise ValueError(
            f"codes is an array of type {codes.dtype} and shape {codes.shape}; expected "
            "integers, one row per step and one column per symbol")
    if codes.shape[1] != len(n_symbols):
        raise ValueError(
            f"codes has {codes.shape[1]} columns, but n_symbols says {len(n_symbols)}")
    return np.ascontiguousarray(codes, dtype=np.int32)


cdef const int32_t *_begin_of(const int32_t[:, ::1] rows) noexcept:
    return &rows[0, 0] if rows.size > 0 else NULL


def categorical_stats(codes: Integers, n_symbols: list[int], alpha: float, gamma: float = 1.0,
                      hierarchical: bool = True,
                      concentration_prior: tuple[float, float] | None = None,
                      draws_pseudo_count: bool = False, contexts: Integers | None = None,
                      context_alpha: Sequence[float] = ()) -> EmissionStats:
    """Build empty counts of symbols of every state: per column a franchise, or a tree.

    Parameters
    ----------
    codes : ndarray of shape (n_steps, n_columns), int32
        Symbols ``0 .. V_c - 1`` of every column; -1 is missing.
    n_symbols : sequence of int
        V_c of every column.
    alpha, gamma : float
        Concentrations of the hierarchical process, shared by all columns, from 1e-50 to
        1e50.  With ``hierarchical=False``, `alpha` is the pseudo-count of every symbol.
    hierarchical : bool
        HCRP over a shared, learned distribution of symbols (arXiv 1106.0474), or
        independent symmetric Dirichlet distributions.
    concentration_prior : (float, float) or None
        Shape and rate of the Gamma prior on all concentrations of the hierarchical process;
        None keeps them.
    draws_pseudo_count : bool
        With ``hierarchical=False``: draw the pseudo-count from its posterior, prior
        Gamma(1/2, 1/2).
    contexts : ndarray of shape (n_steps, n_contexts), int32, optional
        Categories of columns of contexts on which symbols depend; -1 is missing.
    context_alpha : sequence of float
        Concentration of every column of contexts.

    Returns
    -------
    stats : EmissionStats
    """
    cdef vector[int32_t] sizes
    cdef vector[float64_t] alphas
    cdef float64_t shape = 0.0, rate = 0.0
    cdef SymbolColumns *native
    cdef EmissionStats stats
    codes = _checked(codes, n_symbols)
    for c, n in enumerate(n_symbols):
        sizes.push_back(<int32_t> integer_of(n, f"n_symbols[{c}]", 1, 2**31 - 1))
    for value in (alpha, *context_alpha):
        alphas.push_back(concentration_of(value, "alpha"))
    base = concentration_of(gamma, "gamma")
    if concentration_prior is not None:
        shape, rate = concentration_prior
    n_contexts = 0 if contexts is None else np.shape(contexts)[1]
    if n_contexts != len(context_alpha) or (n_contexts and len(contexts) != len(codes)):
        raise ValueError(
            f"contexts has the shape {np.shape(contexts)}; expected "
            f"({len(codes)}, {len(context_alpha)})")
    if n_contexts:
        contexts = np.ascontiguousarray(contexts, dtype=np.int32)
        native = new ContextEmission(
            _begin_of(codes), _begin_of(contexts), n_contexts, len(codes), sizes, shape, rate)
    else:
        native = new CategoricalEmission(
            _begin_of(codes), len(codes), sizes, hierarchical, shape, rate, draws_pseudo_count)
    stats = stats_of(<Emission *> native, codes)
    stats.kept = contexts
    native.set_concentrations(alphas, base)
    return stats
