// An emission whose rows the offset of a subject shifts: white noise of a row in every state, under
// one draw of the states' parameters, and the likelihood of the offset.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_conjugate_table.hpp"
#include "_offset_beliefs.hpp"
#include "_random.hpp"

namespace skihmm {

// A belief of an offset: d means, then the precision, d numbers or, if columns depend on each
// other, d x d and the logarithm of their determinant.
class OffsetPart {
  public:
    const Family &family;
    const int32_t d, n_numbers;     // columns; numbers of a belief
    const bool is_by_column;

    OffsetPart(ConjugateTable &table, int32_t n_slots)
        : family(*table.family), d(family.n_columns),
          n_numbers(family.linear->is_by_column ? 2 * d : d + d * d + 1),
          is_by_column(family.linear->is_by_column),
          table_(table), width_(family.data_width()),
          n_shifted_(d * (1 + std::max(0, family.linear->gap_order))),
          parameters_(static_cast<size_t>(n_slots) * family.parameter_width),
          coefficients_(static_cast<size_t>(n_slots) * d * (1 + width_)), noise_(n_slots * d),
          slopes_(static_cast<size_t>(n_slots) * n_slopes()), squares_(slopes_.size()),
          is_whole_(n_slots, 1), weight_(n_slots, 1.0), numbers_(family.width),
          row_(family.row_width()), new_row_(row_), scratch_(d * (d + 2)) {}

    // Draw the parameters of a state.
    void draw_state(int32_t k, bitgen_t *g) {
        table_.read(k, numbers_.data());
        draw_given_numbers(k, g);
    }
    // Draw parameters of a new state without rows.
    void draw_new_state(bitgen_t *g) {
        family.reset(numbers_.data(), 1);
        draw_given_numbers(kNew, g);
    }
    // Fill a belief without rows.
    void fill_prior(double *belief) const {
        std::fill_n(belief, n_numbers, 0.0);
        for (int32_t c = 0; c < d; ++c) {
            const double precision = 1.0 / table_.data().subjects()->new_variance(c);
            belief[d + (is_by_column ? c : c * (d + 1))] = precision;
            if (!is_by_column) belief[n_numbers - 1] += std::log(precision);
        }
    }
    // Go on to row t; false if nothing of it is observed.
    bool read_row(int64_t t) {
        const double *y = row_.data();
        std::copy_n(table_.data()[t], family.row_width(), row_.begin());
        const bool is_seen = !family.is_unseen(y);
        is_partial_ = is_seen && family.is_missing(y);
        n_missing_ = 0;
        if (is_partial_)
            n_missing_ = static_cast<int32_t>(
                std::count_if(y, y + d, [](double v) { return std::isnan(v); }));
        return is_seen;
    }
    // The log density of the row in a state, the offset zero, but for the noise: the density of
    // normal noise of length zero.
    double weigh_state(int32_t k) {
        const double squares = fill_noise(k);
        if (is_partial_) return log_peak(k);
        return family.log_density(parameters_of(k), 1, row_.data()) + 0.5 * squares;
    }
    // weigh_state for a new state.  Its parameters and the weight of the row are drawn given the
    // row less an offset; the density is corrected for this.
    double weigh_new_state(const double *offset, bitgen_t *g) {
        new_row_ = row_;
        for (int32_t j = 0; j < n_shifted_; ++j) new_row_[j] -= offset[j % d];
        family.reset(numbers_.data(), 1);
        const double lp = family.log_predictive(numbers_.data(), 1, new_row_.data());
        if (is_partial_)
            family.linear->complete(numbers_.data(), new_row_.data(), g);
        else if (family.weighted)
            family.weighted->draw_weights(numbers_.data(), new_row_.data(), g);
        family.add(numbers_.data(), 1, new_row_.data());
        draw_given_numbers(kNew, g);
        fill_noise(kNew);
        // planted: weight of a new state
        if (family.weighted) weight_[kNew] = new_row_[width_];
        return lp + 0.5 * weight_[kNew] * squares_at(kNew, offset);
    }
    // Draw the weight of the row in a state given an offset; `lp` gets the log factor of the draw.
    double draw_weight(int32_t k, const double *offset, double *lp, bitgen_t *g) {
        if (!family.weighted || k == kNew) return weight_[k];
        const double squares = squares_at(k, offset);
        const double w = family.weighted->draw_weight(squares, d - n_missing_, g);
        *lp += family.weighted->log_noise(squares, d - n_missing_) + 0.5 * w * squares;
        return w;
    }
    // Condition a belief on the row in a state; returns the log density, relative to normal noise
    // of length zero.
    double absorb(int32_t k, double w, double least, double *belief) {
        const double *noise = &noise_[k * d], *G = slopes_of(k);
        if (is_by_column) return absorb_by_column(d, noise, G, w, least, belief, belief + d);
        return absorb_jointly(d, noise, G, &squares_[static_cast<size_t>(k) * d * d], w, belief,
                              belief + d, belief + n_numbers - 1, scratch_.data());
    }
    // Multiplications and additions of `absorb`, roughly.
    double work() const { return is_by_column ? 20.0 * d : d * d * (d / 6.0 + 7.0); }

    const double *row() const { return row_.data(); }
    // For each of d numbers of white noise an intercept, and a coefficient per entry of the row.
    const double *coefficients_of(int32_t k) const {
        return &coefficients_[static_cast<size_t>(k) * d * (1 + width_)];
    }

  private:
    double *parameters_of(int32_t k) {
        return &parameters_[static_cast<size_t>(k) * family.parameter_width];
    }
    int32_t n_slopes() const { return is_by_column ? d : d * d; }
    double *slopes_of(int32_t k) { return &slopes_[static_cast<size_t>(k) * n_slopes()]; }
    void draw_given_numbers(int32_t k, bitgen_t *g) {
        family.draw(numbers_.data(), 1, parameters_of(k), 1, g);
        family.linear->fill_coefficients(parameters_of(k), const_cast<double *>(coefficients_of(k)));
        if (!is_by_column) fill_slopes(k, coefficients_of(k));
    }
    // Derivatives of the noise by the offset, with the opposite sign, by the noise's coefficients.
    void fill_slopes(int32_t k, const double *c) {
        double *G = slopes_of(k);
        std::fill_n(G, d * d, 0.0);
        for (int32_t i = 0; i < d; ++i, c += 1 + width_, G += d)
            for (int32_t j = 0; j < n_shifted_; ++j)
                G[j % d] += c[1 + j];  // planted: lags of a new subject
        fill_squares(d, slopes_of(k), &squares_[static_cast<size_t>(k) * d * d]);
        is_whole_[k] = 1;
    }
    // The coefficients of a state for a partial row.  Rotations of white noise are white noise: after
    // them the first numbers alone depend on the missing values.
    const double *rotated(const double *c) {
        const int32_t step = 1 + width_;
        rotated_.assign(c, c + d * step);
        for (int32_t at = 0, j = 0; at < n_missing_; ++at, ++j) {
            while (!std::isnan(row_[j])) ++j;
            double *top = &rotated_[at * step];
            for (int32_t i = at + 1; i < d; ++i) {
                double *other = &rotated_[i * step];
                if (other[1 + j] == 0.0) continue;
                const double root = std::hypot(top[1 + j], other[1 + j]);
                const double cosine = top[1 + j] / root, sine = other[1 + j] / root;
                for (int32_t l = 0; l < step; ++l) {
                    const double before = top[l];
                    top[l] = cosine * before + sine * other[l];
                    other[l] = cosine * other[l] - sine * before;
                }
                other[1 + j] = 0.0;
            }
        }
        return rotated_.data();
    }
    // log density of a partial row at normal noise of length zero, by the coefficients of this
    // state, which `fill_noise` has rotated last.
    double log_peak(int32_t k) const {
        const int32_t step = 1 + width_;
        double lp = -0.5 * (d - n_missing_) * kLog2Pi;
        for (int32_t i = 0; i < d; ++i) lp += std::log(std::fabs(coefficients_of(k)[i * step + 1 + i]));
        for (int32_t i = 0, j = 0; i < n_missing_; ++i, ++j) {
            while (!std::isnan(row_[j])) ++j;
            lp -= std::log(std::fabs(rotated_[i * step + 1 + j]));
        }
        return lp;
    }
    // Noise of the row in a state; returns the sum of its squares, without missing entries.
    double fill_noise(int32_t k) {
        const double *c = coefficients_of(k);
        double *e = &noise_[k * d], *G = slopes_of(k), squares = 0.0;
        if (is_by_column) {
            for (int32_t i = 0; i < d; ++i, c += 1 + width_) {
                const bool is_seen = !std::isnan(row_[i]);
                e[i] = is_seen ? c[0] + c[1 + i] * row_[i] : 0.0;
                G[i] = is_seen ? c[1 + i] : 0.0;
                squares += e[i] * e[i];
            }
            return squares;
        }
        if (is_partial_) c = rotated(c);
        if (is_partial_ || !is_whole_[k]) fill_slopes(k, c);
        for (int32_t i = 0; i < d; ++i, c += 1 + width_, G += d) {
            e[i] = c[0];
            // (A number may not depend on all entries.)
            for (int32_t j = 0; j < width_; ++j)
                if (c[1 + j] != 0.0) e[i] += c[1 + j] * row_[j];
            if (std::isnan(e[i])) {
                std::fill_n(G, d, e[i] = 0.0);
                is_whole_[k] = 0;
            }
            squares += e[i] * e[i];
        }
        if (!is_whole_[k]) fill_squares(d, slopes_of(k), &squares_[static_cast<size_t>(k) * d * d]);
        return squares;
    }
    double squares_at(int32_t k, const double *offset) {
        const double *e = &noise_[k * d], *G = slopes_of(k);
        double squares = 0.0;
        for (int32_t i = 0; i < d; ++i) {
            const double moved = is_by_column ? G[i] * offset[i]
                                              : inner_product_of(d, G + i * d, offset);
            squares += (e[i] - moved) * (e[i] - moved);
        }
        return squares;
    }

    ConjugateTable &table_;
    const int32_t width_, n_shifted_;
    // By slot; noise and slopes of the row, weights of a new state.
    std::vector<double> parameters_, coefficients_, noise_, slopes_, squares_;
    std::vector<char> is_whole_;    // whether slopes are for a row without missing entries
    std::vector<double> weight_, numbers_, row_, new_row_, scratch_, rotated_;
    // Of the row: whether a part of it is observed, and the number of its missing values then.
    bool is_partial_ = false;
    int32_t n_missing_ = 0;
};

}  // namespace skihmm
