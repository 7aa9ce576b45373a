// Families whose rows are linear in parameters: sums over rows and many rows at once, rows of which
// a part is observed, and entries that are filled.  The end of _family.hpp.
#pragma once
#include <cstdint>

namespace skihmm {

class LinearFamily : public LearntFamily {
  public:
    LinearFamily() { linear = this; }

    // ---- rows at once

    // Family::predict_and_add and remove_and_predict, in one pass.
    virtual double add_predicted(double *s, int64_t stride, const double *y) const {
        return predict_and_add(s, stride, y);
    }
    virtual bool remove_predicted(double *s, int64_t stride, const double *y, double *lp) const {
        return remove_and_predict(s, stride, y, lp);
    }
    // The latter for n rows, one after the other at y, together; or false, with s unchanged.
    virtual bool remove_together(double *, int64_t, const double *, int64_t, double *) const {
        return false;
    }
    // Add rows to sums, by which Family::add_rows adds them.
    int32_t n_sums = 0;
    virtual void add_sums(const double *, const int64_t *, int64_t, double *) const {}
    // Rows that a wide family evaluates together.
    static constexpr int32_t kRows = 16;
    // As fill for n_rows <= kRows rows, one after the other at y: out[r * out_stride + k].  Missing
    // ones may get anything.
    virtual void fill_together(const double *table, int64_t stride, int32_t n, const double *y,
                               int32_t n_rows, double *out, int64_t out_stride) const {
        for (int32_t r = 0; r < n_rows; ++r)
            fill(table, stride, n, y + r * row_width(), out + r * out_stride);
    }

    // ---- missing entries

    // Family::is_unseen, of families that need whole rows for statistics, but evaluate what is
    // observed of a partial one.
    virtual bool has_no_part(const double *y) const { return is_missing(y); }
    // Draw the missing values of a row that is missing but not unseen, and its weights, from the
    // predictive distribution given s and what is observed of it, so that it can be added.
    virtual void complete(const double *, double *, bitgen_t *) const {}
    // The number of earlier rows in a row of a Gaussian family, whose missing entries are drawn;
    // otherwise -1.  Entries of rows without all of these have by column the mean and standard
    // deviation gap_units[0] and [1].
    int32_t gap_order = -1;
    const double *gap_units[2] = {nullptr, nullptr};
    bool is_by_column = false;      // number i of the white noise below depends on entry i alone
    // For each of n_columns numbers that are white noise given parameters, contiguous: an
    // intercept, and a coefficient per entry of the row.
    virtual void fill_coefficients(const double *, double *) const {}
};

inline bool Family::is_unseen(const double *y) const {
    return linear ? linear->has_no_part(y) : is_missing(y);
}

}  // namespace skihmm
