// Coefficients of the white noise of rows, given their states.
#pragma once
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "_family.hpp"

namespace skihmm {

// One draw of every state's parameters, made at the first of the state's rows.
class WhiteNoise {
  public:
    WhiteNoise(const Family &family, int32_t n_slots)
        : family_(family), n_entries_(family.data_width()),
          width_(static_cast<int64_t>(family.n_columns) * (1 + n_entries_)),
          p_(family.parameter_width), table_(n_slots * width_), weighted_(width_),
          is_drawn_(n_slots, 0) {}
    // LinearFamily::fill_coefficients for a row of slot k, whose statistics are at s, times the root of
    // the row's weight, which is drawn if it is unknown.  Valid until the next call.
    const double *coefficients(int32_t k, const double *s, int64_t stride, const double *row,
                               bitgen_t *g) {
        double *of_slot = &table_[k * width_];
        if (!is_drawn_[k]) {
            family_.draw(s, stride, p_.data(), 1, g);
            family_.linear->fill_coefficients(p_.data(), of_slot);
            is_drawn_[k] = 1;
        }
        if (!family_.weighted) return of_slot;
        double weight = row[n_entries_], squares = 0.0;
        if (std::isnan(weight)) {
            for (const double *c = of_slot; c < of_slot + width_; c += 1 + n_entries_) {
                const double noise = std::inner_product(c + 1, c + 1 + n_entries_, row, *c);
                squares += noise * noise;
            }
            weight = family_.weighted->draw_weight(squares, family_.n_columns, g);
        }
        for (int64_t i = 0; i < width_; ++i) weighted_[i] = std::sqrt(weight) * of_slot[i];
        return weighted_.data();
    }

  private:
    const Family &family_;
    const int32_t n_entries_;
    const int64_t width_;
    std::vector<double> p_, table_, weighted_;
    std::vector<char> is_drawn_;
};

}  // namespace skihmm
