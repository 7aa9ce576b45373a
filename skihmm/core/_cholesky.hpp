// Cholesky factors of small positive definite matrices: lower triangles, row by row.
#pragma once
#include <cmath>
#include <cstdint>

namespace skihmm {

// A sum of squares after a subtraction counts as lost to rounding below this proportion of its
// earlier value: nine of sixteen digits remain.
constexpr double kLeastShare = 1e-7;
// A removal that leaves less than this share of a determinant triggers a recount: few digits are
// lost even in ten thousand removals.
constexpr double kLeastLeft = 1e-3;

// Replace a matrix by its factor L.  LAPACK's factor differs in the last bits between processors.
// False if too many digits are lost.
inline bool factorise(int32_t d, double *A) {
    bool is_precise = true;
    for (int32_t i = 0; i < d; ++i) {
        double *row = A + i * (i + 1) / 2;
        const double diagonal = row[i];
        for (int32_t j = 0; j <= i; ++j) {
            const double *other = A + j * (j + 1) / 2;
            for (int32_t l = 0; l < j; ++l) row[j] -= row[l] * other[l];
            // (False for NaN too.)
            if (i == j) is_precise &= row[j] > kLeastShare * diagonal;
            row[j] = i == j ? std::sqrt(row[j]) : row[j] / other[j];
        }
    }
    return is_precise;
}
// x = L^-1 x.
inline void solve_lower(int32_t d, const double *L, double *x) {
    for (int32_t i = 0; i < d; ++i) {
        for (int32_t j = 0; j < i; ++j) x[i] -= *L++ * x[j];
        x[i] /= *L++;
    }
}
// x = L^-T x.
inline void solve_upper(int32_t d, const double *L, double *x) {
    for (int32_t i = d - 1; i >= 0; --i) {
        const double *row = L + i * (i + 1) / 2;
        x[i] /= row[i];
        for (int32_t j = 0; j < i; ++j) x[j] -= row[j] * x[i];
    }
}

}  // namespace skihmm
