// Student's t noise of d columns: normal noise whose covariance is divided by a weight w of its
// row, w ~ Gamma(dof / 2, dof / 2).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_family_setting.hpp"
#include "_random.hpp"

namespace skihmm {

// log_p[i] = base[i] - half log(L) - power log(1 + total w[i] / L), L = 1 + (leverage - 1) w[i].
SKIHMM_CLONES static void fill_weighted(int32_t n, const double *w, const double *base,
                                        double leverage, double total, double half, double power,
                                        double *log_p) {
    for (int32_t i = 0; i < n; ++i) {
        const double spread = 1.0 + (leverage - 1.0) * w[i];
        log_p[i] = base[i] - half * log_of(spread) - power * log1p_of(total * w[i] / spread);
    }
}

class StudentNoise {
  public:
    StudentNoise(int32_t n_columns, double dof) : half_(0.5 * n_columns) { set_dof(dof); }
    double dof() const { return dof_; }
    int32_t n_columns() const { return static_cast<int32_t>(2.0 * half_); }
    void set_dof(double dof) {
        dof_ = dof;
        norm_ = 0.5 * dof * std::log(0.5 * dof) - std::lgamma(0.5 * dof);
        // The integrands are at most as narrow as Gamma(shape) as a function of log w: with such a
        // step their error is below 1e-9.
        shape_ = 0.5 * dof + half_;
        log_ratio_ = std::lgamma(shape_) - std::lgamma(0.5 * dof) - half_ * std::log(0.5 * dof);
        step_ = std::min(0.35, 0.6 / std::sqrt(shape_));
        // From where the prior of w leaves nothing.
        top_ = std::log(2.0 * shape_ / dof);
        const auto depth = [&](double u) { return shape_ * u - 0.5 * dof * std::exp(u); };
        const double most = depth(top_);
        while (depth(top_) > most - kMostDepth) top_ += step_;
        w_.clear();
        base_.clear();
    }
    // log density of noise with squared length q, whitened, relative to normal noise of length
    // zero.
    double log_density(double q) const {
        return log_ratio_ - shape_ * log1p_of(q / dof_);
    }
    // The weight of such a row.
    double draw(double q, bitgen_t *g) const {
        // planted: weight given length
        return random_standard_gamma(g, shape_) / (0.5 * (dof_ + q));
    }
    // The weight of a row without observed values.
    double draw_free(bitgen_t *g) const {
        return random_standard_gamma(g, 0.5 * dof_) / (0.5 * dof_);
    }
    // One update of the degrees of freedom, given q of all rows; within bounds their prior is
    // Gamma(2, 1/10) (M. A. Juarez and M. F. J. Steel, "Model-based clustering of non-Gaussian
    // panel data based on skew-t distributions", Journal of Business and Economic Statistics 28,
    // 2010).
    void draw_dof(const std::vector<double> &q, bitgen_t *g) {
        const double n = static_cast<double>(q.size());  // planted: rows of the degrees of freedom
        set_dof(std::exp(draw_by_slice(
            g, std::log(dof_), std::log(kLeastDof), std::log(kMostDof), [&](double u) {
                const double dof = std::exp(u);
                LogProduct product;  // planted: likelihood of the degrees of freedom
                for (const double squares : q) product.multiply(squares / dof);
                return 2.0 * u - 0.1 * dof - (0.5 * dof + half_) * product.log()
                       + n * (std::lgamma(0.5 * dof + half_) - std::lgamma(0.5 * dof) - half_ * u);
            })));
    }
    // A predictive distribution with normal noise is leverage^(-d/2) (1 + total / leverage)^-power,
    // up to a factor; with a weight w, leverage - 1 and total are w times as large, and it is
    // w^(d/2) times as large.  Its integral over w.
    double log_integral(double leverage, double total, double power) const {
        double sum = 0.0;
        const double top = fill_nodes(leverage, total, power);
        for (const double lp : log_p_) sum += exp_of(std::max(lp - top, -700.0));
        return top + std::log(step_ * sum);
    }
    // Draw w from that integrand, by rejection: the integrand over exp(`base`) descends, and `base`
    // is concave in log w; so above every node the integrand is below its value there times the
    // exponential function along the tangent of `base`.
    double draw_weight(double leverage, double total, double power, bitgen_t *g) const {
        double sum = 0.0;
        const double top = fill_nodes(leverage, total, power);
        masses_.clear();
        for (size_t i = 0; i < log_p_.size(); ++i) {
            const double x = slope(i) * step_;
            masses_.push_back(std::exp(log_p_[i] - top) * (x == 0.0 ? 1.0 : std::expm1(x) / x));
            sum += masses_.back();
        }
        for (;;) {
            double rest = uniform(g) * sum, log_p = 0.0;
            size_t i = 0;
            while (i + 1 < masses_.size() && rest >= masses_[i]) rest -= masses_[i++];
            const double s = slope(i), growth = std::log1p(uniform(g) * std::expm1(s * step_));
            const double u = s == 0.0 ? uniform(g) * step_ : growth / s, w = w_[i] * std::exp(u);
            const double base = base_[i] + shape_ * u - 0.5 * dof_ * (w - w_[i]);
            fill_weighted(1, &w, &base, leverage, total, half_, power, &log_p);
            // (True for NaN too.)
            if (!(log_p - log_p_[i] - growth < std::log(uniform(g)))) return w;
        }
    }
    static bool is_possible(double dof) { return dof >= kLeastDof && dof <= kMostDof; }

  private:
    static constexpr int32_t kNodes = 16, kMostNodes = 1 << 14;
    static constexpr double kMostDepth = 21.0, kLeastDof = 1.0, kMostDof = 1e3;

    // The integrand at the nodes, of the trapezoidal rule on log w, that have a part in the
    // integral; returns its maximum.  It may have two modes, but is nowhere above `base`.
    double fill_nodes(double leverage, double total, double power) const {
        double top = -std::numeric_limits<double>::infinity();
        log_p_.clear();
        for (int32_t from = 0; from < kMostNodes; from += kNodes) {
            while (static_cast<int32_t>(w_.size()) < from + kNodes) {
                const double u = top_ - step_ * static_cast<double>(w_.size());
                w_.push_back(std::exp(u));
                base_.push_back(shape_ * u - 0.5 * dof_ * w_.back() + norm_);
            }
            // Downwards, so that `base` ascends first.
            if (0.5 * dof_ * w_[from] < shape_ && base_[from] < top - kMostDepth) break;
            log_p_.resize(from + kNodes);
            fill_weighted(kNodes, &w_[from], &base_[from], leverage, total, half_, power,
                          &log_p_[from]);
            top = std::max(top, *std::max_element(&log_p_[from], &log_p_[from] + kNodes));
        }
        return top;
    }

    // Slope of `base` as a function of log w.
    double slope(size_t i) const { return shape_ - 0.5 * dof_ * w_[i]; }

    double half_, dof_, shape_, norm_, log_ratio_, step_, top_;
    // Nodes: weights, and log of the integrand without rows; and log of one integrand.
    mutable std::vector<double> w_, base_, log_p_, masses_;
};

}  // namespace skihmm
