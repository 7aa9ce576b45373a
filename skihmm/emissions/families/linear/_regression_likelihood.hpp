// What an observation says of the linear predictor psi of a logistic or negative binomial
// regression (_logistic_family.hpp).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_family_setting.hpp"
#include "_linear_algebra.hpp"
#include "_math.hpp"
#include "_polya_gamma.hpp"
#include "_random.hpp"

namespace skihmm {

// Kinds of observations:
//   0, 1:                             b = 1
//   successes of `trials` trials:     b = trials
//   counts of mean exposure e^(x^T beta), negative binomial with 1 / r = dispersion:
//                                     b = y + r, offset = log exposure - log r
//   choices 0, 1, ...:                b = 1
// and kappa = y - b / 2 for all of them.  Trials, or log exposure, are the last input but shifts,
// one of every term if there are any, which are added to its offset.
enum class Regression { kBinary, kBinomial, kCounts, kChoices };

// A row's part in a term; kappa is kappa' if the weight is known.
struct Term {
    double b, kappa, shift, omega;
    bool operator==(const Term &other) const {
        return b == other.b && kappa == other.kappa && shift == other.shift
               && omega == other.omega;
    }
};

class RegressionLikelihood {
  public:
    const Regression kind;
    const int32_t n_columns, n_inputs, n_shifts;
    const bool has_given;               // trials, or exposures
    const int32_t n_terms;
    std::vector<double> dispersion;     // of counts, by term

    RegressionLikelihood(Regression kind_of_values, const FamilySetting &setting)
        : kind(kind_of_values), n_columns(setting.n_columns), n_inputs(setting.n_inputs),
          n_shifts(setting.n_shifts),
          has_given(kind == Regression::kBinomial || setting.has_exposure > 0),
          n_terms(kind == Regression::kChoices ? setting.n_options - 1 : n_columns),
          dispersion(n_terms, 1.0) {}
    bool is_counts() const { return kind == Regression::kCounts; }
    bool is_missing(const double *y) const {
        const auto is_nan = [](double v) { return std::isnan(v); };
        return std::all_of(y, y + n_columns, is_nan)
               || std::any_of(y + n_columns, y + n_columns + n_inputs, is_nan);
    }
    double given(const double *y) const { return y[n_columns + n_inputs - n_shifts - 1]; }
    double shift(const double *y, int32_t i) const {
        return n_shifts > 0 ? y[n_columns + n_inputs - n_shifts + i] : 0.0;
    }
    // What is added to the linear predictor of a row, of counts to the logarithm of their mean.
    double log_given(const double *y, int32_t i) const {
        return (is_counts() && has_given ? given(y) : 0.0) + shift(y, i);
    }
    double filled_given(const double *y, int32_t i) const {
        const double log = is_counts() && has_given ? given(y) : 0.0;
        return (std::isnan(log) ? 0.0 : log) + shift(y, i);
    }
    double value_of(const double *y, int32_t i) const {
        if (kind != Regression::kChoices) return y[i];
        // (NaN too.)
        return y[0] >= i ? static_cast<double>(y[0] == i) : NAN;
    }
    double *weight_of(double *y, int32_t i) const { return y + n_columns + n_inputs + i; }
    bool read_term(const double *y, int32_t i, Term *term) const {
        if (!read_unweighted(y, i, term)) return false;
        term->omega = y[n_columns + n_inputs + i];
        // planted: offset in kappa
        if (!std::isnan(term->omega)) term->kappa -= term->omega * term->shift;
        return true;
    }
    // The same with kappa, whatever the weight is, which is not read.
    bool read_unweighted(const double *y, int32_t i, Term *term) const {
        const double value = value_of(y, i);
        if (std::isnan(value)) return false;  // planted: missing value
        term->b = 1.0;
        term->shift = log_given(y, i);
        if (kind == Regression::kBinomial) term->b = given(y);
        if (is_counts()) {
            term->b = value + 1.0 / dispersion[i];
            term->shift += std::log(dispersion[i]);
        }
        term->kappa = value - 0.5 * term->b;  // planted: kappa
        return true;
    }
    // log of what the probability of y has besides exp(kappa psi) / (2 cosh(psi / 2))^b.
    double log_factor(const double *y, int32_t i) const {
        if (kind == Regression::kBinomial) {
            const double n = given(y);
            return std::lgamma(n + 1.0) - std::lgamma(y[i] + 1.0) - std::lgamma(n - y[i] + 1.0);
        }
        return is_counts() ? log_rising(1.0 / dispersion[i], y[i]) - std::lgamma(y[i] + 1.0)
                           : 0.0;
    }
    // log of what the probability of (y, omega) has in common under all states.
    double constant(const double *y, int32_t i, const Term &term) const {
        return log_factor(y, i) - term.b * std::log(2.0)
               + term.shift * (term.kappa + 0.5 * term.omega * term.shift);
    }
    // Set the value of term i to a draw given x^T beta; true if that decides a choice.
    bool emit(int32_t i, double eta, double *y, bitgen_t *g) const {
        eta += filled_given(y, i);
        if (is_counts()) {
            const double r = 1.0 / dispersion[i];
            const double mean = std::exp(std::min(eta, kMostLogMean));
            y[i] = static_cast<double>(random_poisson(g, mean / r * random_standard_gamma(g, r)));
            return false;
        }
        const double one = 1.0 / (1.0 + std::exp(-eta));
        if (kind == Regression::kBinomial) {
            binomial_t scratch{};
            const bool has_trials = !std::isnan(given(y));
            y[i] = has_trials ? static_cast<double>(random_binomial(
                                    g, one, static_cast<int64_t>(given(y)), &scratch))
                              : NAN;
            return false;
        }
        const bool is_one = uniform(g) < one;
        y[kind == Regression::kBinary ? i : 0] = kind == Regression::kBinary ? is_one : i;
        return kind == Regression::kChoices && is_one;
    }
    // Counts up to 1e12, as in data.
    static constexpr double kMostLogMean = 27.6;
};

// log of the predictive probability of a row of known weight, but for what is the same for all
// states.
static SKIHMM_INLINE double log_weighted(double kappa, double omega, double mu, double variance) {
    const double growth = omega * variance;
    return -0.5 * log1p_of(growth)
           + (kappa * (mu + 0.5 * kappa * variance) - 0.5 * omega * mu * mu) / (1.0 + growth);
}
// Eight rows side by side: a missing one has a weight of zero.
constexpr int32_t kWeightedRows = 8;
struct WeightedRows {
    double kappa[kWeightedRows] = {}, omega[kWeightedRows] = {}, rest[kWeightedRows] = {};
    std::vector<Numbers<kWeightedRows>> x;  // x, and x x^T as C is kept.
};
// Their log predictive probabilities under n states, whose means of coefficients begin at
// s[k * stride] and are followed by C: out[k * kWeightedRows + row].
SKIHMM_CLONES static void fill_weighted_rows(int32_t n, int64_t stride, int32_t q,
                                             const WeightedRows &rows, const double *s,
                                             double *out) {
    const int32_t n_numbers = static_cast<int32_t>(rows.x.size());
    const Numbers<kWeightedRows> *x = rows.x.data();
    for (int32_t k = 0; k < n; ++k, s += stride, out += kWeightedRows) {
        auto mu = Numbers<kWeightedRows>::of(0.0), variance = mu;
        for (int32_t i = 0; i < q; ++i) mu.add(s[i], x[i]);
        for (int32_t i = q; i < n_numbers; ++i) variance.add(s[i], x[i]);
        const double *mus = mu.data(), *variances = variance.data();
        double lp[kWeightedRows];
        for (int32_t r = 0; r < kWeightedRows; ++r)
            lp[r] = rows.rest[r]
                    + log_weighted(rows.kappa[r], rows.omega[r], mus[r], variances[r]);
        std::copy_n(lp, kWeightedRows, out);
    }
}

// With the weight integrated out, and without log_factor; `mean` is that of psi.
inline double log_integral(const Term &term, double mean, double variance) {
    if (term.b == 1.0 && variance < kMostBinaryDeviation * kMostBinaryDeviation)
        return log_binary_integral(2.0 * term.kappa * mean, std::sqrt(variance));
    return LogisticIntegral(term.kappa, term.b, mean, variance).log();
}
inline double draw_psi(const Term &term, double mean, double variance, bitgen_t *g) {
    // Binary observations that are no surprise: by rejection.
    const double sign = 2.0 * term.kappa;
    if (term.b == 1.0 && sign * mean > -1.5 && variance < 1.0)
        for (;;) {
            const double psi = mean + std::sqrt(variance) * random_standard_normal(g);
            if (uniform(g) * (1.0 + std::exp(-sign * psi)) < 1.0) return psi;
        }
    return LogisticIntegral(term.kappa, term.b, mean, variance).draw(g);
}

}  // namespace skihmm
