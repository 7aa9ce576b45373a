// Macros for compilers and processors.
#pragma once
#include <cstddef> // defines __GLIBC__

#if defined(__GNUC__) || defined(__clang__)
// With the empty statement: GCC drops calls of functions that do nothing but prefetch.
#define SKIHMM_PREFETCH(address) \
    do { \
        __builtin_prefetch(address); \
        __asm__ volatile(""); \
    } while (false)
#define SKIHMM_INLINE inline __attribute__((always_inline))
#define SKIHMM_NOINLINE __attribute__((noinline))
#define SKIHMM_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define SKIHMM_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
// Turn a typedef of doubles into a vector of n doubles.
#define SKIHMM_VECTOR(n) \
    __attribute__((vector_size(n * sizeof(double)), aligned(8), may_alias))
#else
#define SKIHMM_PREFETCH(address) ((void)0)
#define SKIHMM_INLINE inline
#define SKIHMM_NOINLINE
#define SKIHMM_LIKELY(condition) (condition)
#define SKIHMM_UNLIKELY(condition) (condition)
#define SKIHMM_VECTOR(n)
#endif

// One version per vector unit, chosen when the library is loaded; all give the same bits,
// because there is no contraction and no sum across lanes.  Other C libraries than glibc, such
// as musl, cannot choose.  Under AddressSanitizer GCC 12 puts vectors of 64 bytes on a stack that is
// aligned to 32.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) \
    && !defined(__SANITIZE_ADDRESS__)
#define SKIHMM_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define SKIHMM_CLONES
#endif
