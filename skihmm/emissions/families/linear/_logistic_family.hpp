// Logistic and negative binomial regressions with Polya-Gamma weights as a conjugate family.
//
// psi = x^T beta + offset with x = (inputs; 1) of q entries, beta ~ N(m, V), V diagonal.  Given the
// weight omega of a row its likelihood exp(kappa psi - omega psi^2 / 2) is normal in beta: with
// kappa' = kappa - omega offset
//
//     C = (V^-1 + sum omega x x^T)^-1,  mean = C (V^-1 m + sum kappa' x)
//
// are those of beta, and with mu = x^T mean, s = x^T C x the predictive probability of (y, omega) is
//
//     (1 + omega s)^-1/2 exp((kappa' mu + kappa'^2 s / 2 - omega mu^2 / 2) / (1 + omega s)),
//
// times a factor that is the same for all states (log_constant; the density PG(b, 0) of omega is
// left out everywhere).  A row is added or removed by a rank-one update of C.
//
// Terms are regressions with coefficients of their own, independent given the state: one per
// column, or, of choices, one per option but the last, "this one, if none before it" (stick
// breaking).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_family.hpp"
#include "_family_setting.hpp"
#include "_hyperparameters.hpp"
#include "_linear_algebra.hpp"
#include "_logistic_evidence.hpp"
#include "_polya_gamma.hpp"
#include "_random.hpp"
#include "_regression_likelihood.hpp"

namespace skihmm {

class LogisticFamily final : public LinearFamily, public WeightedFamily {
  public:
    // Hyperparameters, each by term: means of the coefficients; precisions of those of inputs and of
    // the intercept; of counts the dispersion.  Units: means about which those means are drawn, and
    // by term the unit of the precisions.
    LogisticFamily(Regression kind, const FamilySetting &setting)
        : likelihood_(kind, setting), n_terms_(likelihood_.n_terms) {
        n_columns = setting.n_columns;
        n_inputs = n_given = setting.n_inputs;
        n_weights = n_terms_;
        weighted = this;
        n_options = setting.n_options;
        q_ = n_inputs - likelihood_.n_shifts - likelihood_.has_given + 1;
        term_width_ = kMean + q_ + q_ * (q_ + 1) / 2;
        width = n_terms_ * term_width_;
        parameter_width = n_terms_ * q_;
        is_wide = true;
        has_lasting_states = true;
        n_sums = n_terms_ * (term_width_ - kMean);
        n_expected = parameter_width;
        n_hyperparameters = n_terms_ * (q_ + 2 + likelihood_.is_counts());
        centre_.assign(setting.units, setting.units + parameter_width);
        unit_.assign(setting.units + parameter_width, setting.units + parameter_width + n_terms_);
        std::copy_n(setting.is_drawn, 2 + likelihood_.is_counts(), is_drawn_);
        mean_.resize(parameter_width);
        precision_.resize(2 * n_terms_);
        x_.assign(q_, 1.0);
        products_.resize(q_ * (q_ + 1) / 2);
        direction_.resize(q_);
        empty_.assign(n_terms_, {NAN, NAN, NAN, NAN});
        empty_logs_.assign(n_terms_, 0.0);
        draws_hyperparameters = true;   // At least weights are.
        LogisticFamily::set_hyperparameters(setting.hyperparameters);
    }
    bool is_missing(const double *y) const override { return likelihood_.is_missing(y); }
    void reset(double *s, int64_t) const override {
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_) reset_term(i, s);
    }
    void add(double *s, int64_t stride, const double *y) const override {
        if (!is_missing(y)) add_predicted(s, stride, y);
    }
    double add_predicted(double *s, int64_t, const double *y) const override {
        double lp = 0.0;
        read_inputs(y);
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_) {
            Term term;
            if (!likelihood_.read_term(y, i, &term)) continue;
            double mu, variance;
            predict_psi(s, &mu, &variance);
            const double log_p = log_weighted(term, mu, variance);
            turn(s, term.omega, term.kappa - term.omega * mu, 1.0 / (1.0 + term.omega * variance));
            s[kN] += 1.0;
            s[kLog] += log_p;  // planted: log of an added row
            lp += log_p + likelihood_.constant(y, i, term);
        }
        return lp;
    }
    bool remove(double *s, int64_t stride, const double *y) const override {
        double lp;
        return is_missing(y) || remove_predicted(s, stride, y, &lp);
    }
    bool remove_predicted(double *s, int64_t, const double *y, double *lp) const override {
        *lp = 0.0;
        read_inputs(y);
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_) {
            Term term;
            if (!likelihood_.read_term(y, i, &term)) continue;
            double mu, variance;
            predict_psi(s, &mu, &variance);
            const double left = 1.0 - term.omega * variance;
            if (s[kN] == 1.0) {
                reset_term(i, s);
                predict_psi(s, &mu, &variance);
                *lp += log_weighted(term, mu, variance) + likelihood_.constant(y, i, term);
                continue;
            }
            // (False for NaN too.)
            if (!(left > kLeastLeft)) return false;
            const double residual = term.kappa - term.omega * mu;
            turn(s, -term.omega, -residual, 1.0 / left);
            const double log_p =
                log_weighted(term, mu - variance * residual / left, variance / left);
            s[kN] -= 1.0;
            s[kLog] -= log_p;
            *lp += log_p + likelihood_.constant(y, i, term);
        }
        return true;
    }
    // The sums are those of omega x x^T and of kappa' x.
    void add_sums(const double *values, const int64_t *steps, int64_t n,
                  double *sums) const override {
        const int32_t n_products = q_ * (q_ + 1) / 2;
        for (int64_t l = 0; l < n; ++l) {
            const double *y = values + steps[l] * row_width();
            double *sums_of_term = sums;
            read_x(y);
            for (int32_t i = 0; i < n_terms_; ++i, sums_of_term += n_products + q_) {
                Term term;
                if (!likelihood_.read_term(y, i, &term)) continue;
                add_to_sums(term.omega, term.kappa, sums_of_term);
            }
        }
    }
    void add_rows(double *s, int64_t stride, const double *values, const int64_t *steps, int64_t n,
                  const double *sums) const override {
        std::vector<double> before(s, s + width);
        for (int32_t i = 0; i < n_terms_; ++i) {
            double *part = s + i * term_width_;
            for (int64_t l = 0; l < n; ++l)
                part[kN] += !std::isnan(likelihood_.value_of(values + steps[l] * row_width(), i));
            if (solve(i, sums + i * (term_width_ - kMean), part)) continue;
            std::copy(before.begin(), before.end(), s);
            for (int64_t l = 0; l < n; ++l)
                add_predicted(s, stride, values + steps[l] * row_width());
            return;
        }
    }
    double log_marginal(const double *s, int64_t) const override {
        double lp = 0.0;
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_) lp += s[kLog];
        return lp;
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        if (is_missing(y)) return;
        read_inputs(y);
        for (int32_t i = 0; i < n_terms_; ++i, table += term_width_) {
            Term term;
            if (!likelihood_.read_term(y, i, &term)) continue;
            // planted: weight of a new row
            if (!std::isnan(term.omega)) {
                fill_weighted(table, stride, n, term, likelihood_.constant(y, i, term), out);
                continue;
            }
            const double factor = likelihood_.log_factor(y, i);
            for (int32_t k = 0; k < n; ++k) {
                const double *s = table + k * stride;
                double mu, variance;
                predict_psi(s, &mu, &variance);
                // The widest integral, that of states without rows, is the same for all of them.
                const Term key{term.b, term.kappa, mu + term.shift, variance};
                double lp = empty_logs_[i];
                if (s[kN] > 0.0 || !(key == empty_[i])) {
                    lp = log_integral(term, key.shift, variance);
                    if (s[kN] == 0.0) {
                        empty_[i] = key;
                        empty_logs_[i] = lp;
                    }
                }
                out[k] += factor + lp;
            }
        }
    }
    void fill_together(const double *table, int64_t stride, int32_t n, const double *y,
                       int32_t n_rows, double *out, int64_t out_stride) const override {
        for (int32_t r = 0; r < n_rows; ++r)
            for (int32_t i = data_width(); i < row_width(); ++i)
                if (std::isnan(y[r * row_width() + i]))
                    return LinearFamily::fill_together(table, stride, n, y, n_rows, out, out_stride);
        rows_out_.resize(static_cast<size_t>(n) * kWeightedRows);
        for (; n_rows > 0; n_rows -= kWeightedRows) {
            const int32_t n_lanes = std::min(kWeightedRows, n_rows);
            for (int32_t i = 0; i < n_terms_; ++i) {
                read_rows(i, y, n_lanes);
                fill_weighted_rows(n, stride, q_, rows_, table + i * term_width_ + kMean,
                                   rows_out_.data());
                for (int32_t r = 0; r < n_lanes; ++r)
                    for (int32_t k = 0; k < n; ++k)
                        out[r * out_stride + k] += rows_out_[k * kWeightedRows + r];
            }
            y += kWeightedRows * row_width();
            out += kWeightedRows * out_stride;
        }
    }
    double log_constant(const double *y) const override {
        double lp = 0.0;
        for (int32_t i = 0; i < n_terms_; ++i) {
            Term term;
            if (!likelihood_.read_term(y, i, &term)) continue;
            lp += likelihood_.constant(y, i, term);
        }
        return lp;
    }
    bool is_sound(const double *s, int64_t) const override {
        if (!all_finite(s, width)) return false;
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_)
            for (int32_t a = 0; a < q_; ++a)
                if (!(s[kN] >= 0.0 && s[kMean + q_ + a * (a + 3) / 2] > 0.0)) return false;
        return true;
    }

    void draw(const double *s, int64_t, double *p, int64_t, bitgen_t *g) const override {
        std::vector<double> root(q_ * (q_ + 1) / 2), noise(q_);
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_) {
            std::copy_n(s + kMean + q_, root.size(), root.begin());
            factorise(q_, root.data());
            for (double &e : noise) e = random_standard_normal(g);
            for (int32_t a = 0, at = 0; a < q_; ++a) {
                double value = s[kMean + a];
                for (int32_t b = 0; b <= a; ++b) value += root[at++] * noise[b];
                *p++ = value;
            }
        }
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        if (is_missing(y)) return;
        read_x(y);
        for (int32_t i = 0; i < n_terms_; ++i, table += q_) {
            Term term;
            if (!likelihood_.read_term(y, i, &term)) continue;
            const bool is_weighted = !std::isnan(term.omega);
            const double rest = is_weighted ? likelihood_.constant(y, i, term)
                                            : likelihood_.log_factor(y, i);
            for (int32_t k = 0; k < n; ++k) {
                const double mu = at_inputs(table + k * stride), psi = mu + term.shift;
                out[k] += rest
                          + (is_weighted ? mu * (term.kappa - 0.5 * term.omega * mu)
                                         : term.kappa * psi - term.b * log_cosh(psi));
            }
        }
    }
    // Here and in `mean` missing inputs are at their means, a missing exposure is one, and without
    // trials there is no number.
    void emit(const double *p, int64_t, double *y, bitgen_t *g) const override {
        read_x(y, true);
        for (int32_t i = 0; i < n_terms_; ++i, p += q_)
            if (likelihood_.emit(i, at_inputs(p), y, g)) return;
        if (likelihood_.kind == Regression::kChoices) y[0] = n_terms_;
    }
    // Means given the states' mean and variance of psi; of choices the most probable one.
    void mean(const double *s, int64_t, double *y) const override {
        read_inputs(y, true);
        double rest = 1.0, most = -1.0;
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_) {
            double mu, variance;
            predict_psi(s, &mu, &variance);
            const double given = likelihood_.filled_given(y, i);
            if (likelihood_.is_counts()) {
                y[i] = std::exp(std::min(mu + 0.5 * variance + given,
                                         RegressionLikelihood::kMostLogMean));
                continue;
            }
            const double one = std::exp(log_integral({1.0, 0.5, 0.0, NAN}, mu + given, variance));
            if (likelihood_.kind != Regression::kChoices) {
                y[i] = one * (likelihood_.has_given ? likelihood_.given(y) : 1.0);
                continue;
            }
            if (rest * one > most) {
                most = rest * one;
                y[0] = i;
            }
            rest *= 1.0 - one;
        }
        if (likelihood_.kind == Regression::kChoices && rest > most) y[0] = n_terms_;
    }
    // Missing inputs are at their means.
    void fill_predictives(const double *s, int64_t stride, double *y, double *out) const override {
        if (n_options == 0) return Family::fill_predictives(s, stride, y, out);
        std::replace_if(y + n_columns, y + data_width(), [](double x) { return std::isnan(x); }, 0.0);
        for (int32_t i = 0; i < n_options; ++i) {
            y[0] = i;
            out[i] = std::exp(log_predictive(s, stride, y));
        }
    }
    // Means of the coefficients by term.
    void expect(const double *s, int64_t, double *out) const override {
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_, out += q_)
            std::copy_n(s + kMean, q_, out);
    }

    void read_hyperparameters(double *out) const override {
        out = std::copy(mean_.begin(), mean_.end(), out);
        out = std::copy(precision_.begin(), precision_.end(), out);
        const std::vector<double> &dispersion = likelihood_.dispersion;
        if (likelihood_.is_counts()) std::copy(dispersion.begin(), dispersion.end(), out);
    }
    bool set_hyperparameters(const double *in) override {
        if (!all_finite(in, parameter_width)
            || !all_positive(in + parameter_width, n_hyperparameters - parameter_width))
            return false;
        std::copy_n(in, parameter_width, mean_.begin());
        std::copy_n(in + parameter_width, precision_.size(), precision_.begin());
        if (likelihood_.is_counts())
            std::copy_n(in + parameter_width + precision_.size(), n_terms_,
                        likelihood_.dispersion.begin());
        return true;
    }

    // ---- weights

    void open_weights(double *y) const override {
        for (int32_t i = 0; i < n_terms_; ++i) {
            Term term;
            double *omega = likelihood_.weight_of(y, i);
            *omega = 0.0;
            if (is_missing(y) || !likelihood_.read_term(y, i, &term)) continue;
            // At the prior mean of the intercept, not at what the row itself says: its weight would
            // tie it to a state of rows like it.
            *omega = polya_gamma_mean(term.b, mean_[(i + 1) * q_ - 1] + term.shift);
        }
    }
    double log_unweighted(const double *s, const double *values, const int64_t *steps,
                          int64_t n) const override {
        std::vector<double> precisions(q_);
        double lp = 0.0;
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_) {
            for (int32_t a = 0; a < q_; ++a) precisions[a] = precision(i, a);
            lp += log_logistic_evidence(
                q_, &mean_[i * q_], precisions.data(), {s + kMean, s + kMean + q_},
                [&](auto visit) {
                    for (int64_t l = 0; l < n; ++l) {
                        const double *y = values + steps[l] * row_width();
                        Term term;
                        if (!likelihood_.read_term(y, i, &term)) continue;
                        read_x(y);
                        visit(term.kappa + term.omega * term.shift, term.b, term.shift,
                              likelihood_.log_factor(y, i), x_.data());
                    }
                });
        }
        return lp;
    }
    void draw_weights(const double *s, double *y, bitgen_t *g) const override {
        read_inputs(y);
        for (int32_t i = 0; i < n_terms_; ++i, s += term_width_) {
            Term term;
            double *omega = likelihood_.weight_of(y, i);
            *omega = NAN;
            if (!likelihood_.read_term(y, i, &term)) continue;
            double mu, variance;
            predict_psi(s, &mu, &variance);
            // planted: weight of a particle
            *omega = draw_polya_gamma(g, term.b, draw_psi(term, mu + term.shift, variance, g));
        }
    }
    // The coefficients are given: the dispersions do not depend on the weights, whose
    // distribution depends on them; so all weights have to be drawn afterwards.
    void draw_given(const double *parameters, int32_t n, const int32_t *states, double *values,
                    int64_t n_steps, Shifts *shifts, bitgen_t *g) override {
        for (int32_t i = 0; i < n_terms_; ++i) {
            if (likelihood_.is_counts() && is_drawn_[2])
                draw_dispersion(i, parameters, states, values, n_steps, g);
            draw_prior(i, parameters, n, g);
        }
        if (shifts) draw_shifts(parameters, states, values, shifts, g);
        for (int64_t t = 0; t < n_steps; ++t) {
            if (states[t] < 0) continue;
            double *y = values + t * row_width();
            const double *p = parameters + static_cast<int64_t>(states[t]) * parameter_width;
            read_x(y);
            for (int32_t i = 0; i < n_terms_; ++i, p += q_) {
                Term term;
                if (!likelihood_.read_term(y, i, &term)) continue;
                // planted: weight of a row
                *likelihood_.weight_of(y, i) =
                    draw_polya_gamma(g, term.b, at_inputs(p) + term.shift);
            }
        }
    }

    void draw_shifts(const double *parameters, const int32_t *states, const double *values,
                     Shifts *shifts, bitgen_t *g) const override {
        const auto read = [&](int64_t t, int32_t i, LogisticRow *row) {
            const double *y = values + t * row_width();
            Term term;
            if (states[t] < 0 || !likelihood_.read_unweighted(y, i, &term)) return false;
            read_x(y);
            const double eta = at_inputs(parameters + static_cast<int64_t>(states[t])
                                         * parameter_width + i * q_);
            *row = {term.kappa, term.b, eta + term.shift, NAN};
            if (likelihood_.is_counts()) row->log_mean = eta + likelihood_.log_given(y, i);
            return true;
        };
        shifts->draw_shifts(read, g);
    }

  private:
    // What a state keeps of a term: number of rows, log p of all, mean, and C by rows.
    enum { kN, kLog, kMean };
    // The least dispersion is a hundredth divided by the largest count within these bounds: the
    // variance exceeds that of Poisson counts by a hundredth, which data can hardly tell.  (For 1e10
    // probabilities are rounded by some thousandths.)
    static constexpr double kLeastLargest = 1e2, kMostLargest = 1e10, kMostDispersion = 1e8;

    static SKIHMM_INLINE double log_weighted(const Term &term, double mu, double variance) {
        return skihmm::log_weighted(term.kappa, term.omega, mu, variance);
    }
    // The logarithms are those of up to sixteen states together.
    SKIHMM_CLONES void fill_weighted(const double *table, int64_t stride, int32_t n,
                                     const Term &term, double rest, double *out) const {
        double mu[kLanes], variance[kLanes], lp[kLanes];
        for (int32_t from = 0; from < n; from += kLanes) {
            const int32_t n_lanes = std::min(kLanes, n - from);
            for (int32_t l = 0; l < n_lanes; ++l)
                predict_psi(table + (from + l) * stride, &mu[l], &variance[l]);
            for (int32_t l = 0; l < n_lanes; ++l)
                lp[l] = rest + log_weighted(term, mu[l], variance[l]);
            for (int32_t l = 0; l < n_lanes; ++l) out[from + l] += lp[l];
        }
    }
    // x; if it `fills`, with missing inputs at their means.
    void read_x(const double *y, bool fills = false) const {
        std::copy_n(y + n_columns, q_ - 1, x_.begin());
        for (double &x : x_)
            if (fills && std::isnan(x)) x = 0.0;
    }
    // And x x^T as C is kept, entries off the diagonal twice.
    void read_inputs(const double *y, bool fills = false) const {
        read_x(y, fills);
        for (int32_t a = 0, at = 0; a < q_; ++a)
            for (int32_t b = 0; b <= a; ++b) products_[at++] = (a == b ? 1.0 : 2.0) * x_[a] * x_[b];
    }
    // What the rows at y have of a term; the first term brings x.
    void read_rows(int32_t i, const double *y, int32_t n_rows) const {
        rows_.x.resize(q_ + products_.size());
        for (int32_t r = 0; r < n_rows; ++r, y += row_width()) {
            Term term;
            const bool is_observed = !is_missing(y) && likelihood_.read_term(y, i, &term);
            rows_.kappa[r] = is_observed ? term.kappa : 0.0;
            rows_.omega[r] = is_observed ? term.omega : 0.0;
            rows_.rest[r] = is_observed ? likelihood_.constant(y, i, term) : 0.0;
            if (i > 0) continue;
            read_inputs(y);
            for (int32_t a = 0; a < q_; ++a) rows_.x[a].data()[r] = x_[a];
            for (size_t at = 0; at < products_.size(); ++at)
                rows_.x[q_ + at].data()[r] = products_[at];
        }
    }
    void add_to_sums(double omega, double kappa, double *sums) const {
        for (int32_t a = 0; a < q_; ++a)
            for (int32_t b = 0; b <= a; ++b) *sums++ += omega * x_[a] * x_[b];
        for (int32_t a = 0; a < q_; ++a) sums[a] += kappa * x_[a];
    }
    double at_inputs(const double *coefficients) const {
        double value = 0.0;
        for (int32_t a = 0; a < q_; ++a) value += x_[a] * coefficients[a];
        return value;
    }
    SKIHMM_INLINE void predict_psi(const double *s, double *mu, double *variance) const {
        const double *C = s + kMean + q_;
        *mu = at_inputs(s + kMean);
        *variance = 0.0;
        for (size_t at = 0; at < products_.size(); ++at) *variance += products_[at] * C[at];
    }
    // mean += C x residual share, C -= omega share C x x^T C.
    void turn(double *s, double omega, double residual, double share) const {
        double *mean = s + kMean, *C = mean + q_;
        for (int32_t a = 0; a < q_; ++a) {
            double value = 0.0;
            for (int32_t b = 0; b < q_; ++b)
                value += C[a >= b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a] * x_[b];
            direction_[a] = value;
        }
        for (int32_t a = 0; a < q_; ++a) {
            mean[a] += direction_[a] * residual * share;
            for (int32_t b = 0; b <= a; ++b)
                *C++ -= omega * share * direction_[a] * direction_[b];
        }
    }
    double precision(int32_t i, int32_t a) const { return precision_[2 * i + (a == q_ - 1)]; }
    void reset_term(int32_t i, double *s) const {
        std::fill_n(s, term_width_, 0.0);
        for (int32_t a = 0; a < q_; ++a) {
            s[kMean + a] = mean_[i * q_ + a];
            s[kMean + q_ + a * (a + 3) / 2] = 1.0 / precision(i, a);
        }
    }
    // All of a term but the number of rows from its sums; false if too many digits are lost.
    bool solve(int32_t i, const double *sums, double *s) const {
        const int32_t n_products = q_ * (q_ + 1) / 2;
        std::vector<double> L(sums, sums + n_products), inverse(n_products, 0.0), z(q_);
        double *mean = s + kMean, *C = mean + q_, log_det = 0.0, quadratic = 0.0;
        for (int32_t a = 0; a < q_; ++a) {
            const double v = precision(i, a), m = mean_[i * q_ + a];
            L[a * (a + 3) / 2] += v;
            z[a] = sums[n_products + a] + v * m;
            log_det += std::log(v);
            quadratic -= v * m * m;
        }
        if (!factorise(q_, L.data())) return false;
        // L^-1, and z = L^-1 (V^-1 m + sum kappa' x).
        for (int32_t a = 0; a < q_; ++a) {
            const double *row = &L[a * (a + 1) / 2];
            double *column = &inverse[a * (a + 1) / 2];
            for (int32_t b = 0; b < a; ++b) z[a] -= row[b] * z[b];
            z[a] /= row[a];
            column[a] = 1.0 / row[a];
            for (int32_t b = 0; b < a; ++b) {
                for (int32_t l = b; l < a; ++l) column[b] -= row[l] * inverse[l * (l + 1) / 2 + b];
                column[b] /= row[a];
            }
            log_det -= 2.0 * std::log(row[a]);
            quadratic += z[a] * z[a];
        }
        s[kLog] = 0.5 * (log_det + quadratic);
        for (int32_t a = 0; a < q_; ++a) {
            mean[a] = 0.0;
            for (int32_t l = a; l < q_; ++l) mean[a] += inverse[l * (l + 1) / 2 + a] * z[l];
            for (int32_t b = 0; b <= a; ++b, ++C) {
                *C = 0.0;
                for (int32_t l = a; l < q_; ++l)
                    *C += inverse[l * (l + 1) / 2 + a] * inverse[l * (l + 1) / 2 + b];
            }
        }
        return true;
    }
    // Precisions ~ Gamma(1, 1/10), means ~ N(centre, 1), in their unit, given the coefficients of n
    // states.
    void draw_prior(int32_t i, const double *parameters, int32_t n, bitgen_t *g) {
        const double *centre = &centre_[i * q_];
        double *mean = &mean_[i * q_];
        const auto coefficient = [&](int32_t k, int32_t a) {
            return parameters[static_cast<int64_t>(k) * parameter_width + i * q_ + a];
        };
        for (int32_t group = 0; group < 2 && is_drawn_[1]; ++group) {
            const int32_t from = group ? q_ - 1 : 0, to = group ? q_ : q_ - 1;
            double squares = 0.0;
            for (int32_t k = 0; k < n; ++k)
                for (int32_t a = from; a < to; ++a) {
                    const double d = coefficient(k, a) - mean[a];
                    squares += d * d;
                }
            double &v = precision_[2 * i + group];
            // planted: draw of a precision
            v = draw_bounded_gamma(g, v, 1.0 + 0.5 * n * (to - from),
                                   0.1 / unit_[i] + 0.5 * squares, kLeastHyper, kMostHyper);
        }
        for (int32_t a = 0; a < q_ && is_drawn_[0]; ++a) {
            const double v = precision(i, a), whole = unit_[i] + n * v;
            double sum = unit_[i] * centre[a];
            for (int32_t k = 0; k < n; ++k) sum += v * coefficient(k, a);
            mean[a] = sum / whole + random_standard_normal(g) / std::sqrt(whole);
        }
    }
    // 1 / r ~ Gamma(1/2, 1/2) within bounds, given all means: the likelihood of all counts.
    void draw_dispersion(int32_t i, const double *parameters, const int32_t *states,
                         const double *values, int64_t n_steps, bitgen_t *g) {
        std::vector<double> counts, means;  // planted: rows of a dispersion
        for (int64_t t = 0; t < n_steps; ++t) {
            const double *y = values + t * row_width();
            if (states[t] < 0 || std::isnan(y[i])) continue;
            read_x(y);
            const double eta =
                at_inputs(parameters + static_cast<int64_t>(states[t]) * parameter_width + i * q_)
                + likelihood_.log_given(y, i);
            counts.push_back(y[i]);  // planted: row of a dispersion
            constexpr double most = RegressionLikelihood::kMostLogMean;
            means.push_back(std::exp(std::clamp(eta, -most, most)));
        }
        // Equal counts have one term of log Gamma together.
        std::vector<double> distinct(counts);
        std::sort(distinct.begin(), distinct.end());
        double &dispersion = likelihood_.dispersion[i];
        const double largest = distinct.empty() ? 0.0 : distinct.back();
        const double least = 1e-2 / std::clamp(largest, kLeastLargest, kMostLargest);
        dispersion = std::exp(draw_by_slice(
            g, std::log(std::max(dispersion, least)), std::log(least), std::log(kMostDispersion),
            [&](double u) {
                const double r = std::exp(-u);
                double lp = log_hyperprior(u);
                for (size_t from = 0, to = 0; from < distinct.size(); from = to) {
                    while (to < distinct.size() && distinct[to] == distinct[from]) ++to;
                    lp += (to - from) * log_rising(r, distinct[from]);
                }
                // planted: likelihood of a dispersion
                for (size_t l = 0; l < counts.size(); ++l)
                    lp -= counts[l] * -u + (r + counts[l]) * log1p_of(means[l] / r);
                return lp;
            }));
    }

    RegressionLikelihood likelihood_;
    const int32_t n_terms_;
    int32_t q_, term_width_;
    std::vector<double> centre_, unit_, mean_, precision_;
    int32_t is_drawn_[3] = {};
    // Scratch; a family belongs to one thread.
    mutable std::vector<double> x_, products_, direction_, rows_out_;
    mutable WeightedRows rows_;
    // By term the last integral of a state without rows.
    mutable std::vector<Term> empty_;
    mutable std::vector<double> empty_logs_;
};

}  // namespace skihmm
