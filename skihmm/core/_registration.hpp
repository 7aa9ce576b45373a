// Expectations of hidden Markov models with diagonal Gaussians, for many short sequences at once.
#pragma once
#include <algorithm>
#include <cstdint>

#include "_math.hpp"
#include "_platform.hpp"

namespace skihmm {

// Eight subjects at once: the last dimension of arrays has one number per subject, side by side.
typedef double Lanes SKIHMM_VECTOR(8);
constexpr int32_t kLanes = sizeof(Lanes) / sizeof(double);
constexpr int32_t kMostShared = 6;  // states

// Rows and the HMM.  The log density of a row is sum_c is_there (height - (value scale - centre)^2);
// where a subject has no more rows there are steps that follow none, and no values.
struct LaneHMM {
    int64_t n_steps;
    int32_t n_states, n_columns;
    const double *values;                   // (n_steps, n_columns)
    const double *is_there;                 // (n_steps, n_columns): 0 or 1; if 0 the value is 0
    const double *follows;                  // (n_steps): 0 or 1; follows the row before
    const double *scales, *centres;         // (n_states, n_columns)
    // (n_states, n_columns), (n_states, n_states), without lanes.
    const double *heights, *transitions;
};

static SKIHMM_INLINE const Lanes *lanes(const double *x) {
    return reinterpret_cast<const Lanes *>(x);
}
static SKIHMM_INLINE Lanes *lanes(double *x) { return reinterpret_cast<Lanes *>(x); }

// Log likelihoods, and in `kept`, (n_steps, 2, n_states), unless it is NULL, the predicted and the
// filtered probabilities of states.
SKIHMM_CLONES static void run_forward(LaneHMM hmm, double *kept, double *log_likelihoods) {
    const int32_t n_states = hmm.n_states, n_columns = hmm.n_columns;
    const Lanes *value = lanes(hmm.values), *is_there = lanes(hmm.is_there);
    Lanes now[kMostShared] = {}, found = {};
    for (int64_t t = 0; t < hmm.n_steps; ++t, value += n_columns, is_there += n_columns) {
        Lanes log_p[kMostShared], p[kMostShared], top = Lanes{} - 1e300, total = {};
        const Lanes *scale = lanes(hmm.scales), *centre = lanes(hmm.centres);
        const double *height = hmm.heights;
        for (int32_t k = 0; k < n_states; ++k) {
            log_p[k] = Lanes{};
            for (int32_t c = 0; c < n_columns; ++c) {
                const Lanes z = value[c] * *scale++ - *centre++;
                log_p[k] += (*height++ - z * z) * is_there[c];
            }
            top = log_p[k] > top ? log_p[k] : top;
        }
        for (int32_t k = 0; k < n_states; ++k) {
            const Lanes x = log_p[k] - top;
            const double *logs = reinterpret_cast<const double *>(&x);
            double *out = reinterpret_cast<double *>(&p[k]);
            for (int32_t l = 0; l < kLanes; ++l)
                out[l] = exp_of(logs[l] > kLeastLog ? logs[l] : kLeastLog);
        }
        for (int32_t k = 0; k < n_states; ++k) {
            Lanes ahead = {};
            for (int32_t j = 0; j < n_states; ++j)
                ahead += now[j] * hmm.transitions[j * n_states + k];
            ahead = 1.0 / n_states + lanes(hmm.follows)[t] * (ahead - 1.0 / n_states);
            if (kept != nullptr) lanes(kept)[2 * t * n_states + k] = ahead;
            p[k] *= ahead;
            total += p[k];
        }
        for (int32_t k = 0; k < n_states; ++k) now[k] = p[k] / total;
        if (kept != nullptr) std::copy_n(now, n_states, lanes(kept) + (2 * t + 1) * n_states);
        double *totals = reinterpret_cast<double *>(&total);
        for (int32_t l = 0; l < kLanes; ++l) totals[l] = log_of(totals[l]);
        found += top + total;
    }
    *lanes(log_likelihoods) = found;
}

// Add sums over rows, by smoothed probabilities of states, to counts, sums of values and of their
// squares (n_states, n_columns), and counts of transitions (n_states, n_states).  The smoothed
// probability of state j is the filtered probability times
// sum_k a_jk (smoothed of k one step later) / (predicted of k one step later).
SKIHMM_CLONES static void run_backward(LaneHMM hmm, const double *kept, double *counts,
                                       double *sums, double *squares, double *pairs) {
    const int32_t n_states = hmm.n_states, n_columns = hmm.n_columns;
    Lanes ratio[kMostShared] = {}, follows = {};
    for (int64_t t = hmm.n_steps - 1; t >= 0; --t) {
        const Lanes *value = lanes(hmm.values) + t * n_columns;
        const Lanes *is_there = lanes(hmm.is_there) + t * n_columns;
        const Lanes *ahead = lanes(kept) + 2 * t * n_states, *filtered = ahead + n_states;
        Lanes *count = lanes(counts), *sum = lanes(sums), *square = lanes(squares);
        Lanes *pair = lanes(pairs);
        Lanes smoothed[kMostShared];
        for (int32_t j = 0; j < n_states; ++j) {
            Lanes later = 1.0 - follows;
            for (int32_t k = 0; k < n_states; ++k) {
                const Lanes change = hmm.transitions[j * n_states + k] * ratio[k];
                later += change;
                *pair++ += filtered[j] * change;
            }
            smoothed[j] = filtered[j] * later;
            for (int32_t c = 0; c < n_columns; ++c) {
                const Lanes part = smoothed[j] * value[c];
                *count++ += smoothed[j] * is_there[c];
                *sum++ += part;
                *square++ += part * value[c];
            }
        }
        follows = lanes(hmm.follows)[t];
        for (int32_t k = 0; k < n_states; ++k) ratio[k] = smoothed[k] / ahead[k] * follows;
    }
}

}  // namespace skihmm
