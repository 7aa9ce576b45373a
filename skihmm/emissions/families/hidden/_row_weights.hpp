// Weights of rows, given which a likelihood is conjugate (core/chain/_weighted_family.hpp).
#pragma once
#include <algorithm>

#include "_hidden.hpp"

namespace skihmm {

class RowWeights final : public Hidden {
  public:
    explicit RowWeights(const Rows &rows) : rows_(rows), per_row_(rows.width - rows.n_entries) {}
    const char *name() const override { return "weights"; }
    int64_t size() const override { return rows_.n * per_row_; }
    void read(double *out) const override {
        for (int64_t t = 0; t < rows_.n; ++t) out = std::copy_n(of(t), per_row_, out);
    }
    void write(const double *in) override {
        for (int64_t t = 0; t < rows_.n; ++t, in += per_row_) std::copy_n(in, per_row_, of(t));
    }

  private:
    double *of(int64_t t) const { return rows_.values + t * rows_.width + rows_.n_entries; }

    Rows rows_;
    int32_t per_row_;
};

}  // namespace skihmm
