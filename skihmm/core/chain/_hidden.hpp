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
    // weights (Family::fill_coefficients); null for a row without likelihood.
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

// All hidden numbers of an emission; statistics follow by `Emission::recount`.
class HiddenNumbers {
  public:
    virtual ~HiddenNumbers() = default;
    virtual size_t n_hidden() const = 0;
    virtual const Hidden *hidden(size_t i) const = 0;
    virtual void set_hidden(size_t i, const double *in) = 0;
    // The numbers of draws, NULL without; statistics follow these by `Emission::load_shared` too.
    virtual const Hidden *of_draws() const = 0;
    virtual void set_of_draws(const std::vector<double> &numbers) = 0;
    // Fill missing entries, with zeros before others are set.
    virtual void fill_entries(const std::vector<Gap> &gaps) = 0;
    // Set weights that are possible, of all rows.
    virtual void open_weights() = 0;
    // Whether `draw_hidden` draws any numbers.
    virtual bool draws_hidden(bool is_chain) const = 0;
    // Draw all numbers that the hyperparameters do not bring, given the slots of all steps; in chains
    // the numbers of draws, too.  Returns the conditional means of filled entries.
    virtual std::vector<double> draw_hidden(const int32_t *slots, bitgen_t *g, bool is_chain) = 0;
    // Convert values of all filled entries to the units of the data.
    virtual void restore(std::vector<double> *filled) const = 0;
};

}  // namespace skihmm
