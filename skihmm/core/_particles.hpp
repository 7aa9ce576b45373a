// Particle filter over seatings (arXiv 1106.0474, Sections 3.3 and 5): sequential sampling
// of states with the seating updated along the way, for initial paths and for adaptive
// held-out prediction.
//
// Every particle has a seating of its own.  What they have in common is kept once, in
// `base_`; a particle stores what happened since, in two generations: `old`, shared by all
// descendants of the particle that wrote it and never changed again, and `fresh`, its own.
// Resampling copies `fresh` and a pointer.  When all particles have come to share one `old`
// generation (their lines coalesce after a few hundred steps), it is folded into the base
// and the fresh generations become the old ones.  So memory and copying do not grow with
// the length of the sequence.
//
// Only counts are kept, not table sizes: whether a customer opens a table depends on n_jk
// and m_.k alone, and nothing here asks which table an old customer sits at.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "_family.hpp"
#include "_seating.hpp"

namespace skihmm {

enum class Resampling : int { kSystematic, kStratified, kMultinomial };

class ParticleFilter {
  public:
    // Row 0 of the transitions is the start restaurant, row 1 + k that of state k.
    struct Counts { int32_t id, n; };

    ParticleFilter(int32_t n_particles, Resampling resampling, double alpha, double gamma)
        : n_particles_(n_particles), resampling_(resampling), alpha_(alpha), gamma_(gamma) {
        base_rows_.resize(1);
        root_.row_customers.assign(1, 0);
    }

    // ---- the seating to start from (default: empty)

    void add_column(int32_t n_symbols, bool hierarchical, double alpha, double gamma) {
        Column column;
        column.hierarchical = hierarchical;
        column.alpha = hierarchical ? alpha : alpha * n_symbols;
        column.symbol_mass = hierarchical ? gamma / n_symbols : alpha;
        column.gamma = gamma;
        column.by_symbol.resize(n_symbols);
        columns_.push_back(std::move(column));
        ColumnState state;
        state.symbol_tables.assign(hierarchical ? n_symbols : 0, 0);
        root_.columns.push_back(std::move(state));
    }
    void add_states(int32_t n_states) {
        root_.n_states = n_states;
        root_.dish_tables.assign(n_states, 0);
        root_.row_customers.assign(n_states + 1, 0);
        base_rows_.resize(n_states + 1);
        for (size_t c = 0; c < columns_.size(); ++c) {
            root_.columns[c].totals.assign(n_states, 0);
            root_.columns[c].inverse.assign(n_states, 1.0 / columns_[c].alpha);
        }
    }
    // The next columns of `values` are of a family, which must outlive the filter.  Of the
    // states there are, `numbers` holds the family's, one state after the other.
    void add_family(const Family *family, const double *numbers) {
        families_.push_back(family);
        n_values_ += family->n_columns;
        fresh_.emplace_back(family->width);
        family->reset(fresh_.back().data(), 1);
        root_.numbers.emplace_back(
            numbers, numbers + static_cast<size_t>(root_.n_states) * family->width);
    }
    void add_transition(int32_t row, int32_t dish, int32_t n_customers, int32_t n_tables) {
        base_rows_[row].push_back({dish, n_customers});
        root_.row_customers[row] += n_customers;
        root_.dish_tables[dish] += n_tables;
        root_.n_tables += n_tables;
    }
    void add_symbol(int32_t c, int32_t state, int32_t symbol, int32_t n_customers,
                    int32_t n_tables) {
        columns_[c].by_symbol[symbol].push_back({state, n_customers});
        root_.columns[c].observe(state, n_customers, columns_[c].alpha);
        if (columns_[c].hierarchical) {
            root_.columns[c].symbol_tables[symbol] += n_tables;
            root_.columns[c].n_tables += n_tables;
        }
    }

    // ---- run

    // Go on from the seating: step 0 is drawn from `restaurant`, unless a sequence begins
    // there.  `run` and `simulate` return every tenth of a second, with the first step that
    // is left, so that a caller can look whether the user has pressed Ctrl-C.
    void begin(int32_t restaurant) {
        root_.restaurant = restaurant;
        particles_.assign(n_particles_, root_);
        weights_.assign(n_particles_, 1.0 / n_particles_);
        path_.clear();
        draws_.resize(n_particles_);
    }

    // Filter rows of `codes` (-1: missing) and of `values` (NaN: missing), the columns of
    // symbols and those of families, from step t on.  A step with first[t] starts from the
    // start restaurant.  log_predictive[t] = log of sum_p W_p l_p, the predictive probability
    // of row t before it is used.
    int64_t run(const int32_t *codes, const double *values, int64_t t, int64_t n_steps,
                const uint8_t *first, double *log_predictive, bitgen_t *g) {
        const int32_t n_columns = static_cast<int32_t>(columns_.size());
        std::vector<double> log_likelihood(n_particles_);
        for (Slice slice; t < n_steps && slice.goes_on(particles_); ++t) {
            const int32_t *row = codes + t * n_columns;
            const double *y = values + t * n_values_;
            // Each particle's next state is drawn from its own conditional together with
            // the likelihood; a particle that resampling drops has drawn in vain, which
            // costs nothing as its customers are seated only afterwards.
            for (int32_t p = 0; p < n_particles_; ++p) {
                Particle &particle = particles_[p];
                if (first[t]) particle.restaurant = 0;
                log_likelihood[p] = weigh(particle, row, y);
                keep_weights(p);
            }
            const double largest =
                *std::max_element(log_likelihood.begin(), log_likelihood.end());
            double total = 0.0, squares = 0.0;
            for (int32_t p = 0; p < n_particles_; ++p)
                total += weights_[p] *= std::exp(log_likelihood[p] - largest);
            // (False for NaN too.)
            if (!(total > 0.0 && total < std::numeric_limits<double>::infinity()))
                throw std::invalid_argument(
                    "step " + std::to_string(t) + " is impossible by the seating, or its "
                    "concentrations or counts are out of all proportion");
            log_predictive[t] = std::log(total) + largest;
            for (int32_t p = 0; p < n_particles_; ++p) {
                weights_[p] /= total;
                squares += weights_[p] * weights_[p];
            }
            if (squares * n_particles_ > 2.0) {
                resample(g);
                rotate();
            }
            for (int32_t p = 0; p < n_particles_; ++p) {
                const int32_t k = choose(draws_[p].weights, draws_[p].total, g);
                enter(particles_[p], k, g);
                emit(particles_[p], k, row, y, g);
            }
        }
        return t;
    }
    // The path of one particle drawn by weight, in time order.
    std::vector<int32_t> draw_path(bitgen_t *g) {
        double u = uniform(g);
        int32_t p = 0;
        while (p < n_particles_ - 1 && (u -= weights_[p]) >= 0.0) ++p;
        std::vector<int32_t> path(path_);
        const Particle &chosen = particles_[p];
        if (chosen.old)
            path.insert(path.end(), chosen.old->labels.begin(), chosen.old->labels.end());
        path.insert(path.end(), chosen.fresh.labels.begin(), chosen.fresh.labels.end());
        return path;
    }

    // Draw new states and observations from the predictive distribution, from step t on; of
    // column c only the first n_known[c] symbols.
    int64_t simulate(int64_t t, int64_t n_steps, const int32_t *n_known, int32_t *states_out,
                     int32_t *codes_out, double *values_out, bitgen_t *g) {
        const size_t n_columns = columns_.size();
        const std::vector<int32_t> missing(n_columns, -1);
        const std::vector<double> nothing(n_values_, NAN);
        std::vector<double> parameters;
        Particle &p = particles_[0];
        for (Slice slice; t < n_steps && slice.goes_on(particles_); ++t) {
            weigh(p, missing.data(), nothing.data());
            const int32_t k = choose(w_, total_, g);
            enter(p, k, g);
            int32_t *row = codes_out + t * n_columns;
            for (size_t c = 0; c < n_columns; ++c) {
                std::vector<double> w(n_known[c]);
                double total = 0.0;
                for (int32_t symbol = 0; symbol < n_known[c]; ++symbol)
                    total += w[symbol] = symbol_count(p, c, k, symbol) + smooth(p, c, symbol);
                row[c] = choose(w, total, g);
            }
            double *y = values_out + t * n_values_;
            for (size_t f = 0, at = 0; f < families_.size(); at += families_[f++]->n_columns) {
                const Family &family = *families_[f];
                family.draw_predictive(numbers_of(p, f, k), 1, &parameters, y + at, g);
            }
            emit(p, k, row, y, g);
            states_out[t] = k;
        }
        return t;
    }

  private:
    struct Entry { int32_t id, n, next; };
    // Customers that joined since: a chain of entries per row (or per symbol).
    struct Chains {
        std::vector<int32_t> heads;
        std::vector<Entry> entries;
        int32_t head(int32_t line) const {
            return static_cast<size_t>(line) < heads.size() ? heads[line] : -1;
        }
        void add(int32_t line, int32_t id) {
            if (static_cast<size_t>(line) >= heads.size()) heads.resize(line + 1, -1);
            for (int32_t at = heads[line]; at >= 0; at = entries[at].next)
                if (entries[at].id == id) {
                    ++entries[at].n;
                    return;
                }
            entries.push_back({id, 1, heads[line]});
            heads[line] = static_cast<int32_t>(entries.size()) - 1;
        }
        template <class Visit> void visit(int32_t line, Visit visitor) const {
            for (int32_t at = head(line); at >= 0; at = entries[at].next)
                visitor(entries[at].id, entries[at].n);
        }
    };
    struct Generation {
        Chains transitions;              // by row: dishes
        std::vector<Chains> columns;     // by symbol: states
        std::vector<int32_t> labels;     // states of its steps
    };
    struct Column {
        bool hierarchical = true;
        double alpha = 1.0, gamma = 1.0;
        double symbol_mass = 0.0;        // gamma/V, or the Dirichlet pseudo-count
        std::vector<std::vector<Counts>> by_symbol;
    };
    struct ColumnState {
        std::vector<int32_t> symbol_tables;   // e_w
        std::vector<int32_t> totals;          // c_k
        std::vector<double> inverse;          // 1/(c_k + alpha_e)
        int64_t n_tables = 0;                 // e
        void observe(int32_t k, int32_t n, double alpha) {
            totals[k] += n;
            inverse[k] = 1.0 / (totals[k] + alpha);
        }
    };
    struct Particle {
        int32_t n_states = 0;
        int32_t restaurant = 0;
        int64_t n_tables = 0;                 // m_..
        std::vector<int32_t> dish_tables;     // m_.k
        std::vector<int32_t> row_customers;   // n_j., row 0 is the start restaurant
        std::vector<ColumnState> columns;
        std::vector<std::vector<double>> numbers;   // by family: of all states
        std::shared_ptr<const Generation> old;
        Generation fresh;
    };

    // The time after which to return.  To read a clock takes a fifth of a small step, so it
    // is read after some 4,096 particles and states.
    class Slice {
      public:
        bool goes_on(const std::vector<Particle> &particles) {
            work_ += static_cast<int64_t>(particles.size()) * (particles[0].n_states + 1);
            if (work_ < 4096) return true;
            work_ = 0;
            return Clock::now() < end_;
        }

      private:
        using Clock = std::chrono::steady_clock;
        Clock::time_point end_ = Clock::now() + std::chrono::milliseconds(100);
        int64_t work_ = 0;
    };

    template <class Visit>
    void visit_row(const Particle &p, int32_t row, Visit visitor) const {
        if (static_cast<size_t>(row) < base_rows_.size())
            for (const Counts &entry : base_rows_[row]) visitor(entry.id, entry.n);
        if (p.old) p.old->transitions.visit(row, visitor);
        p.fresh.transitions.visit(row, visitor);
    }
    template <class Visit>
    void visit_symbol(const Particle &p, size_t c, int32_t symbol, Visit visitor) const {
        for (const Counts &entry : columns_[c].by_symbol[symbol]) visitor(entry.id, entry.n);
        if (p.old && c < p.old->columns.size()) p.old->columns[c].visit(symbol, visitor);
        if (c < p.fresh.columns.size()) p.fresh.columns[c].visit(symbol, visitor);
    }
    // alpha_e * (base probability of the symbol).
    double smooth(const Particle &p, size_t c, int32_t symbol) const {
        const Column &column = columns_[c];
        if (!column.hierarchical) return column.symbol_mass;
        return column.alpha * (p.columns[c].symbol_tables[symbol] + column.symbol_mass)
               / (p.columns[c].n_tables + column.gamma);
    }

    // w_k = p(k | restaurant) p(y | k) for every state and, last, a fresh one, up to a
    // factor; total_ is their sum.  Returns the log of what they sum to without that factor.
    double weigh(const Particle &p, const int32_t *row, const double *y) {
        const int32_t n = p.n_states;
        const double scale = alpha_ / (p.n_tables + gamma_);
        double log_factor = 0.0;
        w_.assign(n + 1, 1.0);
        if (columns_.size() <= kGroup) {
            multiply_columns(p, row, 0, columns_.size());
        } else {
            // The product of many columns leaves the range of a double.
            logs_.assign(n + 1, 0.0);
            for (size_t c = 0; c < columns_.size(); c += kGroup) {
                std::fill(w_.begin(), w_.end(), 1.0);
                multiply_columns(p, row, c, std::min(c + kGroup, columns_.size()));
                for (int32_t k = 0; k <= n; ++k) logs_[k] += std::log(w_[k]);
            }
            log_factor = *std::max_element(logs_.begin(), logs_.end());
            for (int32_t k = 0; k <= n; ++k)
                w_[k] = std::exp(std::max(logs_[k] - log_factor, -460.0));
        }
        if (!families_.empty()) log_factor += multiply_families(p, y);
        prior_.assign(n + 1, scale * gamma_);
        for (int32_t k = 0; k < n; ++k) prior_[k] = scale * p.dish_tables[k];
        visit_row(p, p.restaurant, [&](int32_t k, int32_t count) { prior_[k] += count; });
        double total = 0.0;
        for (int32_t k = 0; k <= n; ++k) total += w_[k] *= prior_[k];
        total_ = total;
        return std::log(total / (p.row_customers[p.restaurant] + alpha_)) + log_factor;
    }
    const double *numbers_of(const Particle &p, size_t f, int32_t k) const {
        return k < p.n_states
                   ? &p.numbers[f][static_cast<size_t>(k) * families_[f]->width]
                   : fresh_[f].data();
    }
    // w_[k] *= p(y | k) / exp(returned value).
    double multiply_families(const Particle &p, const double *y) {
        const int32_t n = p.n_states;
        logs_.resize(n + 1);
        for (int32_t k = 0; k <= n; ++k) logs_[k] = std::log(w_[k]);
        for (size_t f = 0; f < families_.size(); y += families_[f++]->n_columns) {
            if (families_[f]->is_missing(y)) continue;
            families_[f]->fill_rows(p.numbers[f].data(), n, fresh_[f].data(), y,
                                    logs_.data());
        }
        const double largest = *std::max_element(logs_.begin(), logs_.end());
        for (int32_t k = 0; k <= n; ++k)
            w_[k] = std::exp(std::max(logs_[k] - largest, -460.0));
        return largest;
    }
    // w_[k] *= product over columns start .. stop - 1 of p(row[c] | k).
    void multiply_columns(const Particle &p, const int32_t *row, size_t start, size_t stop) {
        const int32_t n = p.n_states;
        for (size_t c = start; c < stop; ++c) {
            if (row[c] < 0) continue;
            const double all = smooth(p, c, row[c]);
            counts_.assign(n, all);
            visit_symbol(p, c, row[c], [&](int32_t k, int32_t count) { counts_[k] += count; });
            const double *inverse = p.columns[c].inverse.data();
            for (int32_t k = 0; k < n; ++k) w_[k] *= counts_[k] * inverse[k];
            w_[n] *= all / columns_[c].alpha;
        }
    }
    void keep_weights(int32_t p) {
        draws_[p].weights.swap(w_);
        draws_[p].total = total_;
    }

    static int32_t choose(const std::vector<double> &w, double total, bitgen_t *g) {
        double u = uniform(g) * total;
        int32_t chosen = 0;
        for (size_t k = 0; k < w.size(); ++k) {
            if (w[k] > 0.0) {
                chosen = static_cast<int32_t>(k);
                if ((u -= w[k]) < 0.0) break;
            }
        }
        return chosen;
    }
    // State k, n_states for a fresh one, is next.
    void enter(Particle &p, int32_t k, bitgen_t *g) {
        if (k == p.n_states) {
            ++p.n_states;
            p.dish_tables.push_back(0);
            p.row_customers.push_back(0);
            for (size_t c = 0; c < columns_.size(); ++c) {
                p.columns[c].totals.push_back(0);
                p.columns[c].inverse.push_back(1.0 / columns_[c].alpha);
            }
            for (size_t f = 0; f < families_.size(); ++f)
                p.numbers[f].insert(p.numbers[f].end(), fresh_[f].begin(), fresh_[f].end());
        }
        int32_t count = 0;
        visit_row(p, p.restaurant, [&](int32_t id, int32_t n) { count += id == k ? n : 0; });
        const double fresh = alpha_ * p.dish_tables[k] / (p.n_tables + gamma_);
        if (count == 0 || uniform(g) * (count + fresh) < fresh) {
            ++p.dish_tables[k];
            ++p.n_tables;
        }
        ++p.row_customers[p.restaurant];
        p.fresh.transitions.add(p.restaurant, k);
        p.fresh.labels.push_back(k);
        p.restaurant = k + 1;
    }
    // It emits `row` and `y`.
    void emit(Particle &p, int32_t k, const int32_t *row, const double *y, bitgen_t *g) {
        for (size_t f = 0; f < families_.size(); y += families_[f++]->n_columns)
            if (!families_[f]->is_missing(y))
                families_[f]->add(&p.numbers[f][static_cast<size_t>(k) * families_[f]->width],
                                  1, y);
        p.fresh.columns.resize(columns_.size());
        for (size_t c = 0; c < columns_.size(); ++c) {
            if (row[c] < 0) continue;
            ColumnState &state = p.columns[c];
            if (columns_[c].hierarchical) {
                const int32_t count = symbol_count(p, c, k, row[c]);
                const double open = smooth(p, c, row[c]);
                if (count == 0 || uniform(g) * (count + open) < open) {
                    ++state.symbol_tables[row[c]];
                    ++state.n_tables;
                }
            }
            state.observe(k, 1, columns_[c].alpha);
            p.fresh.columns[c].add(row[c], k);
        }
    }
    int32_t symbol_count(const Particle &p, size_t c, int32_t k, int32_t symbol) const {
        int32_t count = 0;
        visit_symbol(p, c, symbol, [&](int32_t id, int32_t n) { count += id == k ? n : 0; });
        return count;
    }

    void resample(bitgen_t *g) {
        // offspring[p]: how many copies of particle p go on.
        std::vector<int32_t> offspring(n_particles_, 0);
        std::vector<double> points(n_particles_);
        if (resampling_ == Resampling::kSystematic) {
            const double u = uniform(g);
            for (int32_t i = 0; i < n_particles_; ++i) points[i] = (i + u) / n_particles_;
        } else {
            for (int32_t i = 0; i < n_particles_; ++i) {
                const double u = uniform(g);
                points[i] = resampling_ == Resampling::kStratified
                                ? (i + u) / n_particles_ : u;
            }
            std::sort(points.begin(), points.end());
        }
        double cumulative = weights_[0];
        int32_t p = 0;
        for (double point : points) {
            while (point >= cumulative && p < n_particles_ - 1) cumulative += weights_[++p];
            ++offspring[p];
        }
        int32_t hole = 0;
        for (p = 0; p < n_particles_; ++p) {
            for (; offspring[p] > 1; --offspring[p]) {
                while (offspring[hole] > 0) ++hole;
                particles_[hole] = particles_[p];
                draws_[hole] = draws_[p];
                offspring[hole] = 1;
            }
        }
        std::fill(weights_.begin(), weights_.end(), 1.0 / n_particles_);
    }

    // Fold the old generation into the base once everybody shares it.
    void rotate() {
        if (particles_[0].fresh.labels.size() < 32) return;
        const std::shared_ptr<const Generation> shared = particles_[0].old;
        for (const Particle &p : particles_)
            if (p.old != shared) return;
        if (shared) {
            const Chains &rows = shared->transitions;
            if (rows.heads.size() > base_rows_.size()) base_rows_.resize(rows.heads.size());
            for (size_t j = 0; j < rows.heads.size(); ++j)
                rows.visit(static_cast<int32_t>(j), [&](int32_t id, int32_t n) {
                    fold(base_rows_[j], id, n); });
            for (size_t c = 0; c < shared->columns.size(); ++c)
                for (size_t w = 0; w < shared->columns[c].heads.size(); ++w)
                    shared->columns[c].visit(static_cast<int32_t>(w),
                        [&](int32_t id, int32_t n) {
                            fold(columns_[c].by_symbol[w], id, n); });
            path_.insert(path_.end(), shared->labels.begin(), shared->labels.end());
        }
        for (Particle &p : particles_) {
            p.old = std::make_shared<const Generation>(std::move(p.fresh));
            p.fresh = Generation();
        }
    }
    static void fold(std::vector<Counts> &line, int32_t id, int32_t n) {
        for (Counts &entry : line)
            if (entry.id == id) {
                entry.n += n;
                return;
            }
        line.push_back({id, n});
    }

    // Columns whose probabilities are multiplied before a logarithm is taken.
    static constexpr size_t kGroup = 16;
    struct Draw { std::vector<double> weights; double total = 0.0; };

    int32_t n_particles_;
    Resampling resampling_;
    double alpha_, gamma_;
    Particle root_;                                  // what every particle starts as
    std::vector<std::vector<Counts>> base_rows_;
    std::vector<Column> columns_;
    std::vector<const Family *> families_;
    std::vector<std::vector<double>> fresh_;         // by family: a state without observations
    size_t n_values_ = 0;
    std::vector<Particle> particles_;
    std::vector<double> weights_;
    std::vector<Draw> draws_;
    std::vector<int32_t> path_;                      // of the folded generations
    std::vector<double> w_, prior_, counts_, logs_;
    double total_ = 0.0;
};

}  // namespace skihmm
