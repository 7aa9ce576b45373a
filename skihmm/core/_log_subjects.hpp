// Expectations of hidden Markov models of regressions that subjects share, whose linear predictors
// have an offset of every subject.
//
// The log likelihood of an observation is kappa psi - b log(2 cosh(psi / 2)) up to a constant, with
// psi = x^T beta + given + offset - log r, b = base + r and kappa = y - b / 2: counts have base = y,
// others base = the number of trials, and r = 0 in b and log r = 0.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "_math.hpp"
#include "_platform.hpp"

namespace skihmm {

constexpr int32_t kMostRegressed = 6;   // states
constexpr int32_t kBlock = 8;           // rows side by side

// Rows of subject u are those from first[u] on, as many blocks as are needed: the last ones say
// nothing.  Numbers of all rows come one after the other.
struct RegressedRows {
    int64_t n;
    int32_t n_columns, n_coefficients;
    int64_t n_subjects, n_sequences;
    const double *y, *base, *seen, *given;  // (n_columns, n); 0 where there is no value
    const double *x;                        // (n_coefficients, n), the last ones are 1
    const int64_t *first;                   // (n_subjects + 1)
    const int64_t *begins, *ends, *owners;  // (n_sequences): rows, and the subject
};
struct RegressedStates {
    int32_t n_states;
    const double *coefficients;             // (n_columns, n_states, n_coefficients)
    const double *r, *log_r;                // (n_columns)
    const double *offsets;                  // (n_subjects, n_columns)
    const double *transitions;              // (n_states, n_states)
};

static SKIHMM_INLINE void fill_psi(const RegressedRows &rows, const RegressedStates &states,
                                   int32_t c, int32_t k, int64_t u, int64_t t, double *psi) {
    const double *beta = states.coefficients
                         + (static_cast<int64_t>(c) * states.n_states + k) * rows.n_coefficients;
    const double shift = states.offsets[u * rows.n_columns + c] - states.log_r[c];
    const double *given = rows.given + c * rows.n + t;
    for (int32_t l = 0; l < kBlock; ++l) psi[l] = given[l] + shift;
    for (int32_t a = 0; a < rows.n_coefficients; ++a) {
        const double *x = rows.x + a * rows.n + t;
        for (int32_t l = 0; l < kBlock; ++l) psi[l] += x[l] * beta[a];
    }
}
static SKIHMM_INLINE double exp_of_minus(double size) {
    return exp_of(std::max(-size, -700.0));
}
// Of a block, for column c: likelihoods are added to `out`.
static SKIHMM_INLINE void add_logs(const RegressedRows &rows, double r, int32_t c, int64_t t,
                                   const double *psi, double *out) {
    const double *y = rows.y + c * rows.n + t, *base = rows.base + c * rows.n + t;
    const double *seen = rows.seen + c * rows.n + t;
    for (int32_t l = 0; l < kBlock; ++l) {
        const double b = base[l] + r * seen[l], size = std::fabs(psi[l]);
        out[l] += (y[l] - 0.5 * b) * psi[l] - b * (0.5 * size + log1p_of(exp_of_minus(size)));
    }
}
static SKIHMM_INLINE void fill_slopes(const RegressedRows &rows, double r, int32_t c, int64_t t,
                                      const double *psi, double *slopes, double *curvatures) {
    const double *y = rows.y + c * rows.n + t, *base = rows.base + c * rows.n + t;
    const double *seen = rows.seen + c * rows.n + t;
    for (int32_t l = 0; l < kBlock; ++l) {
        const double b = base[l] + r * seen[l], e = exp_of_minus(std::fabs(psi[l]));
        const double one = 1.0 / (1.0 + e);
        slopes[l] = y[l] - 0.5 * b - 0.5 * b * std::copysign((1.0 - e) * one, psi[l]);
        curvatures[l] = b * e * one * one;
    }
}

// probs[t * n_states + k]: likelihoods of rows over the largest one of each row; tops: its logarithm.
SKIHMM_CLONES static void fill_likelihoods(RegressedRows rows, RegressedStates states,
                                           double *probs, double *tops) {
    const int32_t n_states = states.n_states;
    for (int64_t u = 0; u < rows.n_subjects; ++u)
        for (int64_t t = rows.first[u]; t < rows.first[u + 1]; t += kBlock) {
            double logs[kMostRegressed][kBlock] = {}, top[kBlock], psi[kBlock];
            for (int32_t k = 0; k < n_states; ++k)
                for (int32_t c = 0; c < rows.n_columns; ++c) {
                    fill_psi(rows, states, c, k, u, t, psi);
                    add_logs(rows, states.r[c], c, t, psi, logs[k]);
                }
            std::copy_n(logs[0], kBlock, top);
            for (int32_t k = 1; k < n_states; ++k)
                for (int32_t l = 0; l < kBlock; ++l) top[l] = std::max(top[l], logs[k][l]);
            for (int32_t k = 0; k < n_states; ++k) {
                for (int32_t l = 0; l < kBlock; ++l)
                    logs[k][l] = exp_of(std::max(logs[k][l] - top[l], kLeastLog));
                for (int32_t l = 0; l < kBlock; ++l) probs[(t + l) * n_states + k] = logs[k][l];
            }
            std::copy_n(top, kBlock, tops + t);
        }
}
// Passes over rows with n states, a constant for which loops over states have no branches.
template <int32_t n>
struct Passes {
    static void filter(const RegressedRows &rows, const double *transitions, double *probs,
                       const double *tops, double *predicted, double *log_likelihoods) {
        constexpr double kSmall = 1e-100;
        for (int64_t s = 0; s < rows.n_sequences; ++s) {
            double product = 1.0, sum = 0.0, ahead[n];
            std::fill_n(ahead, n, 1.0 / n);
            for (int64_t t = rows.begins[s]; t < rows.ends[s]; ++t) {
                double *p = probs + t * n, total = 0.0, next[n] = {};
                if (predicted) std::copy_n(ahead, n, predicted + t * n);
                for (int32_t k = 0; k < n; ++k) {
                    p[k] *= ahead[k];
                    total += p[k];
                }
                const double share = 1.0 / total;
                for (int32_t j = 0; j < n; ++j) {
                    const double now = p[j] *= share;
                    for (int32_t k = 0; k < n; ++k) next[k] += now * transitions[j * n + k];
                }
                std::copy_n(next, n, ahead);
                sum += tops[t];
                product *= total;
                if (product < kSmall) {
                    sum += std::log(product);
                    product = 1.0;
                }
            }
            log_likelihoods[rows.owners[s]] += sum + std::log(product);
        }
    }
    static void smooth(const RegressedRows &rows, const double *transitions, const double *probs,
                       const double *predicted, double *smoothed, double *pairs) {
        double counts[n][n] = {};
        for (int64_t s = 0; s < rows.n_sequences; ++s) {
            double ratio[n];
            for (int64_t t = rows.ends[s]; t-- > rows.begins[s];) {
                const double *p = probs + t * n, *ahead = predicted + t * n;
                const bool is_last = t + 1 == rows.ends[s];
                double now[n];
                for (int32_t j = 0; j < n; ++j) {
                    double later = 0.0;
                    for (int32_t k = 0; k < n && !is_last; ++k) {
                        const double change = transitions[j * n + k] * ratio[k];
                        later += change;
                        counts[j][k] += p[j] * change;
                    }
                    now[j] = is_last ? p[j] : p[j] * later;
                    smoothed[j * rows.n + t] = now[j];
                }
                for (int32_t k = 0; k < n; ++k) ratio[k] = now[k] / ahead[k];
            }
        }
        for (int32_t j = 0; j < n; ++j)
            for (int32_t k = 0; k < n; ++k) pairs[j * n + k] += counts[j][k];
    }
};
// call(Passes<n>()) for a number of states.
template <int32_t n = 1, class Call>
void with_passes(int32_t n_states, const Call &call) {
    if (n_states == n) call(Passes<n>());
    else if constexpr (n < kMostRegressed) with_passes<n + 1>(n_states, call);
}
// The forward pass: likelihoods become filtered probabilities, and log_likelihoods, by subject, are
// added to.  `predicted`, of the same shape, may be NULL.
inline void filter_rows(const RegressedRows &rows, const RegressedStates &states, double *probs,
                        const double *tops, double *predicted, double *log_likelihoods) {
    with_passes(states.n_states, [&](auto passes) {
        passes.filter(rows, states.transitions, probs, tops, predicted, log_likelihoods);
    });
}
// Smoothed probabilities, (n_states, n), 0 where there is no row, from filtered and predicted ones,
// and expected numbers of transitions, which are added to.
inline void smooth_rows(const RegressedRows &rows, const RegressedStates &states,
                        const double *probs, const double *predicted, double *smoothed,
                        double *pairs) {
    with_passes(states.n_states, [&](auto passes) {
        passes.smooth(rows, states.transitions, probs, predicted, smoothed, pairs);
    });
}

// Of the log likelihood of column c, weighted by smoothed probabilities: derivative by the
// coefficients of every state, (n_states, q), and minus the second one, lower triangles.
SKIHMM_CLONES static void sum_states(RegressedRows rows, RegressedStates states, int32_t c,
                                     const double *smoothed, double *slopes, double *curvatures) {
    constexpr int32_t kMostTogether = 8;
    const int32_t q = rows.n_coefficients, n_products = q * (q + 1) / 2;
    for (int32_t k = 0; k < states.n_states; ++k, slopes += q, curvatures += n_products) {
        std::fill_n(slopes, q, 0.0);
        std::fill_n(curvatures, n_products, 0.0);
        // Sums of lanes, of so many coefficients at once.
        double slope[kMostTogether][kBlock] = {};
        double products[kMostTogether * (kMostTogether + 1) / 2][kBlock] = {};
        const bool is_small = q <= kMostTogether;
        for (int64_t u = 0; u < rows.n_subjects; ++u)
            for (int64_t t = rows.first[u]; t < rows.first[u + 1]; t += kBlock) {
                double psi[kBlock], first[kBlock], second[kBlock];
                const double *p = smoothed + k * rows.n + t;
                fill_psi(rows, states, c, k, u, t, psi);
                fill_slopes(rows, states.r[c], c, t, psi, first, second);
                for (int32_t l = 0; l < kBlock; ++l) {
                    first[l] *= p[l];
                    second[l] *= p[l];
                }
                for (int32_t a = 0, at = 0; a < q; ++a) {
                    const double *x = rows.x + a * rows.n + t;
                    double weighted[kBlock];
                    for (int32_t l = 0; l < kBlock; ++l) weighted[l] = second[l] * x[l];
                    if (!is_small) {
                        for (int32_t l = 0; l < kBlock; ++l) slopes[a] += first[l] * x[l];
                        for (int32_t b = 0; b <= a; ++b, ++at) {
                            const double *z = rows.x + b * rows.n + t;
                            for (int32_t l = 0; l < kBlock; ++l)
                                curvatures[at] += weighted[l] * z[l];
                        }
                        continue;
                    }
                    for (int32_t l = 0; l < kBlock; ++l) slope[a][l] += first[l] * x[l];
                    for (int32_t b = 0; b <= a; ++b, ++at) {
                        const double *z = rows.x + b * rows.n + t;
                        for (int32_t l = 0; l < kBlock; ++l) products[at][l] += weighted[l] * z[l];
                    }
                }
            }
        for (int32_t l = 0; l < kBlock && is_small; ++l) {
            for (int32_t a = 0; a < q; ++a) slopes[a] += slope[a][l];
            for (int32_t at = 0; at < n_products; ++at) curvatures[at] += products[at][l];
        }
    }
}
// The same by the offset of every subject.
SKIHMM_CLONES static void sum_subjects(RegressedRows rows, RegressedStates states, int32_t c,
                                       const double *smoothed, double *slopes,
                                       double *curvatures) {
    for (int64_t u = 0; u < rows.n_subjects; ++u) {
        double slope[kBlock] = {}, curvature[kBlock] = {};
        for (int64_t t = rows.first[u]; t < rows.first[u + 1]; t += kBlock)
            for (int32_t k = 0; k < states.n_states; ++k) {
                double psi[kBlock], first[kBlock], second[kBlock];
                const double *p = smoothed + k * rows.n + t;
                fill_psi(rows, states, c, k, u, t, psi);
                fill_slopes(rows, states.r[c], c, t, psi, first, second);
                for (int32_t l = 0; l < kBlock; ++l) {
                    slope[l] += first[l] * p[l];
                    curvature[l] += second[l] * p[l];
                }
            }
        slopes[u] = curvatures[u] = 0.0;
        for (int32_t l = 0; l < kBlock; ++l) {
            slopes[u] += slope[l];
            curvatures[u] += curvature[l];
        }
    }
}
// The log likelihood of column c, weighted by smoothed probabilities.
SKIHMM_CLONES static double sum_likelihoods(RegressedRows rows, RegressedStates states, int32_t c,
                                            const double *smoothed) {
    double sums[kBlock] = {}, total = 0.0;
    for (int64_t u = 0; u < rows.n_subjects; ++u)
        for (int64_t t = rows.first[u]; t < rows.first[u + 1]; t += kBlock)
            for (int32_t k = 0; k < states.n_states; ++k) {
                double psi[kBlock], logs[kBlock] = {};
                const double *p = smoothed + k * rows.n + t;
                fill_psi(rows, states, c, k, u, t, psi);
                add_logs(rows, states.r[c], c, t, psi, logs);
                for (int32_t l = 0; l < kBlock; ++l) sums[l] += logs[l] * p[l];
            }
    for (const double sum : sums) total += sum;
    return total;
}

}  // namespace skihmm
