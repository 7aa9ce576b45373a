// Conjugate families: a likelihood with its prior, the parameters integrated out, by the
// sufficient statistics of every state.
//
// The statistics of state k are s[i * stride], i < width: interleaved over all states in a
// chain, whose hot loop evaluates one observation under every state, and contiguous by state in
// a particle.  They include parts of the predictive distribution that do not depend on the next
// observation.  Those of a wide family, matrices, are contiguous everywhere (stride 1), because
// additions that touch a cache line per number would take longer than the hot loop.
//
// A row is an observation's values followed by its inputs: what precedes it in its sequence,
// or is given.  Wherever a row `y` is passed, its inputs are set.
//
// What not all families have is in interfaces of its own, null without: a prior that chains learn
// (LearntFamily), linear algebra and missing entries (LinearFamily), and weights of rows
// (_weighted_family.hpp).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_math.hpp"
#include "numpy/random/bitgen.h"

namespace skihmm {

class LearntFamily;
class LinearFamily;
class WeightedFamily;

class Family {
  public:
    virtual ~Family() = default;

    int32_t n_columns = 0;          // values per row; NaN is missing
    int32_t n_inputs = 0;           // inputs per row
    int32_t n_given = 0;            // of them the last ones, which are given
    int32_t n_weights = 0;          // weights per row
    int32_t width = 0;              // size of a state's statistics
    int32_t parameter_width = 0;    // number of a state's drawn parameters
    bool is_wide = false;           // number i of state k is table[k * stride + i]
    bool has_lasting_states = false;    // so that split-merge trials are of whole runs only
    LearntFamily *learnt = nullptr;
    const LinearFamily *linear = nullptr;
    WeightedFamily *weighted = nullptr;     // if n_weights > 0

    int32_t data_width() const { return n_columns + n_inputs; }
    int32_t row_width() const { return data_width() + n_weights; }
    // Inputs of the step that follows a row; of the first step of a sequence if it is NULL.  Those
    // that are given stay as they are.
    virtual void next_inputs(const double *, double *) const {}

    // Statistics of a state without observations.
    virtual void reset(double *s, int64_t stride) const = 0;
    // Whether y says nothing of its state: without a function of its own, if no entry is observed.
    virtual bool is_missing(const double *y) const {
        return std::all_of(y, y + n_columns, [](double v) { return std::isnan(v); });
    }
    // The same where statistics are fixed and rows are only evaluated.
    bool is_unseen(const double *y) const;
    // log p(y | s): predictive density or probability of what is observed; 0 if y is unseen.
    virtual double log_predictive(const double *s, int64_t stride, const double *y) const {
        double lp = 0.0;
        fill(s, is_wide ? width : stride, 1, y, &lp);
        return lp;
    }
    // Add y.
    virtual void add(double *s, int64_t stride, const double *y) const = 0;
    // Add the rows steps[0], steps[1], ... of `values`, none of them missing.  `sums` are those of
    // LinearFamily, of all rows that the state has then.
    virtual void add_rows(double *s, int64_t stride, const double *values, const int64_t *steps,
                          int64_t n, const double *) const {
        for (int64_t i = 0; i < n; ++i) add(s, stride, values + steps[i] * row_width());
    }
    // Remove y.  False if rounding errors have become too large: then the statistics have to be
    // recomputed from the remaining observations.
    virtual bool remove(double *s, int64_t stride, const double *y) const = 0;
    // Add y, which is not missing; returns log p(y | s) as s was before.
    virtual double add_predicted(double *s, int64_t stride, const double *y) const {
        const double lp = log_predictive(s, stride, y);
        add(s, stride, y);
        return lp;
    }
    // As remove, of a y that is not missing; sets lp to log p(y | s) afterwards unless false.
    virtual bool remove_predicted(double *s, int64_t stride, const double *y, double *lp) const {
        if (!remove(s, stride, y)) return false;
        *lp = log_predictive(s, stride, y);
        return true;
    }
    // log p(all observations of the state).
    virtual double log_marginal(const double *s, int64_t stride) const = 0;
    // out[k] += log p(y | state k) for k < n, with statistics at table[i * stride + k], of a
    // wide family at table[k * stride + i].
    virtual void fill(const double *table, int64_t stride, int32_t n, const double *y,
                      double *out) const = 0;
    // out[k] += log p(y | state k) for k <= n, with the statistics of states k < n contiguous by
    // state, those of state n at `last`.
    virtual void fill_rows(const double *rows, int32_t n, const double *last,
                           const double *y, double *out) const {
        if (is_wide) fill(rows, width, n, y, out);
        for (int32_t k = is_wide ? n : 0; k <= n; ++k)
            out[k] += log_predictive(k < n ? rows + static_cast<int64_t>(k) * width : last,
                                     1, y);
    }
    // Size of terms of log_predictive that all but cancel, if there are such: its error is that of
    // their rounding.
    virtual double cancelled(const double *, int64_t) const { return 0.0; }
    // The part of log p(y | s) that does not depend on s, left out by log_marginal.
    virtual double log_constant(const double *) const { return 0.0; }
    // Whether statistics are possible after a sequence of additions, as far as computations
    // depend on it.
    virtual bool is_sound(const double *s, int64_t stride) const = 0;

    // Draw parameters p from their posterior given s; the same functions given p.
    virtual void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
                      bitgen_t *g) const = 0;
    bool draws_parameters = true;   // false without densities: for samplers that need them
    // Whether threads may call fill_log_densities at the same time, and add_rows of other states.
    bool is_concurrent = false;
    virtual double log_density(const double *p, int64_t stride, const double *y) const {
        double lp = 0.0;
        fill_densities(p, is_wide ? parameter_width : stride, 1, y, &lp);
        return lp;
    }
    virtual void fill_densities(const double *table, int64_t stride, int32_t n,
                                const double *y, double *out) const = 0;
    // Draw the values of row y given parameters.
    virtual void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const = 0;

    // Set the values of row y to the means of their predictive distribution; for a Student's t
    // without a mean its centre.
    virtual void mean(const double *s, int64_t stride, double *y) const = 0;
    int32_t n_options = 0;          // of choices 0, 1, ... in the one column
    bool is_circular = false;       // columns are angles
    // The predictive distributions of the columns given the inputs of y, whose values are scratch: the
    // means; of angles the means of exp(i angle), cosine before sine; of choices all probabilities.
    virtual void fill_predictives(const double *s, int64_t stride, double *y, double *out) const {
        mean(s, stride, y);
        std::copy_n(y, n_columns, out);
    }
    // Draw the values of row y from the predictive distribution; `parameters` is scratch.
    void draw_predictive(const double *s, int64_t stride, std::vector<double> *parameters,
                         double *y, bitgen_t *g) const {
        parameters->resize(parameter_width);
        draw(s, stride, parameters->data(), 1, g);
        emit(parameters->data(), 1, y, g);
    }
};

// A family with hyperparameters, the common prior of all states, that chains may learn, and with
// posterior means of parameters.
class LearntFamily : public Family {
  public:
    LearntFamily() { learnt = this; }

    int32_t n_hyperparameters = 0;
    bool draws_hyperparameters = false;     // some of them are not fixed
    virtual void read_hyperparameters(double *out) const = 0;
    // Set them; false, without a change, if they are impossible for a prior.
    virtual bool set_hyperparameters(const double *in) = 0;
    // Draw those that are not fixed from their posterior given the statistics of n states, at
    // table[i * stride + places[k]]; with weights WeightedFamily::draw_given does.
    virtual void draw_hyperparameters(const double *, int64_t, const int64_t *, int32_t,
                                      bitgen_t *) {}
    // Adapt a state's statistics to changed hyperparameters; false if they have to be recomputed
    // from the observations.
    virtual bool refresh(double *, int64_t) const { return false; }
    // Posterior means of a state's n_expected parameters, in the users' parametrisation.
    int32_t n_expected = 0;
    virtual void expect(const double *s, int64_t stride, double *out) const = 0;
};

// A family whose rows are linear in parameters: many rows at once, rows of which a part is observed,
// and entries that are filled.
class LinearFamily : public LearntFamily {
  public:
    LinearFamily() { linear = this; }

    // remove_predicted for n rows, one after the other at y, together; or false, with s unchanged.
    virtual bool remove_together(double *, int64_t, const double *, int64_t, double *) const {
        return false;
    }
    // Add rows to sums, by which Family::add_rows adds them.
    int32_t n_sums = 0;
    virtual void add_sums(const double *, const int64_t *, int64_t, double *) const {}
    // Rows that a wide family evaluates together.
    static constexpr int32_t kRows = 16;
    // As fill for n_rows <= kRows rows, one after the other at y: out[r * out_stride + k].  Missing
    // ones may get anything.
    virtual void fill_together(const double *table, int64_t stride, int32_t n, const double *y,
                               int32_t n_rows, double *out, int64_t out_stride) const {
        for (int32_t r = 0; r < n_rows; ++r)
            fill(table, stride, n, y + r * row_width(), out + r * out_stride);
    }
    // out[i] = log p(y | parameters of states[i]), with the same table, of which `stride` is at
    // least the number of states unless the family is wide.
    virtual void fill_log_densities(const double *table, int64_t stride, const int32_t *states,
                                    int32_t n, const double *y, double *out) const {
        for (int32_t i = 0; i < n; ++i)
            out[i] = is_wide ? log_density(table + states[i] * stride, 1, y)
                             : log_density(table + states[i], stride, y);
    }

    // ---- missing entries

    // Family::is_unseen, of families that need whole rows for statistics, but evaluate what is
    // observed of a partial one.
    virtual bool has_no_part(const double *y) const { return is_missing(y); }
    // Draw the missing values of a row that is missing but not unseen, and its weights, from the
    // predictive distribution given s and what is observed of it, so that it can be added.
    virtual void complete(const double *, double *, bitgen_t *) const {}
    // The number of earlier rows in a row of a Gaussian family, whose missing entries are drawn;
    // otherwise -1.  Entries of rows without all of these have by column the mean and standard
    // deviation gap_units[0] and [1].
    int32_t gap_order = -1;
    const double *gap_units[2] = {nullptr, nullptr};
    bool is_by_column = false;      // number i of the white noise below depends on entry i alone
    // For each of n_columns numbers that are white noise given parameters, contiguous: an
    // intercept, and a coefficient per entry of the row.
    virtual void fill_coefficients(const double *, double *) const {}
};

inline bool Family::is_unseen(const double *y) const {
    return linear ? linear->has_no_part(y) : is_missing(y);
}

}  // namespace skihmm

#include "_weighted_family.hpp"
