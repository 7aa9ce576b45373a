// A conjugate family with functions in Python.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "_family.hpp"

namespace skihmm {

// A function has raised an exception, which is set in Python; Cython propagates it.
struct PythonError {};

// Calls of the object behind `self`; -1 if an exception is set.  Every call holds the GIL.
struct PythonCalls {
    void *self = nullptr;
    // out[k] += log p(y | statistics of state k), or given its parameters.
    int (*fill)(void *, const double *table, int64_t stride, int32_t n, const double *y,
                double *out) = nullptr;
    int (*fill_rows)(void *, const double *rows, int32_t n, const double *last,
                     const double *y, double *out) = nullptr;
    int (*fill_densities)(void *, const double *table, int64_t stride, int32_t n,
                          const double *y, double *out) = nullptr;
    int (*add)(void *, double *s, int64_t stride, const double *y) = nullptr;
    // 1: the statistics have to be recomputed.
    int (*remove)(void *, double *s, int64_t stride, const double *y) = nullptr;
    int (*log_marginal)(void *, const double *s, int64_t stride, double *out) = nullptr;
    // 0 or 1.
    int (*is_sound)(void *, const double *s, int64_t stride) = nullptr;
    int (*draw)(void *, const double *s, int64_t stride, double *p, int64_t p_stride,
                bitgen_t *g) = nullptr;
    int (*emit)(void *, const double *p, int64_t stride, double *y, bitgen_t *g) = nullptr;
    int (*mean)(void *, const double *s, int64_t stride, double *y) = nullptr;
    int (*next_inputs)(void *, const double *row, double *inputs) = nullptr;
};

class PythonFamily final : public Family {
  public:
    // empty: the statistics of a state without observations.
    PythonFamily(const PythonCalls &calls, int32_t columns, int32_t inputs, int32_t n,
                 const double *empty, int32_t n_parameters, bool takes_partial_rows)
        : calls_(calls), empty_(empty, empty + n), takes_partial_rows_(takes_partial_rows) {
        n_columns = columns;
        n_inputs = inputs;
        width = n;
        parameter_width = n_parameters;
    }
    void reset(double *s, int64_t stride) const override {
        for (int32_t i = 0; i < width; ++i) s[i * stride] = empty_[i];
    }
    bool is_missing(const double *y) const override {
        const int32_t n = takes_partial_rows_ ? n_columns : row_width();
        int32_t n_missing = 0;
        for (int32_t c = 0; c < n; ++c) n_missing += std::isnan(y[c]);
        return takes_partial_rows_ ? n_missing == n : n_missing > 0;
    }
    double log_predictive(const double *s, int64_t stride, const double *y) const override {
        double lp = 0.0;
        if (!is_missing(y)) check(calls_.fill(calls_.self, s, stride, 1, y, &lp));
        return lp;
    }
    void add(double *s, int64_t stride, const double *y) const override {
        check(calls_.add(calls_.self, s, stride, y));
    }
    bool remove(double *s, int64_t stride, const double *y) const override {
        return check(calls_.remove(calls_.self, s, stride, y)) == 0;
    }
    double log_marginal(const double *s, int64_t stride) const override {
        double lp = 0.0;
        check(calls_.log_marginal(calls_.self, s, stride, &lp));
        return lp;
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        check(calls_.fill(calls_.self, table, stride, n, y, out));
    }
    void fill_rows(const double *rows, int32_t n, const double *last, const double *y,
                   double *out) const override {
        check(calls_.fill_rows(calls_.self, rows, n, last, y, out));
    }
    bool is_sound(const double *s, int64_t stride) const override {
        return check(calls_.is_sound(calls_.self, s, stride)) == 1;
    }
    void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
              bitgen_t *g) const override {
        check(calls_.draw(calls_.self, s, stride, p, p_stride, g));
    }
    double log_density(const double *p, int64_t stride, const double *y) const override {
        double lp = 0.0;
        if (!is_missing(y)) check(calls_.fill_densities(calls_.self, p, stride, 1, y, &lp));
        return lp;
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        check(calls_.fill_densities(calls_.self, table, stride, n, y, out));
    }
    void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const override {
        check(calls_.emit(calls_.self, p, stride, y, g));
    }
    void mean(const double *s, int64_t stride, double *y) const override {
        check(calls_.mean(calls_.self, s, stride, y));
    }
    void next_inputs(const double *row, double *inputs) const override {
        if (n_inputs > 0) check(calls_.next_inputs(calls_.self, row, inputs));
    }

  private:
    static int check(int status) {
        if (status < 0) throw PythonError();
        return status;
    }

    PythonCalls calls_;
    std::vector<double> empty_;
    bool takes_partial_rows_;
};

}  // namespace skihmm
