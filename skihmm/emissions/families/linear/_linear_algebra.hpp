// Vectors of numbers and sums of products, for linear Gaussian families.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "_cholesky.hpp"
#include "_family_setting.hpp"
#include "_platform.hpp"

namespace skihmm {

// R^T R += row row^T for an upper triangular R of whole rows; `row` is overwritten.  By rotations:
// a sum of squares loses the difference of nearly equal columns.
inline void add_to_root(int32_t d, double *row, double *R) {
    for (int32_t j = 0; j < d; ++j, R += d) {
        if (row[j] == 0.0) continue;
        const double root = std::sqrt(R[j] * R[j] + row[j] * row[j]);
        const double c = R[j] / root, s = row[j] / root;
        R[j] = root;
        for (int32_t i = j + 1; i < d; ++i) {
            const double before = R[i];
            R[i] = c * before + s * row[i];
            row[i] = c * row[i] - s * before;
        }
    }
}

typedef double Vector SKIHMM_VECTOR(8);
constexpr int32_t kInVector = sizeof(Vector) / sizeof(double);

// N numbers side by side: of as many states or rows.  (Compilers do not make vectors of loops over
// arrays that may overlap, and loads across cache lines would cost an eighth of the time.)
template <int N>
struct alignas(64) Numbers {
    static constexpr int32_t kParts = N / kInVector;
    Vector parts[kParts];

    SKIHMM_INLINE static Numbers of(double x) {
        Numbers all;
        for (Vector &part : all.parts) part = Vector{} + x;
        return all;
    }
    SKIHMM_INLINE void add(double x, const Numbers &y) {
        for (int32_t i = 0; i < kParts; ++i) parts[i] += x * y.parts[i];
    }
    SKIHMM_INLINE void add_square(double x, const Numbers &y) {
        for (int32_t i = 0; i < kParts; ++i) parts[i] += y.parts[i] * y.parts[i] * x;
    }
    // Subtract N numbers of an array.
    SKIHMM_INLINE void subtract(const double *x) {
        for (int32_t i = 0; i < kParts; ++i) parts[i] -= part_of(x, i);
    }
    SKIHMM_INLINE void add(const double *x, const Numbers &y) {
        for (int32_t i = 0; i < kParts; ++i) parts[i] += part_of(x, i) * y.parts[i];
    }
    SKIHMM_INLINE void subtract(const double *x, const Numbers &y) {
        for (int32_t i = 0; i < kParts; ++i) parts[i] -= part_of(x, i) * y.parts[i];
    }
    SKIHMM_INLINE void add_square(const double *x, const Numbers &y) {
        for (int32_t i = 0; i < kParts; ++i)
            parts[i] += y.parts[i] * (y.parts[i] * part_of(x, i));
    }
    double *data() { return reinterpret_cast<double *>(parts); }

  private:
    SKIHMM_INLINE static const Vector &part_of(const double *x, int32_t i) {
        return reinterpret_cast<const Vector *>(x)[i];
    }
};

// Sums of z z^T over rows: the lower triangle, in rows of whole vectors, as is z.
inline int32_t side_of_sums(int32_t size) { return (size + kInVector - 1) / kInVector * kInVector; }
// From so many rows on one factorisation of sums takes less time than updates row by row; and up to
// so many degrees of freedom, which multiply the growth of a determinant: its logarithm, of a
// quotient that may be near one, has lost digits.
constexpr int64_t kFewRowsToSum = 4;
constexpr double kMostDof = 1e5;

SKIHMM_CLONES static void add_products(int32_t size, const double *z, double *sums) {
    const int32_t side = side_of_sums(size);
    for (int32_t i = 0; i < size; ++i, sums += side)
        for (int32_t j = 0; j <= i; j += kInVector)
            *reinterpret_cast<Vector *>(sums + j) +=
                z[i] * *reinterpret_cast<const Vector *>(z + j);
}
// The factors of prior + sums = L D L^T: 1 / D and, in A, below the diagonal L^-1, above it D L^T,
// by eliminating rows.  False if too many digits are lost.
SKIHMM_CLONES static bool invert_factor(int32_t size, const double *prior, const double *sums,
                                        double *A, double *inverse) {
    const int32_t side = side_of_sums(size);
    for (int32_t i = 0; i < size; ++i) {
        for (int32_t j = 0; j <= i; ++j)
            A[i * side + j] = A[j * side + i] = prior[i * side + j] + sums[i * side + j];
        inverse[i] = A[i * side + i];
    }
    for (int32_t j = 0; j < size; ++j) {
        double *row = A + j * side;
        // (False for NaN too.)
        if (!(row[j] > kLeastShare * inverse[j])) return false;
        inverse[j] = 1.0 / row[j];
        row[j] = 1.0;
        for (int32_t i = j + 1; i < size; ++i) {
            double *other = A + i * side;
            const double share = other[j] * inverse[j];
            other[j] = 0.0;
            for (int32_t l = 0; l < size; l += kInVector)
                *reinterpret_cast<Vector *>(other + l) -=
                    share * *reinterpret_cast<const Vector *>(row + l);
        }
    }
    return true;
}

}  // namespace skihmm
