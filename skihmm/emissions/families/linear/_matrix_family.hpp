// Common to families of matrices: sums over rows, and one factorisation of the sums.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_family.hpp"
#include "_family_setting.hpp"
#include "_linear_algebra.hpp"
#include "_observed_part.hpp"

namespace skihmm {

// The first statistic is the number of rows.  A row without all inputs or values is not added,
// because a partial row is not conjugate.  If all inputs are there, its observed values are
// evaluated (_observed_part.hpp).
//
// The factors of the prior's S_0 + the sum of z z^T over all rows (z: one and the row's centred
// numbers) are the posterior.
class MatrixFamily : public LinearFamily {
  public:
    bool is_missing(const double *y) const final {
        int64_t n = 0;    // A sum is counted in vectors.
        for (int32_t i = 0; i < data_width(); ++i) n += y[i] != y[i];
        return n > 0;
    }
    bool has_no_part(const double *y) const final {
        return Family::is_missing(y)
               || std::any_of(y + n_columns, y + data_width(), [](double v) { return v != v; });
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
    // Gibbs sampling augmented by the states' parameters, which are discarded afterwards.
    void draw_hyperparameters(const double *table, int64_t stride, const int64_t *places, int32_t n,
                              bitgen_t *g) final {
        std::vector<double> parameters(static_cast<size_t>(n) * parameter_width);
        for (int32_t k = 0; k < n; ++k)
            draw(table + places[k], stride, &parameters[static_cast<size_t>(k) * parameter_width],
                 1, g);
        draw_prior(parameters.data(), n, g);
    }

  protected:
    // One draw of the parameters of n states; the sum, or its root, of their Sigma^-1, and of these
    // times their means.
    struct States {
        const double *first;
        int32_t n, width;
        std::vector<double> precision, weighted;
        const double *operator[](int32_t k) const { return first + int64_t{k} * width; }
    };
    explicit MatrixFamily(const FamilySetting &setting)
        : dof_(setting.dof), centre_(setting.units, setting.units + setting.n_columns) {
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
    // add_predicted and remove_predicted, where other rows remain.
    virtual double add_row(double *s, int64_t stride, const double *y, double *scratch) const = 0;
    virtual bool remove_row(double *s, int64_t stride, const double *y, double *lp) const = 0;
    // Set z to the row's vector, and zeros.
    virtual void centre(const double *y, double *z) const = 0;
    void draw_prior(const double *parameters, int32_t n, bitgen_t *g) {
        States states{parameters, n, parameter_width, {}, {}};
        sum_states(&states);
        if (is_drawn_[2]) draw_scale(states, g);
        if (is_drawn_[1]) draw_strengths(states, g);
        if (is_drawn_[0]) draw_mean(&states, g);  // may overwrite the sums
        set_prior();
    }
    virtual void sum_states(States *states) const = 0;
    virtual void draw_scale(const States &states, bitgen_t *g) = 0;
    virtual void draw_strengths(const States &states, bitgen_t *g) = 0;
    virtual void draw_mean(States *states, bitgen_t *g) = 0;
    virtual void set_prior() = 0;
    // Set all but the number of rows by the result of invert_factor.
    virtual void take_factors(double *s, int64_t stride, const double *A,
                              const double *inverse) const = 0;

    const double dof_;
    double log_det_ = 0.0;                  // of the prior scale
    int32_t is_drawn_[3];
    std::vector<double> centre_;            // of the columns of the data
    std::vector<double> prior_, prior_sums_;    // the factors of S_0; its lower triangle
    RisingTable ratio_;
    mutable std::vector<double> scratch_;   // of add_row; a family belongs to one thread
    mutable ObservedPart part_;
};

}  // namespace skihmm
