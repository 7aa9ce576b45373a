// What several conjugate families need: vectors of states, tables, checks of priors.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_family.hpp"
#include "_math.hpp"
#include "_platform.hpp"

namespace skihmm {

// States per vector: arrays over states are padded to a multiple.
constexpr int32_t kLanes = 16;

constexpr double kPi = 3.14159265358979323846;
constexpr double kLogPi = 1.1447298858494001741;
constexpr double kLog2Pi = 1.8378770664093454836;

// A sum of squares after a subtraction counts as lost to rounding below this proportion of its
// earlier value: nine of sixteen digits remain.
constexpr double kLeastShare = 1e-7;

// What a family is built from.
struct FamilySetting {
    int32_t n_columns, n_inputs;
    int32_t n_given;                // inputs that are given, the last ones
    const double *hyperparameters;  // of the prior at the start of a chain, one after the other
    const double *units;            // typical values, by which hyperparameters have their priors
    const int32_t *is_drawn;        // which hyperparameters chains draw from their posterior
    double constant;                // shape, degrees of freedom or period, never drawn
    const double *values;           // all rows
    int64_t n_steps;
};

// log Gamma(a + n step + rise) - log Gamma(a + n step) for n = 0, 1, ..., by table.
class RisingTable {
  public:
    void configure(double a, double step, double rise, int64_t n) {
        a_ = a;
        step_ = step;
        rise_ = rise;
        values_.resize(n + 1);
        for (int64_t i = 0; i <= n; ++i) values_[i] = log_rising(a + i * step, rise);
    }
    double operator()(double n) const {
        const size_t i = static_cast<size_t>(n);
        return i < values_.size() ? values_[i] : log_rising(a_ + n * step_, rise_);
    }

  private:
    double a_ = 1.0, step_ = 0.0, rise_ = 0.0;
    std::vector<double> values_;
};

// Range of positive parameters of a prior.
inline bool all_positive(const double *x, size_t n) {
    return std::all_of(x, x + n, [](double v) { return v > 0.0 && std::isfinite(v); });
}
inline bool all_finite(const double *x, size_t n) {
    return std::all_of(x, x + n, [](double v) { return std::isfinite(v); });
}

// log Gamma(a + y) - log Gamma(a) for y > 16, by Stirling's formula.
static SKIHMM_INLINE double log_rising_of_many(double a, double y) {
    // Gamma(a) = Gamma(a + 8) / (a (a + 1) ... (a + 7))
    const double b = a + y, high = a + 8.0;
    double inverse, log_power, product = 1.0;
    split_large(a, &inverse, &log_power);
    for (int32_t i = 0; i < 8; ++i) product *= (a + i) * inverse;
    return log_of(std::max(product, 1e-307)) + 8.0 * log_power + (y - 8.0) * log_of(b)
           + (high - 0.5) * log1p_of((y - 8.0) / high) - (y - 8.0)
           + (stirling_rest(b) - stirling_rest(high));
}

// Replace the lower triangle of a positive definite matrix, row by row, by its Cholesky factor.
// That of LAPACK differs in the last bits from one processor to another.  False if too many digits
// are lost.
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
// R^T R += row row^T for an upper triangular R of whole rows; `row` is overwritten.  By rotations:
// of columns that are nearly equal a sum of squares has lost what tells them apart.
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
    // The same with N numbers in an array.
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
// From so many rows on one factorisation of sums takes less time than updates by each of them; and
// up to so many degrees of freedom, which multiply the growth of a determinant: its logarithm, of a
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
// Of prior + sums = L D L^T 1 / D and, in A, below the diagonal L^-1, above it D L^T: the rows are
// eliminated.  False if too many digits are lost.
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

// What the two families of matrices share.  The first statistic is the number of rows.  A row
// without all inputs or values is missing as a whole, because a partial row is not conjugate.
//
// Of the prior's S_0 + the sum of z z^T over all rows, z one and what a row has to say, the factors
// are the posterior.
class MatrixFamily : public Family {
  public:
    bool is_missing(const double *y) const final {
        int64_t n = 0;    // A sum is counted in vectors.
        for (int32_t i = 0; i < data_width(); ++i) n += y[i] != y[i];
        return n > 0;
    }
    void add(double *s, int64_t stride, const double *y) const final {
        if (!is_missing(y)) add_predicted(s, stride, y);
    }
    double add_predicted(double *s, int64_t stride, const double *y) const final {
        return add_row(s, stride, y, scratch_.data());
    }
    bool remove(double *s, int64_t stride, const double *y) const final {
        double lp;
        return is_missing(y) || remove_predicted(s, stride, y, &lp);
    }
    bool remove_predicted(double *s, int64_t stride, const double *y, double *lp) const final {
        if (s[0] != 1.0) return remove_row(s, stride, y, lp);
        reset(s, stride);
        *lp = log_predictive(s, stride, y);
        return true;
    }
    void add_sums(const double *values, const int64_t *steps, int64_t n,
                  double *sums) const final {
        std::vector<double> z(side_of_sums(data_width() + 1));
        for (int64_t r = 0; r < n; ++r) {
            centre(values + steps[r] * row_width(), z.data());
            add_products(data_width() + 1, z.data(), sums);
        }
    }
    void add_rows(double *s, int64_t stride, const double *values, const int64_t *steps, int64_t n,
                  const double *sums) const final {
        std::vector<double> A(n_sums), inverse(data_width() + 1), scratch(scratch_.size());
        if (n >= kFewRowsToSum && dof_ <= kMostDof
            && invert_factor(data_width() + 1, prior_sums_.data(), sums, A.data(), inverse.data())) {
            s[0] += static_cast<double>(n);
            take_factors(s, stride, A.data(), inverse.data());
            return;
        }
        for (int64_t r = 0; r < n; ++r)
            add_row(s, stride, values + steps[r] * row_width(), scratch.data());
    }

  protected:
    explicit MatrixFamily(const FamilySetting &setting)
        : dof_(setting.constant), centre_(setting.units, setting.units + setting.n_columns) {
        const int32_t d = n_columns = setting.n_columns;
        n_inputs = setting.n_inputs;
        n_given = setting.n_given;
        is_concurrent = true;
        n_expected = (n_inputs + 1) * d + d * d;
        parameter_width = (n_inputs + 1) * d + d * (d + 1) / 2 + 1;
        n_sums = (data_width() + 1) * side_of_sums(data_width() + 1);
        prior_sums_.resize(n_sums);
        std::copy_n(setting.is_drawn, 3, is_drawn_);
        draws_hyperparameters = is_drawn_[0] || is_drawn_[1] || is_drawn_[2];
        // (dof_n + 1) / 2 and (dof_n + 1 - d) / 2 are d / 2 apart.
        ratio_.configure((dof_ + 1.0 - d) / 2.0, 0.5, d / 2.0, setting.n_steps);
    }
    // As add_predicted and remove_predicted, where other rows remain.
    virtual double add_row(double *s, int64_t stride, const double *y, double *scratch) const = 0;
    virtual bool remove_row(double *s, int64_t stride, const double *y, double *lp) const = 0;
    // Set z to that of a row, and zeros.
    virtual void centre(const double *y, double *z) const = 0;
    // Set all but the number of rows by what invert_factor has found.
    virtual void take_factors(double *s, int64_t stride, const double *A,
                              const double *inverse) const = 0;

    const double dof_;
    double log_det_ = 0.0;                  // of the prior scale
    int32_t is_drawn_[3];
    std::vector<double> centre_;            // of the columns of the data
    std::vector<double> prior_, prior_sums_;    // the factors of S_0; its lower triangle
    RisingTable ratio_;
    mutable std::vector<double> scratch_;   // of add_row; a family belongs to one thread
};

}  // namespace skihmm
