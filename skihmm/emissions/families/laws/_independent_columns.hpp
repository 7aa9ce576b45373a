// Families whose columns are independent given the state: the loops over columns, around the law
// of one column.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_cholesky.hpp"
#include "_family.hpp"
#include "_family_setting.hpp"
#include "_hyperparameters.hpp"
#include "_random.hpp"

namespace skihmm {

// Statistics or parameters of a state for one column.
struct Column {
    double *first;
    int64_t stride;
    double &operator[](int32_t i) const { return first[i * stride]; }
};
struct ConstColumn {
    ConstColumn(const double *s, int64_t s_stride) : first(s), stride(s_stride) {}
    ConstColumn(const Column &s) : first(s.first), stride(s.stride) {}
    double operator[](int32_t i) const { return first[i * stride]; }

    const double *first;
    int64_t stride;
};

// Defaults of a law.  A law itself defines kN and kWidth, kHyperparameters, hyper, add, update,
// is_sound, log_predictive, fill (whose arrays have room for whole vectors), log_marginal, draw,
// log_density, emit and mean; fill_densities if kFillsDensities, variance if kExpected is 2,
// fill_vector, the mean of exp(i y), if kIsCircular.
//
// A law has hyperparameters `hyper`; `s` are a state's sufficient statistics, kN their number
// first, followed by numbers that `update` derives; `p` a state's drawn parameters.
class ColumnLaw {
  public:
    static constexpr int32_t kParameters = 2, kExpected = 1;
    static constexpr int32_t kSigned = 0;       // so many hyperparameters may be negative
    // The hyperparameter that all states have in common, if any, and its least value.
    static constexpr int32_t kDispersion = -1;
    static constexpr double kLeastDispersion = 0.0;
    static constexpr bool kAdapts = true;       // no statistic depends on the dispersion
    static constexpr bool kFillsDensities = false, kIsCircular = false;

    explicit ColumnLaw(const FamilySetting &) {}
    void observe(const double *, int64_t, int64_t) {}
    void prepare() {}                           // for changed hyperparameters
    static double cancelled(ConstColumn) { return 0.0; }
    // The part of log p(y) that log_marginal leaves out.
    static double log_constant(double) { return 0.0; }
    // The part that log_predictive and log_density leave out, which all states have in common.
    static double common(double) { return 0.0; }
    // Parts of log_marginal that do not depend on hyperparameters but the dispersion; and of the
    // likelihood of all data that depend on nothing else.
    static double log_rest(ConstColumn) { return 0.0; }
    static double log_likelihood(const double *) { return 0.0; }
};

// Base: LearntFamily, or an interface below it.
template <class Law, class Base = LearntFamily>
class IndependentColumns : public Base {
  public:
    static constexpr int32_t kHyperparameters = Law::kHyperparameters;
    using Base::n_columns, Base::width, Base::parameter_width, Base::row_width, Base::is_concurrent,
        Base::is_circular, Base::n_expected, Base::n_hyperparameters, Base::draws_hyperparameters;

    explicit IndependentColumns(const FamilySetting &setting)
        : laws_(setting.n_columns, Law(setting)),
          units_(setting.units, setting.units + setting.n_columns * kHyperparameters),
          is_drawn_(setting.is_drawn, setting.is_drawn + kHyperparameters) {
        n_columns = setting.n_columns;
        is_concurrent = true;
        is_circular = Law::kIsCircular;
        width = Law::kWidth * n_columns;
        parameter_width = Law::kParameters * n_columns;
        n_hyperparameters = kHyperparameters * n_columns;
        draws_hyperparameters =
            std::any_of(is_drawn_.begin(), is_drawn_.end(), [](int32_t x) { return x; });
        n_expected = Law::kExpected * n_columns;
        for (int32_t c = 0; c < n_columns; ++c)
            laws_[c].observe(setting.values + c, n_columns, setting.n_steps);
        IndependentColumns::set_hyperparameters(setting.hyperparameters);
    }
    void reset(double *s, int64_t stride) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride) {
            clear({s, stride});
            laws_[c].update({s, stride});
        }
    }
    double log_predictive(const double *s, int64_t stride, const double *y) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride)
            if (!std::isnan(y[c]))
                lp += laws_[c].common(y[c]) + laws_[c].log_predictive({s, stride}, y[c]);
        return lp;
    }
    double cancelled(const double *s, int64_t stride) const override {
        double size = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride)
            size += laws_[c].cancelled({s, stride});
        return size;
    }
    void add(double *s, int64_t stride, const double *y) const override {
        change(s, stride, y, 1.0);
    }
    bool remove(double *s, int64_t stride, const double *y) const override {
        return change(s, stride, y, -1.0);
    }
    void add_rows(double *s, int64_t stride, const double *values, const int64_t *steps, int64_t n,
                  const double *) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride) {
            double column[Law::kWidth];
            read({s, stride}, column);
            for (int64_t i = 0; i < n; ++i) {
                const double y = values[steps[i] * row_width() + c];
                if (!std::isnan(y)) laws_[c].add({column, 1}, y, 1.0);
            }
            laws_[c].update({column, 1});
            for (int32_t i = 0; i < Law::kWidth; ++i) s[i * stride] = column[i];
        }
    }
    double log_marginal(const double *s, int64_t stride) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride)
            lp += laws_[c].log_marginal({s, stride}, laws_[c].hyper)
                  + laws_[c].log_rest({s, stride});
        return lp;
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, table += Law::kWidth * stride)
            if (!std::isnan(y[c])) laws_[c].fill(table, stride, n, y[c], out);
    }
    double log_constant(const double *y) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c)
            if (!std::isnan(y[c])) lp += laws_[c].log_constant(y[c]);
        return lp;
    }
    bool is_sound(const double *s, int64_t stride) const override {
        double column[Law::kWidth];
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride) {
            read({s, stride}, column);
            if (!all_finite(column, Law::kWidth) || !(column[Law::kN] >= 0.0)
                || !laws_[c].is_sound({column, 1}))
                return false;
        }
        return true;
    }

    void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
              bitgen_t *g) const override {
        for (const Law &law : laws_) {
            law.draw({s, stride}, {p, p_stride}, g);
            s += Law::kWidth * stride;
            p += Law::kParameters * p_stride;
        }
    }
    double log_density(const double *p, int64_t stride, const double *y) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, p += Law::kParameters * stride)
            if (!std::isnan(y[c]))
                lp += laws_[c].common(y[c]) + laws_[c].log_density({p, stride}, y[c]);
        return lp;
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, table += Law::kParameters * stride) {
            if (std::isnan(y[c])) continue;
            if constexpr (Law::kFillsDensities) {
                laws_[c].fill_densities(table, stride, n, y[c], out);
            } else {
                const double common = laws_[c].common(y[c]);
                for (int32_t k = 0; k < n; ++k)
                    out[k] += common + laws_[c].log_density({table + k, stride}, y[c]);
            }
        }
    }
    void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const override {
        for (int32_t c = 0; c < n_columns; ++c, p += Law::kParameters * stride)
            y[c] = laws_[c].emit({p, stride}, g);
    }
    void mean(const double *s, int64_t stride, double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride)
            out[c] = laws_[c].mean({s, stride});
    }
    void fill_predictives(const double *s, int64_t stride, double *y, double *out) const override {
        if constexpr (!Law::kIsCircular) return Base::fill_predictives(s, stride, y, out);
        else
            for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride)
                laws_[c].fill_vector({s, stride}, out + 2 * c);
    }
    // The means, and after them the variances of a law that expects two numbers.
    void expect(const double *s, int64_t stride, double *out) const override {
        mean(s, stride, out);
        if constexpr (Law::kExpected == 2)
            for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride)
                out[n_columns + c] = laws_[c].variance({s, stride});
    }

    void read_hyperparameters(double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c)
            for (int32_t i = 0; i < kHyperparameters; ++i)
                out[i * n_columns + c] = laws_[c].hyper[i];
    }
    bool set_hyperparameters(const double *in) override {
        const int32_t n = Law::kSigned * n_columns;
        if (!all_finite(in, n) || !all_positive(in + n, n_hyperparameters - n)) return false;
        for (int32_t c = 0; c < n_columns; ++c) {
            for (int32_t i = 0; i < kHyperparameters; ++i)
                laws_[c].hyper[i] = in[i * n_columns + c];
            laws_[c].prepare();
        }
        return true;
    }
    // The first two hyperparameters as a pair, and the dispersion, by slice sampling of the
    // collapsed likelihood.
    void draw_hyperparameters(const double *table, int64_t stride, const int64_t *places,
                              int32_t n, bitgen_t *g) override {
        std::vector<double> rows(static_cast<size_t>(n) * Law::kWidth);
        for (int32_t c = 0; c < n_columns; ++c, table += Law::kWidth * stride) {
            for (int32_t k = 0; k < n; ++k)
                read({table + places[k], stride}, &rows[static_cast<size_t>(k) * Law::kWidth]);
            double h[kHyperparameters];
            std::copy_n(laws_[c].hyper, kHyperparameters, h);
            const auto log_states = [&](const double *trial) {
                double lp = 0.0;
                for (size_t at = 0; at < rows.size(); at += Law::kWidth)
                    lp += laws_[c].log_marginal({&rows[at], 1}, trial);
                return lp;
            };
            if constexpr (kHyperparameters > 1)
                draw_pair(g, &h[0], &h[1], is_drawn_[0], is_drawn_[1], units_[c],
                          units_[n_columns + c], [&](double first, double second) {
                    double trial[kHyperparameters];
                    std::copy_n(h, kHyperparameters, trial);
                    trial[0] = first;
                    trial[1] = second;
                    return log_states(trial);
                });
            if constexpr (Law::kDispersion >= 0) {
                double &dispersion = h[Law::kDispersion];
                const double unit = units_[Law::kDispersion * n_columns + c];
                const double reach = -std::log(kLeastScale);
                const double least = std::log(std::max(kLeastScale,
                                                       Law::kLeastDispersion / unit));
                if (is_drawn_[Law::kDispersion])
                    dispersion = unit * std::exp(draw_by_slice(
                        g, std::log(dispersion / unit), least, reach, [&](double u) {
                            dispersion = unit * std::exp(u);
                            return log_hyperprior(u) + log_states(h)
                                   + laws_[c].log_likelihood(h);
                        }));
            }
            std::copy_n(h, kHyperparameters, laws_[c].hyper);
            laws_[c].prepare();
        }
    }
    bool refresh(double *s, int64_t stride) const override {
        if (!Law::kAdapts && is_drawn_.back()) return false;
        for (int32_t c = 0; c < n_columns; ++c)
            laws_[c].update({s + c * Law::kWidth * stride, stride});
        return true;
    }

  protected:
    std::vector<Law> laws_;             // by column
    std::vector<double> units_;         // of every hyperparameter, by column
    std::vector<int32_t> is_drawn_;

  private:
    static void read(ConstColumn s, double *out) {
        for (int32_t i = 0; i < Law::kWidth; ++i) out[i] = s[i];
    }
    static void clear(Column s) {
        for (int32_t i = 0; i < Law::kWidth; ++i) s[i] = 0.0;
    }
    SKIHMM_INLINE bool change(double *s, int64_t stride, const double *y, double sign) const {
        bool is_kept = true;
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride) {
            if (std::isnan(y[c])) continue;
            const Column column{s, stride};
            const bool is_precise = laws_[c].add(column, y[c], sign);
            // An empty state is the prior exactly.
            if (column[Law::kN] == 0.0) clear(column);
            else is_kept &= is_precise;
            laws_[c].update(column);
        }
        return is_kept;
    }
};

}  // namespace skihmm
