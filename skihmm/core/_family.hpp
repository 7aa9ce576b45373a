// Conjugate families: a likelihood with its prior, the parameters integrated out, as a few
// numbers per state.
//
// The numbers of state k stand at s[i * stride], i < width: side by side for all states in a
// chain, whose hot loop evaluates one observation under every state, and one after the other
// in a particle.  They hold the sufficient statistics and whatever of the predictive
// distribution does not depend on the next observation.
#pragma once
#include <cstdint>
#include <vector>

#include "_math.hpp"
#include "numpy/random/bitgen.h"

namespace skihmm {

class Family {
  public:
    virtual ~Family() = default;

    int32_t n_columns = 0;          // numbers per observation; NaN is missing
    int32_t width = 0;              // numbers per state
    int32_t parameter_width = 0;    // numbers of a state's drawn parameters

    // A state that nothing was observed in.
    virtual void reset(double *s, int64_t stride) const = 0;
    // Nothing of y is observed.
    virtual bool is_missing(const double *y) const = 0;
    // log p(y | s): predictive density or probability; 0 if y is missing.
    virtual double log_predictive(const double *s, int64_t stride,
                                  const double *y) const = 0;
    // y joins.
    virtual void add(double *s, int64_t stride, const double *y) const = 0;
    // All of `values`, rows steps[0], steps[1], ..., join a state that nothing was observed in;
    // none of them is missing.
    virtual void add_rows(double *s, int64_t stride, const double *values,
                          const int64_t *steps, int64_t n) const {
        for (int64_t i = 0; i < n; ++i) add(s, stride, values + steps[i] * n_columns);
    }
    // y leaves.  False if rounding errors have become too large for the numbers to be used:
    // then they have to be worked out again from the observations that stay.
    virtual bool remove(double *s, int64_t stride, const double *y) const = 0;
    // log p(all that was added).
    virtual double log_marginal(const double *s, int64_t stride) const = 0;
    // out[k] += log p(y | state k) for k < n, the numbers of state k at table[i * stride + k].
    virtual void fill(const double *table, int64_t stride, int32_t n, const double *y,
                      double *out) const = 0;
    // out[k] += log p(y | state k) for k <= n, the numbers of state k < n one state after the
    // other, those of state n at `last`.
    virtual void fill_rows(const double *rows, int32_t n, const double *last,
                           const double *y, double *out) const {
        for (int32_t k = 0; k <= n; ++k)
            out[k] += log_predictive(k < n ? rows + static_cast<int64_t>(k) * width : last,
                                     1, y);
    }
    // The part of log p(y | s) that does not depend on s, left out by log_marginal.
    virtual double log_constant(const double *) const { return 0.0; }
    // Numbers of a state that can be what a sequence of additions gave, as far as it matters
    // for what may be computed with them.
    virtual bool is_sound(const double *s, int64_t stride) const = 0;

    // The same given parameters p, drawn from their posterior given s.
    virtual void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
                      bitgen_t *g) const = 0;
    bool draws_parameters = true;   // false without densities: for samplers that need them
    virtual double log_density(const double *p, int64_t stride, const double *y) const = 0;
    virtual void fill_densities(const double *table, int64_t stride, int32_t n,
                                const double *y, double *out) const = 0;
    // An observation given parameters.
    virtual void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const = 0;

    // ---- hyperparameters: the prior that all states share

    int32_t n_hyperparameters = 0;
    bool draws_hyperparameters = false;     // some of them have no fixed value
    virtual void read_hyperparameters(double *) const {}
    // False, and nothing changes, if no prior has them.
    virtual bool set_hyperparameters(const double *) { return true; }
    // Draw those without a fixed value from their posterior given the statistics of n states,
    // at table[i * stride + states[k]].
    virtual void draw_hyperparameters(const double *, int64_t, const int32_t *, int32_t,
                                      bitgen_t *) {}
    // Adapt a state's numbers to changed hyperparameters; false if they have to be worked out
    // from the observations.
    virtual bool refresh(double *, int64_t) const { return false; }

    // Posterior means of a state's parameters, as users want to see them: n_expected numbers.
    int32_t n_expected = 0;
    virtual void expect(const double *, int64_t, double *) const {}

    // Mean of the predictive distribution, of every column; its centre where Student's t has
    // too few degrees of freedom for a mean.
    virtual void mean(const double *s, int64_t stride, double *out) const = 0;
    // An observation from the predictive distribution; `parameters` is scratch.
    void draw_predictive(const double *s, int64_t stride, std::vector<double> *parameters,
                         double *y, bitgen_t *g) const {
        parameters->resize(parameter_width);
        draw(s, stride, parameters->data(), 1, g);
        emit(parameters->data(), 1, y, g);
    }
};

}  // namespace skihmm
