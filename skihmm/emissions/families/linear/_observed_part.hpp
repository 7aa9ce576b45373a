// The observed part of a row of a multivariate Student's t.
//
// Let e be the row less its location and Psi = R D R^T, R of unit diagonal, its scale, so that
//
//     log p = const - d/2 log(leverage) - power log(1 + e^T Psi^-1 e / leverage).
//
// The observed part o of d columns has the block of Psi in its place, and half a power less per
// column left out; the degrees of freedom, 2 power - d, stay the same.  Given it, the missing part
// is a Student's t again.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_family_setting.hpp"
#include "_linear_algebra.hpp"
#include "_random.hpp"

namespace skihmm {

// A scratch of one thread; `sort` first, then `factorise`, then the rest.
class ObservedPart {
  public:
    // The columns of a row: first observed, then missing columns.
    void sort(int32_t d, const double *y) {
        columns_.clear();
        for (const bool missing : {false, true}) {
            if (missing) n_ = static_cast<int32_t>(columns_.size());
            for (int32_t i = 0; i < d; ++i)
                if (std::isnan(y[i]) == missing) columns_.push_back(i);
        }
        residuals_.resize(d);
    }
    int32_t n() const { return n_; }
    const int32_t *begin() const { return columns_.data(); }
    const int32_t *end() const { return columns_.data() + n_; }
    // The root of the scale of the observed columns, or of `all`: R(i, l) for l < i, and 1 / D.  By
    // rotations, because sums of products lose the difference of nearly equal columns.
    template <class R, class Inverse>
    void factorise(R entry, Inverse inverse, bool all = false) {
        const int32_t d = static_cast<int32_t>(columns_.size());
        size_ = all ? d : n_;
        root_.assign(static_cast<size_t>(size_) * size_, 0.0);
        row_.resize(size_);
        for (int32_t c = 0; c < d; ++c) {
            const int32_t l = columns_[c];
            const double deviation = 1.0 / std::sqrt(inverse(l));
            const auto value = [&](int32_t i) {
                return i < l ? 0.0 : i == l ? deviation : entry(i, l) * deviation;
            };
            // Rows of observed columns are a root already, as these are sorted and come first.
            double *row = c < n_ ? &root_[static_cast<size_t>(c) * size_] : row_.data();
            for (int32_t a = c < n_ ? c : 0; a < size_; ++a) row[a] = value(columns_[a]);
            if (c >= n_) add_to_root(size_, row, root_.data());
        }
    }
    // |L^-1 e|^2 of the observed columns, L L^T their scale; `residual` gives e by column.
    template <class Residual> double squares(Residual residual) {
        double total = 0.0;
        for (int32_t a = 0; a < n_; ++a) {
            double value = residual(columns_[a]);
            for (int32_t b = 0; b < a; ++b) value -= root_[b * size_ + a] * residuals_[b];
            residuals_[a] = value / root_[a * size_ + a];
            total += residuals_[a] * residuals_[a];
        }
        return total;
    }
    // log p without the terms in the leverage, of a row with this power; its own power.
    double power(double whole) const {
        return whole - 0.5 * static_cast<double>(columns_.size() - n_);
    }
    double norm(double whole) const {
        const double half = 0.5 * n_;
        double lp = log_rising(power(whole) - half, half) - half * kLogPi;
        for (int32_t a = 0; a < n_; ++a) lp -= std::log(root_[a * size_ + a]);
        return lp;
    }
    // After `factorise` of all columns, and `squares`: draw the residuals of the missing columns.
    template <class Take>
    void draw(double whole, double leverage, double squares, bitgen_t *g, Take take) {
        const double chi = 2.0 * random_standard_gamma(g, power(whole));
        const double deviation = std::sqrt((leverage + squares) / chi);
        for (int32_t a = n_; a < size_; ++a) {
            residuals_[a] = deviation * random_standard_normal(g);
            double value = 0.0;
            for (int32_t b = 0; b <= a; ++b) value += root_[b * size_ + a] * residuals_[b];
            take(columns_[a], value);
        }
    }

  private:
    std::vector<int32_t> columns_;
    std::vector<double> root_, row_, residuals_;
    int32_t n_ = 0, size_ = 0;
};

}  // namespace skihmm
