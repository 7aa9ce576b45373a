// Families that are conjugate given one more variable per value, a weight, which is drawn between
// sweeps and kept during one.  Weights follow the inputs.  A new observation has weight NaN; its
// predictive probability integrates over the weight.  The end of _family.hpp.
#pragma once
#include <cstdint>
#include <functional>

#include "numpy/random/bitgen.h"

namespace skihmm {

// What an observation says of its linear predictor psi: the log likelihood is, up to a constant,
// kappa psi - b log(2 cosh(psi / 2)).  log_mean is that of a count, which is NaN for others.
struct LogisticRow { double kappa, b, psi, log_mean; };
// What is added to linear predictors of rows, and drawn beside the parameters of the states.
class Shifts {
  public:
    // Term i of row t under the parameters of its state; false if nothing of it is observed.
    using RowReader = std::function<bool(int64_t t, int32_t i, LogisticRow *row)>;

    virtual ~Shifts() = default;
    // Draw them, weights of rows integrated out, which changes the rows.
    virtual void draw_shifts(const RowReader &read, bitgen_t *g) = 0;
};

// Beside a LearntFamily with n_weights > 0.
class WeightedFamily {
  public:
    virtual ~WeightedFamily() = default;
    // Given one draw of the parameters of n states, contiguous, and the state of every row, -1 if it
    // is missing, draw the hyperparameters that are not fixed, shifts if there are any (NULL: none),
    // and then the weights of all rows.
    virtual void draw_given(const double *parameters, int32_t n, const int32_t *states,
                            double *values, int64_t n_steps, Shifts *shifts, bitgen_t *g) = 0;
    // The shifts alone.
    virtual void draw_shifts(const double *, const int32_t *, const double *, Shifts *,
                             bitgen_t *) const {}
    // Set the weights of a row, of which some may be missing, before any are drawn.
    virtual void open_weights(double *y) const = 0;
    // Draw the weights of a row that is not missing and follows the predictive distribution given s.
    virtual void draw_weights(const double *s, double *y, bitgen_t *g) const = 0;
    // log p(rows steps[0], steps[1], ... of `values`), none of them missing, which are those of a
    // state, whatever their weights; or an approximation.
    virtual double log_unweighted(const double *s, const double *values, const int64_t *steps,
                                  int64_t n) const = 0;

    // ---- one weight of a row of white noise (LinearFamily::fill_coefficients)

    // A draw if n numbers of the noise are known, by the sum of their squares.
    virtual double draw_weight(double, int32_t, bitgen_t *) const { return 1.0; }
    // A draw if nothing is known.
    virtual double draw_free_weight(bitgen_t *) const { return 1.0; }
    // log of the density of the noise with this sum of squares, its weight integrated out, over that
    // of normal noise of length zero.
    virtual double log_noise(double squares, int32_t) const { return -0.5 * squares; }
};

}  // namespace skihmm
