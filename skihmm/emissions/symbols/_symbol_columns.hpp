// Emissions of columns of symbols: products over many columns exceed the range of a double.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "_context_shape.hpp"
#include "_emission.hpp"

namespace skihmm {

// Columns whose probabilities are multiplied before a logarithm is taken: sixteen factors
// of 1e-18 are still far from underflow.
constexpr size_t kColumnGroup = 16;

class SymbolColumns : public Emission {
  public:
    // Of every column the restaurants of its symbols by depth, of which there is one unless they
    // depend on contexts: concentrations of all depths and of the root; records over states, or
    // other labels of slots; p(symbol | slot) of all symbols; what is wrong, or null.
    std::vector<double> alphas;
    double gamma = 1.0;
    virtual const ContextShape &shape() const = 0;
    virtual int32_t n_symbols(size_t c) const = 0;
    virtual void set_concentrations(std::vector<double> lower, double top) = 0;
    virtual ContextShape::Levels record(size_t c, const std::vector<int32_t> &labels) const = 0;
    virtual void load(size_t c, ContextShape::Levels records) = 0;
    virtual void fill_symbols(size_t c, ContextPlace at, int32_t k, double *out) const = 0;
    virtual const char *check(size_t c) const = 0;
    // Tables of all columns' restaurants of depth d.
    virtual int64_t count_tables(int32_t d) const = 0;
    // Refuse checked records whose customers are not the observations in these states.
    void check_customers_of(size_t c, const ContextShape::Levels &records,
                            const std::vector<int32_t> &states, int32_t n_states,
                            const std::string &what) const {
        shape().check_customers_of(records, places_, states.data(), codes_ + c,
                                   static_cast<int64_t>(n_columns_), n_steps, n_states, what);
    }

    double fill_probs(int64_t t, double *out) final {
        if (n_columns_ <= kColumnGroup) {
            multiply_columns(t, 0, n_columns_, out);
            return 0.0;
        }
        SymbolColumns::fill_logs(t, out);
        return fill_floored(n_slots, out, out);
    }
    void fill_logs(int64_t t, double *out) final {
        fill_column_logs(out, [&](size_t start, size_t stop, double *product) {
            multiply_columns(t, start, stop, product);
        });
    }
    void fill_pair(int64_t t, const int32_t *states, double *out) final {
        const Product p[2] = {product(t, states[0]), product(t, states[1])};
        for (int i = 0; i < 2; ++i) out[i] = p[i].value;
        if (p[0].log_scale == 0.0 && p[1].log_scale == 0.0) return;
        // Many columns: relative to the larger of the two.
        const double logs[2] = {p[0].log(), p[1].log()};
        fill_floored_pair(logs, out);
    }
    void fill_log_pair(int64_t t, const int32_t *states, double *out) final {
        for (int i = 0; i < 2; ++i) out[i] = product(t, states[i]).log();
    }

  protected:
    // codes[t * n_columns + c]: symbol of step t in column c, -1: missing; they must outlive
    // this.  A prior rate of zero: the concentrations are kept.
    SymbolColumns(const int32_t *codes, int64_t n_steps, size_t n_columns, double prior_shape,
                  double prior_rate)
        : codes_(codes), n_columns_(n_columns), prior_shape_(prior_shape),
          prior_rate_(prior_rate), hints_(n_steps * n_columns, -1) {
        this->n_steps = n_steps;
    }
    // The product of p(y[t, c] | k) over all columns.
    virtual Product product(int64_t t, int32_t k) const = 0;
    // out[k] = product over columns start .. stop - 1 of p(y[t, c] | k).
    virtual void multiply_columns(int64_t t, size_t start, size_t stop, double *out) const = 0;

    int32_t code(int64_t t, size_t c) const { return codes_[t * n_columns_ + c]; }
    int32_t *hint(int64_t t, size_t c) { return &hints_[t * n_columns_ + c]; }
    // As fill_logs, by any function like multiply_columns.
    template <class Multiply> void fill_column_logs(double *out, Multiply multiply) {
        if (n_columns_ <= kColumnGroup) {
            multiply(0, n_columns_, out);
            take_logs(n_slots, 0.0, out);
            return;
        }
        logs_.resize(n_slots);
        const double *product = logs_.data();
        std::fill_n(out, n_slots, 0.0);
        for (size_t c = 0; c < n_columns_; c += kColumnGroup) {
            multiply(c, std::min(c + kColumnGroup, n_columns_), logs_.data());
            for (int32_t k = 0; k < n_slots; ++k) out[k] += std::log(product[k]);
        }
    }

    const int32_t *const codes_;
    const size_t n_columns_;
    std::vector<ContextPlace> places_;      // by step; none without contexts
    const double prior_shape_, prior_rate_;
    std::vector<int32_t> hints_;            // cell of step t in column c (Restaurants::add)
    std::vector<double> logs_;              // scratch
};

}  // namespace skihmm
