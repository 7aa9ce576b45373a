// Particles that follow the rows of a subject whose offset is unknown, under the transitions of a
// draw and one draw of the parameters of its states.
//
// Given the states of the rows, and their weights, the offset is Gaussian.  So a particle is the
// column of the last row, and the mean and covariance of the offset given the path before it
// (A. Doucet, N. de Freitas, K. Murphy and S. Russell, UAI 2000).  The white noise of a state is
// e - G b, where e is that of the row as it is, and G the sum of the coefficients of the row and
// its lags.
//
// A new state has other parameters in every row.  They are drawn given the row, less the mean
// offset of the particles; likelihoods are corrected for this, and so are those with a weight of
// the row, which is drawn given the mean of its particle.  The product of the predictive
// probabilities is an unbiased estimate of the evidence.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "_conjugate_table.hpp"
#include "_emission.hpp"
#include "_messages.hpp"
#include "_platform.hpp"
#include "_random.hpp"
#include "_slots.hpp"

namespace skihmm {

// Condition mean and covariance of an offset on white noise with these slopes and a weight, number
// by number; returns the log of its density over that of normal noise of length zero, or minus
// infinity if that is below `least`.
SKIHMM_CLONES static double condition(int32_t d, const double *__restrict noise,
                                      const double *__restrict g, double w, double least,
                                      double *__restrict m, double *__restrict P,
                                      double *__restrict gain) {
    const double root = std::sqrt(w);
    double lp = 0.0;
    for (int32_t i = 0; i < d; ++i, g += d) {
        double spread = 0.0, r = noise[i];
        for (int32_t a = 0; a < d; ++a) gain[a] = 0.0;
        for (int32_t a = 0; a < d; ++a) {
            if (g[a] == 0.0) continue;
            for (int32_t b = 0; b < d; ++b) gain[b] += g[a] * P[a * d + b];
            r -= g[a] * m[a];
        }
        for (int32_t a = 0; a < d; ++a) spread += g[a] * gain[a];
        const double inverse = 1.0 / (1.0 + w * spread);
        r *= root;
        lp += 0.5 * (std::log(inverse) - r * r * inverse);
        if (lp < least) return -INFINITY;
        for (int32_t a = 0; a < d; ++a) {
            const double step = root * gain[a] * inverse;
            if (step == 0.0) continue;
            m[a] += step * r;
            // planted: covariance of an offset
            for (int32_t b = 0; b < d; ++b) P[a * d + b] -= step * root * gain[b];
        }
    }
    return lp;
}

class OffsetParticles {
  public:
    // `tables` are parts of the emission whose rows an offset shifts, `others` those it does not.
    OffsetParticles(const HCRPTransitions &transitions, int64_t n_cells,
                    const std::vector<ConjugateTable *> &tables, std::vector<Emission *> others,
                    int32_t n_particles, bitgen_t *g)
        : n_(n_particles), n_slots_(transitions.n_slots()), n_columns_(transitions.n_columns()),
          transitions_(transitions, n_cells, tables[0]->n_steps), others_(std::move(others)),
          row_at_(n_columns_, -1), rows_(static_cast<size_t>(n_columns_) * transitions_.width),
          one_(transitions_.width, 0.0), base_(n_slots_), logs_(n_slots_), columns_(n_),
          next_columns_(n_), weights_(n_), probs_(static_cast<size_t>(n_) * n_columns_) {
        for (ConjugateTable *table : tables) {
            parts_.emplace_back(*table, n_slots_, d_, size_);
            d_ += parts_.back().d;
            size_ += parts_.back().d * parts_.back().d;
            for (int32_t k = kFirst; k < n_slots_; ++k) parts_.back().draw_state(k, g);
        }
        beliefs_.resize(static_cast<size_t>(n_) * (d_ + size_));
        chosen_.resize(beliefs_.size());
        belief_.resize(d_ + size_);
        centre_.resize(d_);
        drawn_.resize(static_cast<size_t>(n_) * n_slots_ * parts_.size(), 1.0);
    }
    int32_t n_offsets() const { return d_; }
    // The offset has its prior again.
    void begin() {
        std::fill(weights_.begin(), weights_.end(), 1.0 / n_);
        std::fill(beliefs_.begin(), beliefs_.end(), 0.0);
        for (int32_t i = 0; i < n_; ++i)
            for (const Part &part : parts_)
                for (int32_t c = 0; c < part.d; ++c)
                    part.covariance(belief(i), d_)[c * (part.d + 1)] =
                        part.table->data().subjects()->new_variance(c);
    }
    // Go on to row t, perhaps the first one of a sequence; returns the logarithm of its predictive
    // probability.
    double follow(int64_t t, bool is_first, bitgen_t *g) {
        if (is_first) std::fill(columns_.begin(), columns_.end(), kStart);
        evaluate(t, g);
        std::vector<double> logs(n_);
        for (int32_t i = 0; i < n_; ++i) logs[i] = std::log(weights_[i]) + weigh_columns(t, i, g);
        const double top = *std::max_element(logs.begin(), logs.end());
        double total = 0.0, squares = 0.0;
        for (int32_t i = 0; i < n_; ++i) total += weights_[i] = std::exp(logs[i] - top);
        for (double &w : weights_) squares += (w /= total) * w;
        const bool is_uneven = squares * n_ > 2.0;
        // Particle i comes after particle `from`; systematic resampling.
        double u = uniform(g), reached = n_ * weights_[0];
        for (int32_t i = 0, from = 0; i < n_; ++i) {
            if (!is_uneven) from = i;
            else for (; reached < i + u && from < n_ - 1; reached += n_ * weights_[from]) ++from;
            move(i, from, g);
        }
        beliefs_.swap(chosen_);
        columns_.swap(next_columns_);
        if (is_uneven) std::fill(weights_.begin(), weights_.end(), 1.0 / n_);
        return top + std::log(total);
    }
    // The mean offset of a particle, drawn by weight.
    void take_offset(double *out, bitgen_t *g) {
        std::copy_n(belief(draw_weighted(weights_, 1.0, g)), d_, out);
    }

  private:
    // One emission; its offset has d of the numbers of a belief.
    struct Part {
        ConjugateTable *table;
        const Family &family;
        int32_t d, width, at, block;    // at: its first number in means, block: in covariances
        bool is_seen = false;
        std::vector<double> parameters, coefficients;   // by slot
        std::vector<double> noise, slopes, weight;      // of the row, by slot; those of a new state
        std::vector<double> numbers, row, new_row, gain;

        Part(ConjugateTable &of, int32_t n_slots, int32_t first, int32_t first_block)
            : table(&of), family(*of.family()), d(family.n_columns), width(family.data_width()),
              at(first), block(first_block),
              parameters(static_cast<size_t>(n_slots) * family.parameter_width),
              coefficients(static_cast<size_t>(n_slots) * d * (1 + width)), noise(n_slots * d),
              slopes(n_slots * d * d), weight(n_slots, 1.0), numbers(family.width),
              row(family.row_width()), gain(d) {}
        double *mean(double *belief) const { return belief + at; }
        double *covariance(double *belief, int32_t n_means) const {
            return belief + n_means + block;
        }
        double *parameters_of(int32_t k) { return &parameters[k * family.parameter_width]; }
        void draw_state(int32_t k, bitgen_t *g) {
            table->read(k, numbers.data());
            draw_given_numbers(k, g);
        }
        void draw_given_numbers(int32_t k, bitgen_t *g) {
            family.draw(numbers.data(), 1, parameters_of(k), 1, g);
            family.fill_coefficients(parameters_of(k), &coefficients[k * d * (1 + width)]);
        }
        // Noise and slopes of the row in a state; returns the sum of the squares of the noise.
        // Numbers of missing entries say nothing.
        double fill_noise(int32_t k) {
            const double *c = &coefficients[k * d * (1 + width)];
            const int32_t n_shifted = d * (1 + std::max(0, family.gap_order));
            double *G = &slopes[k * d * d], squares = 0.0;
            std::fill_n(G, d * d, 0.0);
            for (int32_t i = 0; i < d; ++i, c += 1 + width, G += d) {
                double e = c[0];
                for (int32_t j = 0; j < width; ++j) {
                    // (A missing entry of another, independent column has a coefficient of zero.)
                    if (c[1 + j] != 0.0) e += c[1 + j] * row[j];
                    if (j < n_shifted) G[j % d] += c[1 + j];  // planted: lags of a new subject
                }
                if (std::isnan(e)) std::fill_n(G, d, e = 0.0);
                noise[k * d + i] = e;
                squares += e * e;
            }
            return squares;
        }
        double squares_at(int32_t k, const double *m) const {
            double squares = 0.0;
            for (int32_t i = 0; i < d; ++i) {
                double e = noise[k * d + i];
                for (int32_t c = 0; c < d; ++c) e -= slopes[(k * d + i) * d + c] * m[c];
                squares += e * e;
            }
            return squares;
        }
        // The row less an offset.
        void shift(const double *m) {
            new_row = row;
            for (int32_t j = 0; j < d * (1 + std::max(0, family.gap_order)); ++j)
                new_row[j] -= m[j % d];
        }
        double absorb(int32_t k, double w, double least, double *m, double *P) {
            return condition(d, &noise[k * d], &slopes[k * d * d], w, least, m, P, gain.data());
        }
    };

    double *belief(int32_t i) { return &beliefs_[static_cast<size_t>(i) * belief_.size()]; }
    double &drawn_weight(int32_t i, int32_t k, size_t p) {
        return drawn_[(static_cast<size_t>(i) * n_slots_ + k) * parts_.size() + p];
    }
    // What the row says of every state, whatever the offset.
    void evaluate(int64_t t, bitgen_t *g) {
        std::fill(base_.begin(), base_.end(), 0.0);
        for (Emission *other : others_) {
            other->fill_logs(t, logs_.data());
            for (int32_t k = 0; k < n_slots_; ++k) base_[k] += logs_[k];
        }
        std::fill(centre_.begin(), centre_.end(), 0.0);
        for (int32_t i = 0; i < n_; ++i)
            for (int32_t c = 0; c < d_; ++c) centre_[c] += weights_[i] * belief(i)[c];
        for (Part &part : parts_) {
            const Family &family = part.family;
            std::copy_n(part.table->data()[t], family.row_width(), part.row.begin());
            part.is_seen = !family.is_missing(part.row.data());
            if (!part.is_seen) continue;
            for (int32_t k = kFirst; k < n_slots_; ++k)
                base_[k] += family.log_density(part.parameters_of(k), 1, part.row.data())
                            + 0.5 * part.fill_noise(k);
            part.shift(&centre_[part.at]);
            family.reset(part.numbers.data(), 1);
            base_[kNew] += family.log_predictive(part.numbers.data(), 1, part.new_row.data());
            if (family.n_weights > 0)
                family.draw_weights(part.numbers.data(), part.new_row.data(), g);
            family.add(part.numbers.data(), 1, part.new_row.data());
            part.draw_given_numbers(kNew, g);
            part.fill_noise(kNew);
            if (family.n_weights > 0) part.weight[kNew] = part.new_row[part.width];
            base_[kNew] += 0.5 * part.weight[kNew] * part.squares_at(kNew, &centre_[part.at]);
        }
    }
    // Weights of the columns of row t for particle i, up to a factor; returns the log of its
    // likelihood.
    double weigh_columns(int64_t t, int32_t i, bitgen_t *g) {
        const double *before = row_of(t, columns_[i]);
        double *out = &probs_[static_cast<size_t>(i) * n_columns_], top = -INFINITY, total = 0.0;
        // From the state of the row before on, the most probable one.
        for (int32_t j = 0; j < n_slots_; ++j) {
            const int32_t k = (columns_[i] + j) % n_slots_;
            bool is_possible = false;
            for (int32_t c = k; c < n_columns_; c += n_slots_) is_possible |= before[c] > 0.0;
            logs_[k] = is_possible ? log_likelihood(i, k, top - kNegligible, g) : -INFINITY;
            top = std::max(top, logs_[k]);
        }
        for (double &log_p : logs_) log_p = std::exp(log_p - top);
        for (int32_t c = 0; c < n_columns_; ++c) total += out[c] = before[c] * logs_[c % n_slots_];
        return top + std::log(total);
    }
    // Minus infinity if it is below `least`.
    double log_likelihood(int32_t i, int32_t k, double least, bitgen_t *g) {
        double lp = base_[k];
        std::copy_n(belief(i), belief_.size(), belief_.begin());
        for (size_t p = 0; p < parts_.size(); ++p) {
            Part &part = parts_[p];
            if (!part.is_seen) continue;
            double *m = part.mean(belief_.data()), w = part.weight[k];
            if (part.family.n_weights > 0 && k != kNew) {
                const double squares = part.squares_at(k, m);
                w = part.family.draw_weight(squares, g);
                lp += part.family.log_noise(squares) + 0.5 * w * squares;
            }
            drawn_weight(i, k, p) = w;
            lp += part.absorb(k, w, least - lp, m, part.covariance(belief_.data(), d_));
        }
        return lp;
    }
    // Draw the column of particle i, which comes after particle `from`.
    void move(int32_t i, int32_t from, bitgen_t *g) {
        const double *row = &probs_[static_cast<size_t>(from) * n_columns_];
        one_row_.assign(row, row + n_columns_);
        const int32_t c = draw_weighted(one_row_, sum_of(one_row_), g), k = c % n_slots_;
        double *to = &chosen_[static_cast<size_t>(i) * belief_.size()];
        std::copy_n(belief(from), belief_.size(), to);
        next_columns_[i] = c;
        for (size_t p = 0; p < parts_.size(); ++p)
            if (parts_[p].is_seen)
                parts_[p].absorb(k, drawn_weight(from, k, p), -INFINITY, parts_[p].mean(to),
                                 parts_[p].covariance(to, d_));
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

    // Likelihoods that are exp(-kNegligible) of another one are zero.
    static constexpr double kNegligible = 60.0;

    const int32_t n_, n_slots_, n_columns_;
    int32_t d_ = 0, size_ = 0;      // numbers of means and of covariances
    FrozenTransitions transitions_;
    std::vector<Part> parts_;
    std::vector<Emission *> others_;
    std::vector<int64_t> row_at_;
    std::vector<double> rows_, one_, one_row_, base_, logs_, centre_;
    std::vector<int32_t> columns_, next_columns_;
    // By particle: weights, means and covariances, probabilities of columns, weights of rows.
    std::vector<double> weights_, beliefs_, chosen_, belief_, probs_, drawn_;
};

}  // namespace skihmm
