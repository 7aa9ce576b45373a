// The rows of a chain for one family: those that were given, or a copy that hidden numbers change.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "_archive.hpp"
#include "_family.hpp"
#include "_gaps.hpp"
#include "_hidden.hpp"
#include "_row_weights.hpp"
#include "_subject_logs.hpp"
#include "_subjects.hpp"

namespace skihmm {

class DataRows {
  public:
    // The family and the rows, of values and inputs, must outlive it.
    DataRows(const Family &family, const double *values, int64_t n_steps)
        : family_(family), given_(values), values_(values), width_(family.row_width()),
          is_missing_(n_steps) {
        if (family.n_weights > 0) hidden_.push_back(std::make_unique<RowWeights>(copy()));
        read_missing();
    }
    const double *operator[](int64_t t) const { return values_ + t * width_; }
    const double *values() const { return values_; }
    int32_t width() const { return width_; }
    int64_t n_steps() const { return static_cast<int64_t>(is_missing_.size()); }
    // Whether a row says nothing: where rows are only evaluated, nothing of its state.
    bool is_missing(int64_t t) const { return is_missing_[t]; }
    void only_evaluate() {
        only_evaluates_ = true;
        read_missing();
    }
    // Log Jacobian of the subject transform, of one row and of all.
    double log_jacobian(int64_t t) const { return subjects_ ? subjects_->log_jacobian(t) : 0.0; }
    double log_constant() const {
        return log_constant_ + (subjects_ ? subjects_->log_jacobian() : 0.0);
    }
    // The rows that were given have been changed.  False if they had been copied.
    bool reread() {
        if (!hidden_.empty()) return false;
        read_missing();
        return true;
    }
    // After weights have changed: which rows are missing, and constants.
    void read_missing() {
        log_constant_ = 0.0;
        for (int64_t t = 0; t < n_steps(); ++t) {
            const double *y = (*this)[t];
            is_missing_[t] = only_evaluates_ ? family_.is_unseen(y) : family_.is_missing(y);
            if (!is_missing_[t]) log_constant_ += family_.log_constant((*this)[t]);
        }
    }
    // Weights that are possible, for all rows.
    void open_weights() {
        if (!family_.weighted) return;
        for (int64_t t = 0; t < n_steps(); ++t) family_.weighted->open_weights(copied(t));
        read_missing();
    }
    // Fill missing entries, if the family has a gap_order: with zeros, before others are set.
    void fill_entries(const std::vector<Gap> &gaps) {
        auto part = std::make_unique<Fillings>(copy(), family_.linear->gap_order, gaps,
                                               family_.linear->gap_units);
        fillings_ = part.get();
        hidden_.push_back(std::move(part));
        read_missing();
    }
    // Take offsets, and perhaps scales, of subjects off the rows, which are those of no subject before
    // others are set; codes[t] is the subject of row t, from n_fitted on a new one.
    void open_subjects(const std::vector<int32_t> &codes, int32_t n_fitted, const double *variances,
                       bool has_scales) {
        auto part = std::make_unique<Subjects>(copy(), given_, family_.data_width(),
                                               std::max(0, family_.linear->gap_order), codes, n_fitted,
                                               variances, has_scales);
        subjects_ = part.get();
        hidden_.push_back(std::move(part));
    }
    // Add offsets of subjects to linear predictors, in the last n_offsets inputs of rows, which are
    // zeros before others are set.
    void open_subject_logs(int32_t n_offsets, const std::vector<int32_t> &codes, int32_t n_fitted,
                           const double *variances) {
        auto part = std::make_unique<SubjectLogs>(copy(), n_offsets, codes, n_fitted, variances);
        subjects_ = part.get();
        shifts_ = part.get();
        hidden_.push_back(std::move(part));
    }
    // NULL without subjects; without offsets of linear predictors.
    SubjectOffsets *subjects() const { return subjects_; }
    Shifts *shifts() const { return shifts_; }
    // Inputs of the data that rows do not have: the subject, less the shifts that stand for it.
    int32_t n_more_inputs() const {
        if (!subjects_) return 0;
        return shifts_ ? 1 - static_cast<int32_t>(subjects_->per_subject()) : 1;
    }
    // Numbers that are drawn beside the labels.
    size_t n_hidden() const { return hidden_.size(); }
    const Hidden *hidden(size_t i) const { return hidden_[i].get(); }
    void set_hidden(size_t i, const double *in) {
        hidden_[i]->write(in);
        read_missing();
    }
    // Those that records of draws have with the hyperparameters, if there are any.
    const Hidden *of_draws() const { return subjects_; }
    void set_of_draws(const std::vector<double> &numbers) {
        const int64_t n_common = subjects_->n_common(), each = subjects_->per_subject();
        const auto n = static_cast<int64_t>(numbers.size()) - n_common;
        if (n < 0 || n % each != 0
            || *std::min_element(numbers.begin(), numbers.begin() + n_common) <= 0.0)
            refuse("emission: subjects", std::to_string(numbers.size()) + " numbers; expected "
                                         + std::to_string(n_common) + " positive variances, and "
                                         + std::to_string(each) + " numbers of every subject");
        subjects_->write(static_cast<int32_t>(n / each), numbers.data());
        if (shifts_) read_missing();
    }
    int64_t n_means() const { return fillings_ ? fillings_->size() : 0; }
    bool draws_hidden(bool is_chain) const {
        return fillings_ || (is_chain && subjects_ && subjects_->is_drawn_alone());
    }
    // Draw them; those of draws by other coefficients, if there are any.  `means` gets n_means()
    // conditional means.
    void draw_hidden(const Hidden::Coefficients &coefficients, const Hidden::Coefficients &of_draws,
                     bitgen_t *g, double *means) {
        for (const auto &part : hidden_) {
            if (!part->is_of_draws()) part->draw(coefficients, g, means);
            else if (of_draws) part->draw(of_draws, g, means);
            means += part->n_means();
        }
    }
    double *copied(int64_t t) { return &copied_[t * width_]; }
    void restore(std::vector<double> *filled) const {
        for (size_t i = 0; subjects_ && i < filled->size(); ++i) {
            const Gap &gap = fillings_->gaps()[i];
            double &value = (*filled)[i];
            value = subjects_->restored(subjects_->subject_of_row(gap.t), gap.column, value);
        }
    }

    // ---- rows for predictions

    // Set a row without values to inputs of the data, NULL: those of the first step of a sequence;
    // returns its subject.
    int32_t open_row(const double *inputs, double *row) const {
        const int32_t d = family_.n_columns, n = family_.n_inputs + n_more_inputs() - has_subject();
        std::fill_n(row, width_, std::numeric_limits<double>::quiet_NaN());
        if (inputs) std::copy_n(inputs, n, row + d);
        else family_.next_inputs(nullptr, row + d);
        const int32_t u = has_subject() && inputs ? subjects_->subject_of(inputs[n]) : -1;
        if (has_subject()) subjects_->shift_inputs(u, row);
        return u;
    }
    // The value in column c of a row of a subject, by what its state emits.
    double restored(int32_t u, int32_t c, double value) const {
        return has_subject() ? subjects_->restored(u, c, value) : value;
    }

  private:
    bool has_subject() const { return subjects_ != nullptr; }
    // A copy, with room for weights, of which none is known.
    Rows copy() {
        const int32_t width = family_.data_width();
        if (copied_.empty()) {
            copied_.assign(n_steps() * width_, std::numeric_limits<double>::quiet_NaN());
            for (int64_t t = 0; t < n_steps(); ++t)
                std::copy_n(given_ + t * width, width, copied(t));
            values_ = copied_.data();
        }
        return {copied_.data(), n_steps(), width_, width, family_.n_columns};
    }

    const Family &family_;
    const double *given_, *values_;
    const int32_t width_;
    std::vector<double> copied_;
    std::vector<std::unique_ptr<Hidden>> hidden_;
    Fillings *fillings_ = nullptr;        // one of them
    SubjectOffsets *subjects_ = nullptr;  // one of them
    Shifts *shifts_ = nullptr;            // the same one
    std::vector<char> is_missing_;
    bool only_evaluates_ = false;
    double log_constant_ = 0.0;
};

}  // namespace skihmm
