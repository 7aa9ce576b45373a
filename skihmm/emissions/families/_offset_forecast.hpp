// Cumulative probabilities of the values of a row before it is known, by column: in a state, and
// given a belief of the offset, a value is Gaussian if the weight of the row is given.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_cholesky.hpp"
#include "_offset_part.hpp"

namespace skihmm {

// With the noise W (y - b) + rest of a row, W lower triangular, y = W^-1 (noise - rest) + A b, A
// the identity without earlier rows.  Earlier values that are missing are at their mean, as in
// predictive distributions of known subjects.
class OffsetForecast {
  public:
    explicit OffsetForecast(const OffsetPart &part)
        : part_(part), d_(part.d), width_(part.family.data_width()),
          n_shifted_(d_ * (1 + std::max(0, part.family.linear->gap_order))), centre_(d_), variances_(d_),
          roots_(part.is_by_column ? 0 : d_ * d_), slopes_(roots_.size()), column_(d_),
          factor_(part.is_by_column ? 0 : d_ * (d_ + 1) / 2) {}
    // Take a state.
    void open(int32_t k) {
        const double *c = part_.coefficients_of(k), *row = part_.row();
        if (part_.is_by_column) {
            for (int32_t i = 0; i < d_; ++i, c += 1 + width_) {
                centre_[i] = -c[0] / c[1 + i];
                variances_[i] = 1.0 / (c[1 + i] * c[1 + i]);
            }
            return;
        }
        std::fill(roots_.begin(), roots_.end(), 0.0);
        std::fill(slopes_.begin(), slopes_.end(), 0.0);
        for (int32_t i = 0; i < d_; ++i, c += 1 + width_) {
            double *G = &slopes_[i * d_], *root = &roots_[i * d_];
            centre_[i] = -c[0];
            std::copy_n(c + 1, d_, G);
            for (int32_t j = d_; j < width_; ++j) {
                const bool is_seen = !std::isnan(row[j]), is_shifted = j < n_shifted_;
                if (is_seen && is_shifted) G[j % d_] += c[1 + j];
                const double mean = is_shifted ? part_.family.linear->gap_units[0][j % d_] : 0.0;
                centre_[i] -= c[1 + j] * (is_seen ? row[j] : mean);
            }
            // Row i of W^-1 times all of it.
            root[i] = 1.0;
            for (int32_t l = 0; l < i; ++l) {
                const double factor = c[1 + l];
                if (factor == 0.0) continue;
                centre_[i] -= factor * centre_[l];
                for (int32_t j = 0; j <= l; ++j) root[j] -= factor * roots_[l * d_ + j];
                for (int32_t j = 0; j < d_; ++j) G[j] -= factor * slopes_[l * d_ + j];
            }
            const double inverse = 1.0 / c[1 + i];
            centre_[i] *= inverse;
            for (int32_t j = 0; j <= i; ++j) root[j] *= inverse;
            for (int32_t j = 0; j < d_; ++j) G[j] *= inverse;
            variances_[i] = inner_product_of(d_, root, root);
        }
    }
    // Add to `out`, by column, the cumulative probabilities of the row's values times p.
    void add(const double *belief, double w, double p, double *out) {
        const double *m = belief, *P = belief + d_;
        if (!part_.is_by_column) {
            for (int32_t i = 0, at = 0; i < d_; ++i)
                for (int32_t j = 0; j <= i; ++j, ++at) factor_[at] = P[i * d_ + j];
            factorise(d_, factor_.data());
        }
        for (int32_t c = 0; c < d_; ++c) {
            double mean = centre_[c], variance = variances_[c] / w;
            if (part_.is_by_column) {
                mean += m[c];
                variance += 1.0 / P[c];
            } else {
                const double *A = &slopes_[c * d_];
                mean += inner_product_of(d_, A, m);
                std::copy_n(A, d_, column_.begin());
                solve_lower(d_, factor_.data(), column_.data());
                variance += inner_product_of(d_, column_.data(), column_.data());
            }
            const double off = part_.row()[c] - mean;
            if (!std::isnan(off)) out[c] += p * 0.5 * std::erfc(-off / std::sqrt(2.0 * variance));
        }
    }

  private:
    const OffsetPart &part_;
    const int32_t d_, width_, n_shifted_;
    // By state: means without an offset, variances and W^-1, A.
    std::vector<double> centre_, variances_, roots_, slopes_;
    std::vector<double> column_, factor_;       // scratch
};

}  // namespace skihmm
