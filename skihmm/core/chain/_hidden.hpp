// Numbers that are drawn beside the labels and kept during a sweep: weights of rows, fillings of
// missing entries, offsets of subjects.  The rows contain them, or depend on them; nothing else in a
// chain does.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "numpy/random/bitgen.h"

namespace skihmm {

// The rows of a chain, which hidden numbers change: values, inputs, and perhaps weights; all but
// these are n_entries.
struct Rows {
    double *values;
    int64_t n;
    int32_t width, n_entries, n_columns;
};

class Hidden {
  public:
    // coefficients(t) of the white noise of row t given one draw of its state's parameters and its
    // weights (LinearFamily::fill_coefficients); null for a row without likelihood.
    using Coefficients = std::function<const double *(int64_t t)>;

    virtual ~Hidden() = default;
    // Their entry in a record.
    virtual const char *name() const = 0;
    // Whether rows of other data depend on them too: then they are in the emission's record, with
    // the hyperparameters, and only chains draw them.
    virtual bool is_of_draws() const { return false; }
    virtual int64_t size() const = 0;
    virtual void read(double *out) const = 0;
    std::vector<double> numbers() const {
        std::vector<double> out(size());
        read(out.data());
        return out;
    }
    // Set them, and the rows.
    virtual void write(const double *in) = 0;
    // Draw them, which changes the rows; `means` gets their conditional means.  By default a family
    // draws them with its hyperparameters, given the same parameters of the states.
    virtual int64_t n_means() const { return 0; }
    virtual void draw(const Coefficients &, bitgen_t *, double *) {}
};

// A missing entry that is filled; its sequence ends before step `end`.
struct Gap {
    int64_t t;
    int32_t column;
    int64_t end;
};

}  // namespace skihmm
