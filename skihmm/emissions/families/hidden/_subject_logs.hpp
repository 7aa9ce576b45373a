// Offsets of subjects on linear predictors, log rates or log odds, common to all states.  They are
// added to what is given of a row: its last n_offsets inputs are the offsets of its subject.
//
// They are drawn given the coefficients of the states with the weights of rows integrated out, and
// all weights are drawn afterwards: given weights the offsets of near-Poisson counts hardly move
// (lag-1 autocorrelation .86, here .3).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "_family.hpp"
#include "_hidden.hpp"
#include "_math.hpp"
#include "_platform.hpp"
#include "_random.hpp"
#include "_subject_offsets.hpp"

namespace skihmm {

// What rows say of a linear predictor, side by side (LogisticRow): the sums over them are those of
// eight lanes, so that all processors give the same bits.
struct LogisticRows {
    static constexpr int32_t kLanes = 8;
    std::vector<double> kappa, b, psi;

    // Rows of zeros say nothing.
    void resize(int64_t n) {
        for (auto *numbers : {&kappa, &b, &psi}) numbers->assign(n, 0.0);
    }
};
// Derivative, and minus the second one, of the log likelihood of rows `from` to `to`, whole lanes,
// whose psi are moved.
SKIHMM_CLONES static void add_slopes(const double *kappa, const double *b, const double *psi,
                                     int64_t n, double move, double *slope, double *curvature) {
    constexpr int32_t kLanes = LogisticRows::kLanes;
    double slopes[kLanes] = {}, curvatures[kLanes] = {};
    for (int64_t t = 0; t < n; t += kLanes)
        for (int32_t l = 0; l < kLanes; ++l) {
            const double x = psi[t + l] + move;
            const double e = exp_of(std::max(-std::fabs(x), -700.0)), one = 1.0 / (1.0 + e);
            slopes[l] += kappa[t + l] - 0.5 * b[t + l] * std::copysign((1.0 - e) * one, x);
            curvatures[l] += b[t + l] * e * one * one;
        }
    for (int32_t l = 0; l < kLanes; ++l) {
        *slope += slopes[l];
        *curvature += curvatures[l];
    }
}
// The log likelihood itself.
SKIHMM_CLONES static double sum_logs(const double *kappa, const double *b, const double *psi,
                                     int64_t n, double move) {
    constexpr int32_t kLanes = LogisticRows::kLanes;
    double sums[kLanes] = {}, total = 0.0;
    for (int64_t t = 0; t < n; t += kLanes)
        for (int32_t l = 0; l < kLanes; ++l) {
            const double x = psi[t + l] + move, size = std::fabs(x);
            const double e = exp_of(std::max(-size, -700.0));
            sums[l] += kappa[t + l] * x - b[t + l] * (0.5 * size + log1p_of(e));
        }
    for (const double sum : sums) total += sum;
    return total;
}

class SubjectLogs final : public SubjectOffsets, public Shifts {
  public:
    SubjectLogs(const Rows &rows, int32_t n_offsets, std::vector<int32_t> codes, int32_t n_fitted,
                const double *variances)
        : SubjectOffsets(std::move(codes), n_fitted, n_offsets, 1, variances), rows_(rows),
          order_(rows.n) {
        std::iota(order_.begin(), order_.end(), int64_t{0});
        std::stable_sort(order_.begin(), order_.end(),
                         [this](int64_t a, int64_t b) { return codes_[a] < codes_[b]; });
    }
    // The offsets of the fit are drawn with the hyperparameters of the family (draw_shifts).
    bool is_drawn_alone() const override { return has_new(); }
    // Every subject but one, if their number is odd, is twice in a pair.
    void draw_shifts(const RowReader &read, bitgen_t *g) override {
        if (n_subjects_ < 2) return;
        for (int32_t c = 0; c < n_offsets_; ++c) {
            gather(c, read);
            for (int32_t round = 0; round < kRounds; ++round) {
                for (int32_t u = n_fitted_; u < n_subjects_; ++u) draw_new(u, c, g);
                if (!has_new()) draw_pairs(c, g);
            }
        }
        if (!has_new())
            draw_variance(g, offset(0, 0), variances_.data(), variance(0), scale(0));
        spread();
    }

    void shift_inputs(int32_t u, double *row) const override {
        double *out = row + rows_.n_entries - n_offsets_;
        if (u >= 0) std::copy_n(offset(u, 0), n_offsets_, out);
        else std::fill_n(out, n_offsets_, 0.0);
    }

  private:
    static constexpr int32_t kRounds = 2;
    // Of Student's t about the mode, from which an offset is proposed.
    static constexpr double kDof = 5.0;
    // To the mode: longest step, steps, and the step that ends them, in standard deviations.
    static constexpr double kLongest = 1.5, kShortest = 0.01;
    static constexpr int32_t kMostSteps = 20;
    // Counts up to 1e12, as in data.
    static constexpr double kMostLogMean = 27.6;

    // Where an offset is proposed.
    struct Peak { double mode, deviation; };

    void spread() override {
        for (int64_t t = 0; t < rows_.n; ++t)
            shift_inputs(subject_of_row(t), rows_.values + t * rows_.width);
    }
    // The rows of column c by subject, their psi less the offsets; and by subject what counts alone
    // say of the logarithm of its rate (0 for others).
    void gather(int32_t c, const RowReader &read) {
        starts_.assign(1, 0);
        guesses_.clear();
        every_.resize(rows_.n + LogisticRows::kLanes * static_cast<int64_t>(n_subjects_));
        int64_t at = 0, next = 0;
        const auto is_before = [this](int64_t i, int32_t u) {
            return i < rows_.n && codes_[order_[i]] < u;
        };
        while (is_before(next, 0)) ++next;
        for (int32_t u = 0; u < n_subjects_; ++u) {
            double sum = 0.5, expected = 0.5;
            for (; is_before(next, u + 1); ++next) {
                LogisticRow row;
                if (!read(order_[next], c, &row)) continue;
                every_.kappa[at] = row.kappa;
                every_.b[at] = row.b;
                every_.psi[at++] = row.psi - *offset(u, c);  // planted: predictor of an offset
                sum += row.kappa + 0.5 * row.b;
                expected += std::exp(std::min(row.log_mean - *offset(u, c), kMostLogMean));
            }
            while (at % LogisticRows::kLanes) ++at;
            starts_.push_back(at);
            guesses_.push_back(std::isnan(expected) ? 0.0 : std::log(sum / expected));
        }
    }
    void add_slopes_of(int32_t u, double move, double *slope, double *curvature) const {
        const int64_t from = starts_[u];
        add_slopes(&every_.kappa[from], &every_.b[from], &every_.psi[from], starts_[u + 1] - from,
                   move, slope, curvature);
    }
    double log_rows(int32_t u, double b) const {
        const int64_t from = starts_[u];
        return sum_logs(&every_.kappa[from], &every_.b[from], &every_.psi[from],
                        starts_[u + 1] - from, b);
    }
    // By Newton's method from x: slopes(x, &slope, &curvature) are those of a concave log density.
    template <class Slopes>
    static Peak find_peak(double x, const Slopes &slopes) {
        Peak peak{x, 1.0};
        for (int32_t i = 0; i < kMostSteps; ++i) {
            double slope, curvature;
            slopes(peak.mode, &slope, &curvature);
            const double step = std::clamp(slope / curvature, -kLongest, kLongest);
            peak.deviation = 1.0 / std::sqrt(curvature);
            peak.mode += step;
            if (std::fabs(step) < kShortest * peak.deviation) break;
        }
        return peak;
    }
    // A move from x that leaves exp(log_p) as it is.
    template <class LogDensity>
    static double propose(double x, const Peak &peak, const LogDensity &log_p, bitgen_t *g) {
        const auto log_t = [](double e) {
            return -0.5 * (kDof + 1.0) * std::log1p(e * e / kDof);
        };
        const double normal = random_standard_normal(g);
        const double e = normal / std::sqrt(2.0 * random_standard_gamma(g, 0.5 * kDof) / kDof);
        const double proposed = peak.mode + peak.deviation * e;
        // planted: ratio of an offset
        const double ratio = log_t((x - peak.mode) / peak.deviation) - log_t(e);
        const double log_ratio = log_p(proposed) - log_p(x) + ratio;
        return std::log(uniform(g)) < log_ratio ? proposed : x;
    }
    // (b_u - b_v) / 2 of random pairs; the mean of a pair stays.
    void draw_pairs(int32_t c, bitgen_t *g) {
        std::vector<int32_t> perm(n_subjects_);
        std::iota(perm.begin(), perm.end(), 0);
        for (int32_t i = n_subjects_ - 1; i > 0; --i)
            std::swap(perm[i], perm[below(g, i + 1)]);
        const double precision = 1.0 / *variance(c);  // planted: prior of log offsets
        for (int32_t i = 0; i + 1 < n_subjects_; i += 2) {
            const int32_t u = perm[i], v = perm[i + 1];
            const double mean = 0.5 * (*offset(u, c) + *offset(v, c));
            const double x = 0.5 * (*offset(u, c) - *offset(v, c));
            const Peak peak = find_peak(
                0.5 * (guesses_[u] - guesses_[v]), [&](double z, double *slope, double *curvature) {
                    double other = 0.0;
                    *slope = *curvature = 0.0;
                    add_slopes_of(u, mean + z, slope, curvature);
                    add_slopes_of(v, mean - z, &other, curvature);
                    *slope -= other + 2.0 * precision * z;
                    *curvature += 2.0 * precision;
                });
            const double drawn = propose(x, peak, [&](double z) {
                return log_rows(u, mean + z) + log_rows(v, mean - z)
                       - precision * (mean * mean + z * z);
            }, g);
            *offset(u, c) = mean + drawn;
            *offset(v, c) = mean - drawn;
        }
    }
    void draw_new(int32_t u, int32_t c, bitgen_t *g) {
        const double precision = 1.0 / new_variance(c);
        const Peak peak =
            find_peak(guesses_[u], [&](double b, double *slope, double *curvature) {
                *slope = *curvature = 0.0;
                add_slopes_of(u, b, slope, curvature);
                *slope -= precision * b;
                *curvature += precision;
            });
        *offset(u, c) = propose(
            *offset(u, c), peak,
            [&](double b) { return log_rows(u, b) - 0.5 * precision * b * b; }, g);
    }

    Rows rows_;
    std::vector<int64_t> order_;    // rows by subject
    // Of one column: rows by subject, where those of each begin, guesses of offsets.
    LogisticRows every_;
    std::vector<int64_t> starts_;
    std::vector<double> guesses_;
};

}  // namespace skihmm
