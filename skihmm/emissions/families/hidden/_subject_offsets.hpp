// Numbers of subjects, common to all states: offsets of every subject, which sum to zero, and their
// variances, which are drawn.  What offsets are added to, the classes below say.
//
// b ~ N(0, D) by column, less the mean of the subjects; the root of D is half-Cauchy, as an inverse
// gamma with an inverse gamma scale (A. Gelman, Bayesian Analysis 1, 2006).
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "_hidden.hpp"
#include "_random.hpp"

namespace skihmm {

class SubjectOffsets : public Hidden {
  public:
    // codes[t] is the subject of row t, one without numbers if it is not below their number.
    // `variances` are typical of n_offsets of a subject, which has n_kinds times as many numbers.
    // Further subjects than n_fitted are new: they come to the others, which stay as they are.
    SubjectOffsets(std::vector<int32_t> codes, int32_t n_fitted, int32_t n_offsets, int32_t n_kinds,
                   const double *variances)
        : codes_(std::move(codes)), n_offsets_(n_offsets), n_fitted_(n_fitted),
          variances_(variances, variances + n_offsets), n_kinds_(n_kinds) {}
    const char *name() const override { return "subjects"; }
    bool is_of_draws() const override { return true; }
    // Whether they are drawn by `draw`; there are at least two subjects: the sum leaves nothing to
    // one.
    virtual bool is_drawn_alone() const { return n_subjects_ > 1; }
    int32_t n_subjects() const { return n_subjects_; }
    // Numbers before those of the subjects, and of every subject.
    int64_t n_common() const { return 2 * per_subject(); }
    int64_t per_subject() const { return int64_t{n_offsets_} * n_kinds_; }
    int64_t size() const override { return static_cast<int64_t>(numbers_.size()); }
    // By column D, its scale, and the same of further kinds; then offsets by subject, and numbers of
    // further kinds.
    void read(double *out) const override { std::copy(numbers_.begin(), numbers_.end(), out); }
    void write(const double *in) override {
        std::copy_n(in, numbers_.size(), numbers_.begin());
        spread();
    }
    // The same for n subjects.
    void write(int32_t n, const double *in) {
        n_subjects_ = n;
        numbers_.resize(n_common() + n * per_subject());
        write(in);
    }
    // That of the offset of a new subject: it is less the mean of the others, too.
    double new_variance(int32_t c) const {
        return numbers_[c] * new_share();  // planted: variance of a new subject
    }
    // The number of a subject by its code, or -1: one without numbers is the mean subject.
    int32_t subject_of(double code) const {
        return code >= 0.0 && code < n_subjects_ ? static_cast<int32_t>(code) : -1;
    }
    int32_t subject_of_row(int64_t t) const { return subject_of(codes_[t]); }
    // Let the inputs of a row be those of a subject, for predictions.
    virtual void shift_inputs(int32_t u, double *row) const = 0;
    // The value of a subject in column c by what its state emits.
    virtual double restored(int32_t, int32_t, double value) const { return value; }
    // What the densities of the entries of a row, or of all rows, have beside those of the family.
    virtual double log_jacobian(int64_t) const { return 0.0; }
    virtual double log_jacobian() const { return 0.0; }

  protected:
    // Bounds of variances, over typical ones.
    static constexpr double kLeastVariance = 1e-12, kMostVariance = 1e12;

    bool has_numbers(int64_t t) const { return codes_[t] >= 0 && codes_[t] < n_subjects_; }
    double *variance(int32_t c) { return &numbers_[c]; }
    double *scale(int32_t c) { return &numbers_[n_offsets_ + c]; }
    int64_t place(int32_t u, int32_t c, bool is_further) const {
        return n_common() + (int64_t{is_further} * n_subjects_ + u) * n_offsets_ + c;
    }
    double *offset(int32_t u, int32_t c) { return &numbers_[place(u, c, false)]; }
    const double *offset(int32_t u, int32_t c) const { return &numbers_[place(u, c, false)]; }
    bool has_new() const { return n_subjects_ > n_fitted_; }
    double new_share() const { return 1.0 + 1.0 / n_fitted_; }
    // Rows from the numbers.
    virtual void spread() = 0;
    // The variance of numbers[u * d + c] by column, and its scale.  Numbers that sum to zero have one
    // degree of freedom less.
    void draw_variance(bitgen_t *g, const double *numbers, const double *typical, double *variances,
                       double *scales) const {
        const int32_t d = n_offsets_;
        for (int32_t c = 0; c < d; ++c) {
            double squares = 0.0;
            for (int32_t u = 0; u < n_subjects_; ++u) {
                const double value = numbers[u * d + c];  // planted: number of a variance
                squares += value * value;
            }
            const double shape = 0.5 * n_subjects_;  // planted: degrees of freedom of subjects
            scales[c] = (1.0 / typical[c] + 1.0 / variances[c]) / random_standard_exponential(g);
            const double drawn = (1.0 / scales[c] + 0.5 * squares) / random_standard_gamma(g, shape);
            variances[c] = std::clamp(drawn, kLeastVariance * typical[c], kMostVariance * typical[c]);
        }
    }

    const std::vector<int32_t> codes_;
    const int32_t n_offsets_, n_fitted_;
    int32_t n_subjects_ = 0;
    std::vector<double> variances_, numbers_;

  private:
    const int32_t n_kinds_;
};

}  // namespace skihmm
