// Probabilities of a particle's next state and observation, and of the tables that are joined, by
// the counts of its history.
//
// A history's counts are the counts common to all histories, in lines, plus the counts of its
// generations.  Rows of the common counts are expanded once per step for all histories.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "_family.hpp"
#include "_law.hpp"
#include "_math.hpp"
#include "_particle_history.hpp"
#include "_particle_lines.hpp"
#include "_random.hpp"
#include "_transitions.hpp"

namespace skihmm {

// w[k] = scale * tables[k] + share * row[k]: a new table, or a table of `row`.
SKIHMM_CLONES static void mix_tables(int32_t n, double scale, const int32_t *tables,
                                     double share, const double *row, double *w) {
    for (int32_t k = 0; k < n; ++k) w[k] = scale * tables[k] + share * row[k];
}
SKIHMM_CLONES static void add_row(int32_t n, double share, const double *row, double *w) {
    for (int32_t k = 0; k < n; ++k) w[k] += share * row[k];
}
// w[k] *= the probability of a symbol in the restaurant of state k.
SKIHMM_CLONES static void multiply_symbol(int32_t n, const double *counts, double new_table,
                                          const double *inverse, double *w) {
    for (int32_t k = 0; k < n; ++k) w[k] *= dish_weight(counts[k], new_table) * inverse[k];
}
// mix_tables in the restaurants below, from the probabilities above.
SKIHMM_CLONES static void descend(int32_t n, const double *counts, const double *totals,
                                  double alpha, double *law) {
    for (int32_t k = 0; k < n; ++k)
        law[k] = dish_weight(counts[k], alpha * law[k]) / total_weight(totals[k], alpha);
}
// By block the sum of all w up to its end, on every machine in the same order.
typedef double EightSums SKIHMM_VECTOR(8);
SKIHMM_CLONES static void sum_blocks(int32_t n_blocks, const double *w, double *ends) {
    constexpr int32_t n_parts = 8 * sizeof(double) / sizeof(EightSums);
    double total = 0.0;
    for (int32_t block = 0; block < n_blocks; ++block, w += kBlock) {
        EightSums sums[n_parts] = {};
        for (int32_t i = 0; i < kBlock / 8 * n_parts; ++i)
            sums[i % n_parts] += reinterpret_cast<const EightSums *>(w)[i];
        double lanes[8];
        std::memcpy(lanes, sums, sizeof(lanes));
        total += ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6]))
                 + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
        ends[block] = total;
    }
}

// The entry whose share of the weights has the point u in it.
inline int32_t choose_entry(const double *w, int32_t n, double u) {
    int32_t chosen = 0;
    for (int32_t k = 0; k < n; ++k) {
        if (w[k] > 0.0) {
            chosen = k;
            if ((u -= w[k]) < 0.0) break;
        }
    }
    return chosen;
}

// Weights of the next state, and their parts.
struct NextWeights {
    // A range of customers that joined since.
    struct Span { int32_t begin = 0, end = 0; };
    // A restaurant in which the next state may be drawn.
    struct Level {
        int32_t row = 0;                // of the common counts
        double total = 0.0;             // weight of all states
        double share = 0.0;             // of the probability of a state, by customer
        Span joined;                // since, by state
    };
    // A symbol in the restaurants of a depth: its customers, and all of them.
    struct SymbolLevel {
        Span joined, all_joined;
    };

    WideVector<double> w;               // padded with zeros
    std::vector<double> ends;           // by block: the sum of all w up to its end
    double likelihood = 0.0, log_factor = 0.0;      // p(y) = likelihood * exp(log_factor)
    double self = 0.0;                  // share of a stay in a self-transition
    double stay = 0.0;                  // probability of a stay
    std::vector<Level> levels;          // by depth, from 1 on
    std::vector<double> symbol_bases;   // by column: probability of its symbol at the root
    std::vector<SymbolLevel> symbol_levels;         // by column and depth, from 1 on
    std::vector<IdCount> joined;        // of all levels, one after the other

    int32_t n_joined() const { return static_cast<int32_t>(joined.size()); }
    template <class Visit> void visit(Span span, Visit visitor) const {
        for (int32_t i = span.begin; i < span.end; ++i) visitor(joined[i].id, joined[i].n);
    }
    int32_t count(Span span, int32_t id) const {
        int32_t count = 0;
        visit(span, [&](int32_t other, int32_t n) { count += other == id ? n : 0; });
        return count;
    }
    // Counts are integers: subtracting an added number from a row leaves no rest.
    void change(Span span, int32_t sign, Row *row) const {
        visit(span, [&](int32_t id, int32_t n) { row->counts[id] += sign * n; });
    }
    int32_t choose(bitgen_t *g) const {
        const double u = uniform(g) * ends.back();
        size_t block = 0;
        for (double end : ends) block += u >= end;
        // Where rounding has put u at the very end, the last block that has a share.
        block = std::min(block, ends.size() - 1);
        while (block > 0 && ends[block] == ends[block - 1]) --block;
        return static_cast<int32_t>(block) * kBlock
               + choose_entry(&w[block * kBlock], kBlock, block ? u - ends[block - 1] : u);
    }
};

class ParticleCounts {
  public:
    // The seating to start from is the seating of `transitions`, whose states have all the slots
    // from kFirst on, plus the additions of the functions below.  If transitions depend on
    // contexts, `shape` has their contexts and further ones, and there is one place for every step.
    ParticleCounts(const HCRPTransitions &transitions, const ContextShape &shape,
                   std::vector<ContextPlace> places)
        : gamma_(transitions.base.gamma), coins_(transitions.coins()),
          lines_(shape, std::move(places), alphas_of(transitions, shape)),
          seats_(shape.depth() + 1) {
        const int32_t n_slots = std::max(kFirst, transitions.n_slots());
        root_.n_states = n_slots - kFirst;
        root_.n_tables = transitions.base.n_tables;
        root_.dish_tables.assign(padded(root_.n_states), 0);
        for (int32_t k = 0; k < root_.n_states; ++k)
            root_.dish_tables[k] = transitions.base.dish_tables[kFirst + k];
        std::vector<int32_t> draws(n_slots, 0);
        const auto take = [&](int32_t d, int32_t j, int32_t prefix, int32_t k, int32_t n) {
            lines_.append(lines_.line(j - kStart, d, prefix), k - kFirst, n);
            draws[j] += n;
        };
        if (shape.exists()) {
            transitions.contexts().visit_cells(take);
            draws = transitions.coins().draws();
        } else {
            for (int32_t j = kStart; j < transitions.n_slots(); ++j) {
                const Line &row = transitions.rows[j];
                for (int32_t i = 0; i < row.size; ++i) take(1, j, 0, row.ids[i], row.counts[i]);
            }
        }
        root_.coins = coins_.root(transitions.coins(), draws);
    }
    // Symbols, hierarchical or with a Dirichlet prior of pseudo-counts alphas[0].  If their
    // distribution depends on contexts, the tree of their restaurants, in which the states come
    // first, the leaf of every step, and the concentrations of depth 1, 2, ...
    void add_column(int32_t n_symbols, bool hierarchical, const ContextShape &shape,
                    std::vector<ContextPlace> places, std::vector<double> alphas,
                    double gamma) {
        if (!hierarchical) alphas[0] *= n_symbols;
        const double inverse = 1.0 / alphas[0];
        columns_.emplace_back(n_symbols, hierarchical, gamma,
                              Lines(shape, std::move(places), std::move(alphas)));
        columns_.back().first_level = n_levels_;
        n_levels_ += shape.depth();
        seats_.resize(std::max<size_t>(seats_.size(), shape.depth() + 1));
        root_.columns.emplace_back();
        root_.columns.back().totals.assign(root_.n_states, 0);
        root_.columns.back().inverse.assign(padded(root_.n_states), inverse);
    }
    // Restaurants of depth d of the last column, over slots, n_prefixes of every state.
    void add_seating(int32_t d, int32_t n_prefixes, const SeatingRecord &record) {
        for (size_t i = 0; i < record.rows.size(); ++i)
            add_cell(static_cast<int32_t>(columns_.size()) - 1, d,
                     record.rows[i] / n_prefixes - kFirst, record.rows[i] % n_prefixes,
                     record.dishes[i], record.n_customers[i], record.n_tables[i]);
    }
    // The next columns of `values` are the rows of a family, which must outlive this object.
    // `numbers` holds the family's statistics of the current states, one after the other.
    void add_family(const Family *family, const double *numbers) {
        families_.push_back(family);
        n_values_ += family->data_width();
        row_width_ += family->row_width();
        fresh_.emplace_back(family->width);
        family->reset(fresh_.back().data(), 1);
        root_.numbers.emplace_back(
            numbers, numbers + static_cast<size_t>(root_.n_states) * family->width);
    }

    // The initial history of every particle.
    const History &root() const { return root_; }
    size_t n_columns() const { return columns_.size(); }
    size_t n_values() const { return n_values_; }
    // How a step was drawn: the entrance of the state, and the tables that symbols open.
    size_t n_opens() const { return 1 + columns_.size(); }
    // The next step is drawn after a restaurant.
    void enter(History *p, int32_t restaurant) const {
        p->restaurant = restaurant;
    }

    // ---- a step

    // Begin step t, of histories with at most n_states states: only rows of its symbols are
    // expanded yet.
    void begin_step(int64_t t, const int32_t *row, int32_t n_states) {
        step_ = t;
        n_padded_ = padded(n_states);
        lines_.find(t);
        row_of_.assign(lines_.depth * (n_padded_ + 1), -1);
        n_rows_ = 0;
        for (Column &column : columns_) column.lines.find(t);
        begin_symbols(row);
    }
    // Expand the common counts of symbols by state.
    void begin_symbols(const int32_t *row) {
        for (size_t c = 0; c < columns_.size(); ++c) {
            if (row[c] < 0) continue;
            Column &column = columns_[c];
            for (int32_t d = 1; d <= column.lines.depth; ++d) {
                column.lines.spread(column.lines.line(row[c], d), n_padded_,
                                    &column.counts[d]);
                if (d > 1)
                    column.lines.spread(column.lines.line(column.n_symbols, d), n_padded_,
                                        &column.totals[d]);
            }
        }
    }
    // Look up the generations' counts for `weigh`.
    void look_up(const History &p, const int32_t *row, NextWeights *out) {
        out->levels.resize(lines_.largest_depth() + 1);
        out->symbol_bases.resize(columns_.size());
        out->symbol_levels.resize(n_levels_);
        out->joined.clear();
        const auto take = [&](int32_t k, int32_t n) { out->joined.push_back({k, n}); };
        for (int32_t d = 1; d <= lines_.depth; ++d) {
            NextWeights::Level &level = out->levels[d];
            const int32_t line = lines_.line(p.restaurant, d);
            level.row = row_at(d, p.restaurant, line);
            level.joined.begin = out->n_joined();
            if (p.old) p.old->transitions.visit(line, take);
            p.fresh.transitions.visit(line, take);
            level.joined.end = out->n_joined();
        }
        for (size_t c = 0; c < columns_.size(); ++c)
            if (row[c] >= 0) look_up_symbol(p, c, row[c], out);
    }
    // w_k = p(k | restaurant) p(y | k) for every state and, last, a new state.
    void weigh(const History &p, const int32_t *row, const double *y, NextWeights *out) {
        const int32_t n_padded = padded(p.n_states), j = p.restaurant - 1;
        out->w.resize(n_padded);
        out->ends.resize(n_padded / kBlock);
        out->log_factor = 0.0;
        const bool has_coin = coins_.exist() && j >= 0;
        const double leave = has_coin ? coins_.leave(step_, p.coins, j, &out->stay) : 1.0;
        out->self = 0.0;
        fill_law(p, leave, out);
        if (has_coin) {
            out->w[j] += 1.0 - leave;
            out->self = (1.0 - leave) / out->w[j];
        }
        multiply_emissions(p, row, y, out);
        sum_blocks(n_padded / kBlock, out->w.data(), out->ends.data());
        out->likelihood = out->ends.back();
    }
    // The entrance of state k; n_states is a new state.
    uint8_t draw_entrance(const History &p, const NextWeights &next, int32_t k, bitgen_t *g) {
        if (next.self > 0.0 && k == p.restaurant - 1 && uniform(g) < next.self) return kStays;
        double law = (k < p.n_states ? p.dish_tables[k] : gamma_)
                     / total_weight(p.n_tables, gamma_);
        for (int32_t d = 1; d <= lines_.depth; ++d) {
            const NextWeights::Level &level = next.levels[d];
            const double n = rows_[level.row].counts[k] + next.count(level.joined, k);
            seats_[d] = {n, lines_.alpha(d) * law};
            if (d < lines_.depth) law = dish_weight(n, seats_[d].new_table) / level.total;
        }
        return draw_opened(lines_.depth, g);
    }
    // By column the number of tables that its symbol opens in state k.
    void draw_tables(const History &p, const NextWeights &next, int32_t k, const int32_t *row,
                     uint8_t *opened, bitgen_t *g) {
        for (size_t c = 0; c < columns_.size(); ++c) {
            opened[c] = 0;
            if (row[c] < 0 || !columns_[c].hierarchical) continue;
            follow_symbol(p, c, k, row[c], next,
                          [&](int32_t, const Row &line) { return line.counts[k]; });
            opened[c] = draw_opened(columns_[c].lines.depth, g);
        }
    }
    // Draw the emission of state k at step t: of column c one of the first n_known[c] symbols.
    void emit(const History &p, int32_t k, int64_t t, const int32_t *n_known, NextWeights *next,
              int32_t *row, double *y, bitgen_t *g) {
        std::vector<double> w, parameters;
        for (size_t c = 0; c < columns_.size(); ++c) {
            w.resize(n_known[c]);
            double total = 0.0;
            for (int32_t i = 0; i < n_known[c]; ++i) {
                look_up_symbol(p, c, i, next);
                total += w[i] = follow_symbol(p, c, k, i, *next, [&](int32_t line, const Row &) {
                    return columns_[c].lines.count(line, k);
                });
            }
            row[c] = choose_entry(w.data(), n_known[c], uniform(g) * total);
        }
        for (size_t f = 0; f < families_.size(); y += families_[f++]->data_width()) {
            const Family &family = *families_[f];
            family.next_inputs(t > 0 ? y - n_values_ : nullptr, y + family.n_columns);
            const double *numbers =
                k < p.n_states ? &p.numbers[f][static_cast<size_t>(k) * family.width]
                               : fresh_[f].data();
            family.draw_predictive(numbers, 1, &parameters, y, g);
        }
    }
    // State k (n_states: a new state) is next, with the entrance `opens`, and emits `row` and `y`.
    void seat(History &p, int32_t k, const uint8_t *opens, const int32_t *row,
              const double *y, bitgen_t *g) {
        if (k == p.n_states) add_state(&p);
        const int32_t j = p.restaurant - 1;
        if (j >= 0) coins_.add_way(step_, &p.coins, j, opens[0] == kStays, g);
        if (opens[0] == kStays) {
            coins_.stay(&p.coins, k);
        } else {
            coins_.draw(&p.coins, j);
            for (int32_t d = lines_.depth; d >= std::max(1, lines_.depth - opens[0]); --d)
                p.fresh.transitions.add(lines_.line(p.restaurant, d), k);
            p.dish_tables[k] += opens[0] == lines_.depth;
            p.n_tables += opens[0] == lines_.depth;
        }
        p.fresh.labels.push_back(k);
        p.restaurant = k + 1;
        p.fresh.columns.resize(columns_.size());
        for (size_t c = 0; c < columns_.size(); ++c)
            if (row[c] >= 0) seat_symbol(p, c, k, row[c], opens[1 + c]);
        for (size_t f = 0; f < families_.size(); y += families_[f++]->row_width()) {
            const Family &family = *families_[f];
            const bool is_partial = family.is_missing(y);
            if (is_partial && family.is_unseen(y)) continue;
            double *numbers = &p.numbers[f][static_cast<size_t>(k) * family.width];
            if (!family.weighted && !is_partial) {
                family.add(numbers, 1, y);
                continue;
            }
            // Particles that share a history until now share the weight and the filled entries of a
            // partial row: their number does not depend on these draws, so weights of particles
            // keep their expectations.
            drawn_.assign(y, y + family.row_width());
            if (is_partial) family.linear->complete(numbers, drawn_.data(), g);
            else family.weighted->draw_weights(numbers, drawn_.data(), g);
            family.add(numbers, 1, drawn_.data());
        }
    }
    // A row of `values`, or none, with weights, which are unknown.
    const double *complete(const double *y) {
        if (y && row_width_ == n_values_) return y;
        row_.assign(row_width_, NAN);
        if (!y) return row_.data();
        double *out = row_.data();
        for (const Family *family : families_) {
            std::copy_n(y, family->data_width(), out);
            y += family->data_width();
            out += family->row_width();
        }
        return row_.data();
    }
    // Add the customers of a generation to the common counts (sign 1), or remove them (-1) if they
    // were added last.
    void fold(const Generation &generation, int32_t sign) {
        for (const JoinedCounts::Entry &entry : generation.transitions.entries())
            lines_.change(entry.line, entry.id, sign * entry.n);
        for (size_t c = 0; c < generation.columns.size(); ++c)
            for (const JoinedCounts::Entry &entry : generation.columns[c].entries()) {
                const int32_t n = sign * entry.n;
                Lines &lines = columns_[c].lines;
                if (entry.id != kTables) lines.change(entry.line, entry.id, n);
                else columns_[c].symbol_tables[entry.line / lines.n_lines()] += n;
            }
    }

  private:
    // Stands in a line of a symbol for the tables that were opened at the root.
    static constexpr int32_t kTables = -1;
    // An entrance by a stay, or, below this, the number of tables, one above the other, that a
    // customer opens.
    enum Entrance : uint8_t { kStays = 255 };
    // Columns whose probabilities are multiplied before a logarithm is taken.
    static constexpr size_t kGroup = 16;

    // The lines of a symbol are a block, and the lines of all customers are the last block; but all
    // customers of depth 1, the states' restaurants, are in the histories.
    struct Column {
        int32_t n_symbols;
        bool hierarchical;
        double gamma, symbol_mass;              // of a symbol: gamma over their number
        Lines lines;
        std::vector<int32_t> symbol_tables;
        size_t first_level = 0;                 // of NextWeights::symbol_levels
        std::vector<Row> counts, totals;        // of this step by depth

        Column(int32_t n, bool hierarchical, double gamma, Lines all_lines)
            : n_symbols(n), hierarchical(hierarchical), gamma(gamma), symbol_mass(gamma / n),
              lines(std::move(all_lines)), symbol_tables(n, 0),
              counts(lines.largest_depth() + 1), totals(lines.largest_depth() + 1) {
            if ((n + int64_t{1}) * lines.n_lines() > kMostCustomers) throw std::bad_alloc();
        }
        size_t level_of(int32_t d) const { return first_level + d - 1; }
    };

    static std::vector<double> alphas_of(const HCRPTransitions &transitions,
                                         const ContextShape &shape) {
        std::vector<double> alphas;
        for (int32_t d = 1; d <= shape.depth(); ++d)
            alphas.push_back(shape.exists() ? transitions.contexts().alpha(d)
                                            : transitions.alpha);
        return alphas;
    }

    // Customers of a symbol in one restaurant, and their tables.
    void add_cell(int32_t c, int32_t depth, int32_t state, int32_t prefix, int32_t symbol,
                  int32_t n_customers, int32_t n_tables) {
        Column &column = columns_[c];
        Lines &lines = column.lines;
        lines.append(lines.line(symbol, depth, prefix), state, n_customers);
        if (depth > 1)
            return lines.change(lines.line(column.n_symbols, depth, prefix), state,
                                n_customers);
        root_.columns[c].observe(state, n_customers, lines.alpha(1));
        if (!column.hierarchical) return;
        column.symbol_tables[symbol] += n_tables;
        root_.columns[c].n_tables += n_tables;
    }

    // ---- the next state

    // The row of a restaurant's line, which histories share.
    int32_t row_at(int32_t d, int32_t j, int32_t line) {
        int32_t &at = row_of_[(d - 1) * (n_padded_ + 1) + (lines_.has_state(d) ? j : 0)];
        if (at >= 0) return at;
        at = n_rows_++;
        if (rows_.size() == static_cast<size_t>(at)) rows_.emplace_back();
        lines_.spread(line, n_padded_, &rows_[at]);
        return at;
    }
    // w_k = share * p(k | restaurant) of every state and, last, a new state, zero after it.  A draw
    // at a new table is a draw in the restaurant above, so its probability is a sum over the
    // restaurants, from the leaf up, of the customers that a state has there.
    void fill_law(const History &p, double share, NextWeights *out) {
        const int32_t n_padded = padded(p.n_states), depth = lines_.depth;
        for (int32_t d = depth; d >= 1; --d) {
            NextWeights::Level &level = out->levels[d];
            int64_t size = rows_[level.row].n_customers;
            out->visit(level.joined, [&](int32_t, int32_t n) { size += n; });
            level.total = total_weight(size, lines_.alpha(d));
            level.share = share / level.total;
            share = level.share * lines_.alpha(d);
        }
        const double scale = table_scale(share, p.n_tables, gamma_);
        double *w = out->w.data();
        if (depth == 0) std::fill_n(w, n_padded, 0.0);
        mix_tables(n_padded, scale, p.dish_tables.data(), depth ? out->levels[1].share : 0.0,
                   depth ? rows_[out->levels[1].row].counts.data() : w, w);
        for (int32_t d = 2; d <= depth; ++d)
            add_row(n_padded, out->levels[d].share, rows_[out->levels[d].row].counts.data(), w);
        for (int32_t d = 1; d <= depth; ++d) {
            const NextWeights::Level &level = out->levels[d];
            out->visit(level.joined, [&](int32_t k, int32_t n) { w[k] += level.share * n; });
        }
        w[p.n_states] = scale * gamma_;
    }
    // The number of tables that a customer opens who joins a table with the weights seats_.
    uint8_t draw_opened(int32_t depth, bitgen_t *g) const {
        uint8_t h = 0;
        for (int32_t d = depth; d >= 1; --d, ++h)
            if (seats_[d].n > 0.0 && !opens_table(seats_[d].n, seats_[d].new_table, uniform(g)))
                break;
        return h;
    }
    void add_state(History *p) const {
        ++p->n_states;
        p->dish_tables.resize(padded(p->n_states));
        coins_.add_state(&p->coins);
        for (size_t c = 0; c < columns_.size(); ++c) {
            p->columns[c].totals.push_back(0);
            p->columns[c].inverse.resize(padded(p->n_states), 1.0 / columns_[c].lines.alpha(1));
        }
        for (size_t f = 0; f < families_.size(); ++f)
            p->numbers[f].insert(p->numbers[f].end(), fresh_[f].begin(), fresh_[f].end());
    }

    // ---- its observation

    // w_k *= p(y | k) for every state and a new state, up to the factor.
    void multiply_emissions(const History &p, const int32_t *row, const double *y,
                            NextWeights *out) {
        const int32_t n = p.n_states + 1;
        double *w = out->w.data();
        if (families_.empty() && columns_.size() <= kGroup)
            return multiply_columns(p, row, 0, columns_.size(), *out, w);
        // The product of many columns leaves the range of a double.
        logs_.assign(n, 0.0);
        likelihoods_.resize(n);
        for (size_t c = 0; c < columns_.size(); c += kGroup) {
            std::fill(likelihoods_.begin(), likelihoods_.end(), 1.0);
            multiply_columns(p, row, c, std::min(c + kGroup, columns_.size()), *out,
                             likelihoods_.data());
            for (int32_t k = 0; k < n; ++k) logs_[k] += std::log(likelihoods_[k]);
        }
        for (size_t f = 0; f < families_.size(); y += families_[f++]->row_width())
            if (!families_[f]->is_unseen(y))
                families_[f]->fill_rows(p.numbers[f].data(), n - 1, fresh_[f].data(), y,
                                        logs_.data());
        out->log_factor = *std::max_element(logs_.begin(), logs_.end());
        fill_exp(n, logs_.data(), out->log_factor, kLeastLog, likelihoods_.data());
        for (int32_t k = 0; k < n; ++k) w[k] *= likelihoods_[k];
    }
    // w[k] *= product over columns start .. stop - 1 of p(row[c] | k).
    void multiply_columns(const History &p, const int32_t *row, size_t start, size_t stop,
                          const NextWeights &next, double *w) {
        const int32_t n = p.n_states + 1;
        for (size_t c = start; c < stop; ++c) {
            if (row[c] < 0) continue;
            Column &column = columns_[c];
            const int32_t depth = column.lines.depth;
            double *law = w;
            if (depth > 1) {
                law_.assign(n, 1.0);
                law = law_.data();
            }
            for (int32_t d = 1; d <= depth; ++d) {
                const NextWeights::SymbolLevel &level = next.symbol_levels[column.level_of(d)];
                const double alpha = column.lines.alpha(d);
                Row &counts = column.counts[d], &totals = column.totals[d];
                next.change(level.joined, 1, &counts);
                if (d == 1) {
                    multiply_symbol(n, counts.counts.data(), alpha * next.symbol_bases[c],
                                    p.columns[c].inverse.data(), law);
                } else {
                    next.change(level.all_joined, 1, &totals);
                    descend(n, counts.counts.data(), totals.counts.data(), alpha, law);
                    next.change(level.all_joined, -1, &totals);
                }
                next.change(level.joined, -1, &counts);
            }
            if (depth > 1)
                for (int32_t k = 0; k < n; ++k) w[k] *= law[k];
        }
    }
    void look_up_symbol(const History &p, size_t c, int32_t symbol, NextWeights *out) const {
        const Column &column = columns_[c];
        const Lines &lines = column.lines;
        int32_t tables = column.symbol_tables[symbol];
        const auto take = [&](int32_t id, int32_t n) {
            if (id == kTables) tables += n;
            else out->joined.push_back({id, n});
        };
        const auto look_up = [&](int32_t line) {
            NextWeights::Span span{out->n_joined(), 0};
            if (p.old && c < p.old->columns.size()) p.old->columns[c].visit(line, take);
            if (c < p.fresh.columns.size()) p.fresh.columns[c].visit(line, take);
            span.end = out->n_joined();
            return span;
        };
        for (int32_t d = 1; d <= lines.depth; ++d) {
            NextWeights::SymbolLevel &level = out->symbol_levels[column.level_of(d)];
            level.joined = look_up(lines.line(symbol, d));
            if (d > 1) level.all_joined = look_up(lines.line(column.n_symbols, d));
        }
        out->symbol_bases[c] =
            column.hierarchical
                ? new_table_weight(1.0, tables + column.symbol_mass, p.columns[c].n_tables,
                                   column.gamma)
                : 1.0 / column.n_symbols;
    }
    // Weight of a symbol in the leaf of state k, and in seats_ the customers that it is made of, of
    // which count(line, row) has those in common, in a line and, if it is expanded, in its row.
    template <class Count>
    double follow_symbol(const History &p, size_t c, int32_t k, int32_t symbol,
                         const NextWeights &next, Count count) {
        const Column &column = columns_[c];
        const Lines &lines = column.lines;
        double law = next.symbol_bases[c];
        for (int32_t d = 1; d <= lines.depth; ++d) {
            const NextWeights::SymbolLevel &level = next.symbol_levels[column.level_of(d)];
            const double n = count(lines.line(symbol, d), column.counts[d])
                             + next.count(level.joined, k);
            seats_[d] = {n, lines.alpha(d) * law};
            law = dish_weight(n, seats_[d].new_table);
            if (d == lines.depth) break;
            const double size = d == 1 ? (k < p.n_states ? p.columns[c].totals[k] : 0)
                                       : count(lines.line(column.n_symbols, d), column.totals[d])
                                             + next.count(level.all_joined, k);
            law /= total_weight(size, lines.alpha(d));
        }
        return law;
    }
    void seat_symbol(History &p, size_t c, int32_t k, int32_t symbol, int32_t n_opened) const {
        const Lines &lines = columns_[c].lines;
        JoinedCounts &joined = p.fresh.columns[c];
        const int32_t last = std::max(1, lines.depth - n_opened);
        for (int32_t d = lines.depth; d >= last; --d) {
            joined.add(lines.line(symbol, d), k);
            if (d > 1) joined.add(lines.line(columns_[c].n_symbols, d), k);
        }
        if (last == 1) p.columns[c].observe(k, 1, lines.alpha(1));
        if (n_opened < lines.depth) return;
        ++p.columns[c].n_tables;
        joined.add(lines.line(symbol, 1, 0), kTables);
    }

    double gamma_;
    ParticleCoins coins_;
    int64_t step_ = 0;
    Lines lines_;                                   // of the transitions
    std::vector<Column> columns_;
    size_t n_levels_ = 0;                           // of all columns
    std::vector<const Family *> families_;
    std::vector<std::vector<double>> fresh_;        // by family: a state without observations
    size_t n_values_ = 0, row_width_ = 0;           // without weights, and with them
    History root_;
    std::vector<Row> rows_;                         // of this step, of the transitions
    std::vector<int32_t> row_of_;                   // by depth and restaurant
    int32_t n_rows_ = 0, n_padded_ = 0;
    struct Seat { double n, new_table; };
    std::vector<Seat> seats_;                       // by depth
    std::vector<double> row_, drawn_;   // of all families; with the drawn values of a row
    std::vector<double> law_, logs_, likelihoods_;  // scratch
};

}  // namespace skihmm
