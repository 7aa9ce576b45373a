// Particles that follow the rows of a subject whose offset is unknown, under the transitions of a
// draw and one draw of the parameters of its states.
//
// Given the states of the rows, and their weights, the offset is Gaussian.  So a particle is the
// column of the last row, and a belief of the offset given the path before it (A. Doucet, N. de
// Freitas, K. Murphy and S. Russell, UAI 2000).  The white noise of a state is e - G b, where e is
// the noise of the unshifted row, and G the sum of the coefficients of the row and its lags.
//
// A new state has other parameters in every row.  They are drawn given the row, less the mean
// offset of the particles, and weights of rows are drawn given the mean of their particle;
// likelihoods are corrected for both.  The product of the predictive probabilities is an unbiased
// estimate of the evidence.
//
// Particles with the same path have the same belief, which is kept once: well separated states
// leave one or two paths to forty particles.  Weights of rows differ by particle.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "_conjugate_table.hpp"
#include "_emission.hpp"
#include "_messages.hpp"
#include "_offset_forecast.hpp"
#include "_offset_part.hpp"
#include "_random.hpp"
#include "_slots.hpp"

namespace skihmm {

// Rows of subjects, one subject after another, and the results for them.
struct FollowedRows {
    int64_t n;
    const int64_t *subjects;        // of every row
    const uint8_t *is_first;        // of its sequence
    double *log_predictive;         // by row
    double *offsets;                // by subject
    // By row, given the rows before, or null: probabilities of states and, last, of a new state;
    // cumulative probabilities of the values.
    double *ahead, *shares;
};

class OffsetParticles {
  public:
    // An offset shifts the rows of one or several parts of the emission.
    OffsetParticles(const HCRPTransitions &transitions, Emission &emission, int32_t n_particles,
                    bitgen_t *g)
        : n_(n_particles), n_slots_(transitions.n_slots()),
          transitions_(transitions, 0, emission.n_steps), row_at_(n_slots_, -1),
          rows_(static_cast<size_t>(n_slots_) * transitions_.width), one_(transitions_.width, 0.0),
          base_(n_slots_), logs_(n_slots_), weights_(n_), class_of_(n_), next_class_of_(n_) {
        std::vector<Emission *> parts;
        emission.list_parts(&parts);
        parts_.reserve(parts.size());
        for (Emission *part : parts) {
            if (!part->family_part || !part->family_part->of_draws()) {
                others_.push_back(part);
                continue;
            }
            parts_.emplace_back(*static_cast<ConjugateTable *>(part->family_part), n_slots_);
            begins_.push_back(n_numbers_);
            n_numbers_ += parts_.back().n_numbers;
            d_ += parts_.back().d;
            is_shared_ &= !parts_.back().family.weighted;
            for (int32_t k = kFirst; k < n_slots_; ++k) parts_.back().draw_state(k, g);
        }
        for (const OffsetPart &part : parts_) forecasts_.emplace_back(part);
        is_seen_.assign(parts_.size(), 0);
        belief_.resize(n_numbers_);
        centre_.resize(n_numbers_);
        classes_.resize(n_);
        next_.resize(n_);
        probs_.resize(static_cast<size_t>(n_) * n_slots_);
        drawn_.resize(static_cast<size_t>(n_) * n_slots_ * parts_.size(), 1.0);
    }
    int32_t n_offsets() const { return d_; }
    int32_t n_states() const { return n_slots_ - kFirst; }
    // Follow rows from t on, for some hundredths of a second or one row; returns the next row.
    int64_t follow(int64_t t, const FollowedRows &rows, bitgen_t *g) {
        for (work_ = 0.0; t < rows.n && work_ < kWork; ++t) {
            if (t == 0 || rows.subjects[t] != rows.subjects[t - 1]) begin();
            if (rows.is_first[t])
                for (int32_t a = 0; a < n_classes_; ++a) classes_[a].column = kStart;
            for (size_t p = 0; p < parts_.size(); ++p) is_seen_[p] = parts_[p].read_row(t);
            if (rows.ahead)
                foresee(t, rows.ahead + t * (n_states() + 1), rows.shares + t * d_, g);
            rows.log_predictive[t] = follow_row(t, g);
            if (t + 1 < rows.n && rows.subjects[t + 1] == rows.subjects[t]) continue;
            take_offset(rows.offsets + n_done_ * d_, g);
            ++n_done_;
        }
        return t;
    }

  private:
    // Likelihoods that are exp(-kNegligible) of another likelihood are zero.
    static constexpr double kNegligible = 60.0;
    // Probabilities below this add nothing to cumulative probabilities.
    static constexpr double kLeastProb = 1e-14;
    static constexpr double kWork = 2e7;

    // Particles with the same path: the column of the last row, the belief, the weight of all.
    struct Class {
        int32_t column;
        std::vector<double> belief;
        double log_p, weight;
    };

    // The offset has its prior again.
    void begin() {
        std::fill(weights_.begin(), weights_.end(), 1.0 / n_);
        n_classes_ = is_shared_ ? 1 : n_;
        for (int32_t i = 0; i < n_; ++i) class_of_[i] = is_shared_ ? 0 : i;
        for (int32_t a = 0; a < n_classes_; ++a) {
            classes_[a].column = kStart;
            classes_[a].belief.resize(n_numbers_);
            for (size_t p = 0; p < parts_.size(); ++p)
                parts_[p].fill_prior(&classes_[a].belief[begins_[p]]);
        }
    }
    void weigh_classes() {
        for (int32_t a = 0; a < n_classes_; ++a) classes_[a].weight = 0.0;
        for (int32_t i = 0; i < n_; ++i) classes_[class_of_[i]].weight += weights_[i];
    }
    // Go on to a row that has been read; returns the logarithm of its predictive probability.
    double follow_row(int64_t t, bitgen_t *g) {
        weigh_classes();
        evaluate(t, g);
        for (int32_t a = 0; a < n_classes_; ++a) classes_[a].log_p = weigh_columns(t, a, g);
        std::vector<double> logs(n_);
        for (int32_t i = 0; i < n_; ++i)
            logs[i] = std::log(weights_[i]) + classes_[class_of_[i]].log_p;
        const double top = *std::max_element(logs.begin(), logs.end());
        double total = 0.0, squares = 0.0;
        for (int32_t i = 0; i < n_; ++i) total += weights_[i] = std::exp(logs[i] - top);
        for (double &w : weights_) {
            w /= total;
            squares += w * w;
        }
        const bool is_uneven = squares * n_ > 2.0;
        // Particle i comes after particle `from`; systematic resampling.
        double u = uniform(g), reached = n_ * weights_[0];
        next_of_.assign(static_cast<size_t>(n_classes_) * n_slots_, -1);
        n_next_ = 0;
        for (int32_t i = 0, from = 0; i < n_; ++i) {
            if (!is_uneven) from = i;
            else for (; reached < i + u && from < n_ - 1; reached += n_ * weights_[from]) ++from;
            next_class_of_[i] = move(class_of_[from], g);
        }
        classes_.swap(next_);
        class_of_.swap(next_class_of_);
        n_classes_ = n_next_;
        if (is_uneven) std::fill(weights_.begin(), weights_.end(), 1.0 / n_);
        return top + std::log(total);
    }
    // The mean offset of a particle, drawn by weight.
    void take_offset(double *out, bitgen_t *g) {
        const int32_t i = draw_weighted(weights_, 1.0, g);  // planted: particle of an offset
        for (size_t p = 0; p < parts_.size(); ++p)
            out = std::copy_n(&classes_[class_of_[i]].belief[begins_[p]], parts_[p].d, out);
    }
    double &drawn_weight(int32_t a, int32_t k, size_t p) {
        return drawn_[(static_cast<size_t>(a) * n_slots_ + k) * parts_.size() + p];
    }
    // Evaluate the row under every state, whatever the offset.
    void evaluate(int64_t t, bitgen_t *g) {
        std::fill(base_.begin(), base_.end(), 0.0);
        for (Emission *other : others_) {
            other->fill_logs(t, logs_.data());
            for (int32_t k = 0; k < n_slots_; ++k) base_[k] += logs_[k];
        }
        for (size_t p = 0; p < parts_.size(); ++p) {
            OffsetPart &part = parts_[p];
            if (!is_seen_[p]) continue;
            for (int32_t k = kFirst; k < n_slots_; ++k) base_[k] += part.weigh_state(k);
            std::fill_n(centre_.begin(), part.d, 0.0);
            for (int32_t a = 0; a < n_classes_; ++a)
                for (int32_t c = 0; c < part.d; ++c)
                    centre_[c] += classes_[a].weight * classes_[a].belief[begins_[p] + c];
            base_[kNew] += part.weigh_new_state(centre_.data(), g);
            // (A state costs the density of a row, and a new state draws its parameters.)
            work_ += n_slots_ * part.family.data_width() * part.d + part.work();
        }
    }
    // Weights of the columns of row t for a class of particles, up to a factor; returns the log of
    // its likelihood.
    double weigh_columns(int64_t t, int32_t a, bitgen_t *g) {
        const double *before = row_of(t, classes_[a].column);
        double *out = &probs_[static_cast<size_t>(a) * n_slots_], top = -INFINITY, total = 0.0;
        // Start from the state of the row before, which is the most probable.
        for (int32_t j = 0; j < n_slots_; ++j) {
            const int32_t k = (classes_[a].column + j) % n_slots_;
            logs_[k] = before[k] > 0.0 ? log_likelihood(a, k, top - kNegligible, g) : -INFINITY;
            top = std::max(top, logs_[k]);
        }
        for (double &log_p : logs_) log_p = std::exp(log_p - top);
        for (int32_t k = 0; k < n_slots_; ++k) total += out[k] = before[k] * logs_[k];
        work_ += 20.0 * n_slots_;
        return top + std::log(total);
    }
    // Perhaps minus infinity if it is below `least`.
    double log_likelihood(int32_t a, int32_t k, double least, bitgen_t *g) {
        double lp = base_[k];
        for (size_t p = 0; p < parts_.size(); ++p) {
            OffsetPart &part = parts_[p];
            if (!is_seen_[p]) continue;
            const double *belief = &classes_[a].belief[begins_[p]];
            const double w = part.draw_weight(k, belief, &lp, g);
            drawn_weight(a, k, p) = w;
            std::copy_n(belief, part.n_numbers, belief_.begin());
            // (A weight's log factor may be positive.)
            lp += part.absorb(k, w, is_shared_ ? least - lp : -INFINITY, belief_.data());
            work_ += part.work();
        }
        return lp;
    }
    // Draw the column of a particle of class `from`; returns the class of it.
    int32_t move(int32_t from, bitgen_t *g) {
        const double *row = &probs_[static_cast<size_t>(from) * n_slots_];
        one_row_.assign(row, row + n_slots_);
        const int32_t k = draw_weighted(one_row_, sum_of(one_row_), g);
        int32_t &known = next_of_[static_cast<size_t>(from) * n_slots_ + k];
        if (is_shared_ && known >= 0) return known;
        Class &to = next_[known = n_next_++];
        to.column = k;
        to.belief = classes_[from].belief;
        for (size_t p = 0; p < parts_.size(); ++p) {
            if (!is_seen_[p]) continue;
            parts_[p].absorb(k, drawn_weight(from, k, p), -INFINITY, &to.belief[begins_[p]]);
            work_ += parts_[p].work();
        }
        return known;
    }
    // Predict row t.  A new state and weights of rows are from the prior.
    void foresee(int64_t t, double *ahead, double *shares, bitgen_t *g) {
        weigh_classes();
        std::vector<double> probs(static_cast<size_t>(n_classes_) * n_slots_, 0.0);
        std::fill_n(ahead, n_states() + 1, 0.0);
        std::fill_n(shares, d_, 0.0);
        for (int32_t a = 0; a < n_classes_; ++a) {
            const double *before = row_of(t, classes_[a].column);
            for (int32_t k = 0; k < n_slots_; ++k) {
                const double p = classes_[a].weight * before[k];
                probs[a * n_slots_ + k] += p;
                if (k != kStart) ahead[k == kNew ? n_states() : k - kFirst] += p;
            }
        }
        for (size_t p = 0; p < parts_.size(); shares += parts_[p++].d) {
            const Family &family = parts_[p].family;
            parts_[p].draw_new_state(g);
            for (int32_t k = 0; k < n_slots_; ++k) {
                if (k == kStart) continue;
                forecasts_[p].open(k);
                for (int32_t a = 0; a < n_classes_; ++a) {
                    const double prob = probs[a * n_slots_ + k];
                    if (prob < kLeastProb) continue;
                    const double w = family.weighted ? family.weighted->draw_free_weight(g) : 1.0;
                    forecasts_[p].add(&classes_[a].belief[begins_[p]], w, prob, shares);
                    work_ += parts_[p].work() * (parts_[p].is_by_column ? 1.0 : 4.0);
                }
            }
        }
    }
    const double *row_of(int64_t t, int32_t column) {
        double *row = &rows_[static_cast<size_t>(column) * transitions_.width];
        if (row_at_[column] != t) {
            row_at_[column] = t;
            one_[column] = 1.0;
            transitions_.push(t, one_.data(), row);
            one_[column] = 0.0;
        }
        return row;
    }

    const int32_t n_, n_slots_;
    int32_t d_ = 0, n_numbers_ = 0;     // offsets, numbers of a belief of all parts
    int32_t n_classes_ = 0, n_next_ = 0;
    int64_t n_done_ = 0;                // subjects
    bool is_shared_ = true;             // particles with the same path have the same belief
    double work_ = 0.0;
    FrozenTransitions transitions_;
    std::vector<OffsetPart> parts_;
    std::vector<OffsetForecast> forecasts_;
    std::vector<int32_t> begins_;       // first numbers of parts in a belief
    std::vector<char> is_seen_;         // by part: its row is not missing
    std::vector<Emission *> others_;
    std::vector<int64_t> row_at_;
    std::vector<double> rows_, one_, one_row_, base_, logs_, centre_, belief_;
    std::vector<double> weights_;       // by particle
    std::vector<int32_t> class_of_, next_class_of_;
    std::vector<Class> classes_, next_;
    // By class: the next class by column, probabilities of columns, weights of rows.
    std::vector<int32_t> next_of_;
    std::vector<double> probs_, drawn_;
};

}  // namespace skihmm
