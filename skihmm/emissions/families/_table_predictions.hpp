// Predictions of tables, column by column.  The end of _conjugate_table.hpp.
#pragma once
#include <cstdint>
#include <vector>

namespace skihmm {

inline std::vector<PredictedColumn> ConjugateTable::columns() const {
    return {static_cast<size_t>(family_->n_columns),
            PredictedColumn{family_->n_options, family_->is_circular}};
}
inline void ConjugateTable::fill_predictives(const int32_t *slots, int64_t n, const double *inputs,
                                             double *out) {
    const int32_t d = family_->n_columns;
    const int32_t size = PredictedColumn{family_->n_options, family_->is_circular}.n_numbers();
    std::vector<double> row(data_.width()), numbers(d * size);
    for (int64_t i = 0; i < n; ++i) {
        const int32_t u = data_.open_row(inputs ? inputs + i * n_inputs() : nullptr, row.data());
        family_->fill_predictives(&table_[place(slots[i])], step(), row.data(), numbers.data());
        for (int32_t c = 0; c < d; ++c)
            for (int32_t j = 0; j < size; ++j)
                out[(c * n + i) * size + j] = data_.restored(u, c, numbers[c * size + j]);
    }
}
inline void ConjugateTable::draw_values(const int32_t *slots, int64_t n, const double *inputs,
                                        const int32_t *, double *out, bitgen_t *g) {
    std::vector<double> row(data_.width());
    for (int64_t i = 0; i < n; ++i) {
        const int32_t u = data_.open_row(inputs ? inputs + i * n_inputs() : nullptr, row.data());
        family_->draw_predictive(&table_[place(slots[i])], step(), &scratch_, row.data(), g);
        for (int32_t c = 0; c < family_->n_columns; ++c)
            out[c * n + i] = data_.restored(u, c, row[c]);
    }
}

}  // namespace skihmm
