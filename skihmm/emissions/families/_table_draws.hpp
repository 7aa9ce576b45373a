// Draws of tables: hidden numbers, and predictions by column.  The end of _conjugate_table.hpp.
#pragma once
#include <cstdint>
#include <vector>

namespace skihmm {

// One draw of the parameters of states is made for it.
inline std::vector<double> ConjugateTable::draw_hidden(const int32_t *slots, bitgen_t *g,
                                                       bool is_chain) {
    std::vector<double> means(data_.n_means());
    WhiteNoise noise(*family_, n_slots);
    const auto coefficients = [&](int64_t t) -> const double * {
        if (family_->is_missing(data_[t])) return nullptr;
        return noise.coefficients(slots[t], &table_[place(slots[t])], step(), data_[t], g);
    };
    // Skip rows of a new state: its parameters are prior draws and carry no information on
    // shared effects.
    const auto of_states = [&](int64_t t) {
        return slots[t] == kNew ? nullptr : coefficients(t);
    };
    data_.draw_hidden(coefficients, is_chain ? Hidden::Coefficients(of_states) : nullptr, g,
                      means.data());
    if (is_chain && data_.shifts()) draw_shifts(slots, g);
    forget_ahead();
    data_.restore(&means);
    return means;
}
inline void ConjugateTable::draw_shifts(const int32_t *slots, bitgen_t *g) {
    const int32_t width = family_->parameter_width;
    std::vector<double> parameters(static_cast<size_t>(n_slots) * width);
    for (int32_t k = kFirst; k < n_slots; ++k)
        family_->draw(&table_[place(k)], step(), &parameters[static_cast<size_t>(k) * width], 1, g);
    std::vector<int32_t> states(slots, slots + n_steps);
    for (int64_t t = 0; t < n_steps; ++t)
        if (data_.is_missing(t) || states[t] < kFirst) states[t] = -1;
    family_->weighted->draw_shifts(parameters.data(), states.data(), data_.values(),
                                   data_.shifts(), g);
}
inline std::vector<PredictedColumn> ConjugateTable::columns() const {
    return std::vector<PredictedColumn>(family_->n_columns,
                                        {family_->n_options, family_->is_circular});
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
