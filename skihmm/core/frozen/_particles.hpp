// Particle filter over seatings (arXiv 1106.0474, Sections 3.3 and 5): sequential sampling
// of states with the seating updated along the way, for initial paths and for adaptive
// held-out prediction.
//
// A particle is the index of a history: the drawn states and the opened tables.  Particles with
// the same history share it, and with it the weights of the next step, which are most of the
// work.  Every particle draws its own next state and tables; those with equal draws continue to
// share, and for every other outcome the history is copied.  So the results are bit for bit
// those of particles without sharing; but for weights of rows, which particles with equal draws
// share: that changes the variance of what is estimated, not its expectation.
//
// The common part of all histories is stored once, in the base; a history stores the rest in two
// generations: `old`, shared by all descendants of the history that wrote it and constant, and
// `fresh`, its own.  When all histories share one `old` generation (their lines coalesce after a
// few hundred steps), it is folded into the base and the fresh generations become the old ones.
// So memory and copying do not grow with the length of the sequence.  Before another run the
// folded generations are removed from the base again, so that the cost of a new sequence does
// not depend on the base.
//
// Only counts are stored, not table sizes: the probability that a customer opens a table depends
// on n_jk and m_.k only.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "_family.hpp"
#include "_record.hpp"
#include "_transitions.hpp"

namespace skihmm {

// w[k] *= (counts[k] + all) * inverse[k]
SKIHMM_CLONES static void multiply_symbol(int32_t n, const double *counts, double all,
                                          const double *inverse, double *w) {
    for (int32_t k = 0; k < n; ++k) w[k] *= (counts[k] + all) * inverse[k];
}
// w[k] = scale * tables[k] + share * row[k]: a new table, or one of those in `row`.
SKIHMM_CLONES static void mix_tables(int32_t n, double scale, const int32_t *tables,
                                     double share, const double *row, double *w) {
    for (int32_t k = 0; k < n; ++k) w[k] = scale * tables[k] + share * row[k];
}
SKIHMM_CLONES static void add_row(int32_t n, double share, const double *row, double *w) {
    for (int32_t k = 0; k < n; ++k) w[k] += share * row[k];
}

// Arrays over the states go on to the end of a block, a new state at the first of the places that
// are left.
constexpr int32_t kBlock = 32;

// By block the sum of all w up to its end.
SKIHMM_CLONES static void sum_blocks(int32_t n_blocks, const double *w, double *ends) {
    double total = 0.0;
    for (int32_t block = 0; block < n_blocks; ++block, w += kBlock) {
        double lanes[8] = {};
        for (int32_t k = 0; k < kBlock; k += 8)
            for (int32_t l = 0; l < 8; ++l) lanes[l] += w[k + l];
        total += ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6]))
                 + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
        ends[block] = total;
    }
}

class ParticleFilter {
  public:
    struct Counts { int32_t id, n; };

    // The seating to start from is that of some transitions, whose states have all the slots
    // from kFirst on, and what the functions after this one add.  If they depend on contexts, the
    // shape is that of their contexts and more of them, and the places are those of the steps.
    ParticleFilter(int32_t n_particles, const HCRPTransitions &transitions,
                   const ContextShape &shape, std::vector<ContextPlace> places)
        : n_particles_(n_particles), gamma_(transitions.base.gamma),
          kappa_(transitions.coins().kappa), omega_(transitions.coins().omega),
          n_stages_(transitions.coins().n_stages),
          starts_inside_(transitions.coins().starts_inside), shape_(shape),
          places_(std::move(places)), first_line_(1, 0), prefixes_(shape.depth() + 1, 0) {
        const int32_t n_slots = std::max(kFirst, transitions.n_slots());
        root_.n_states = n_slots - kFirst;
        root_.n_tables = transitions.base.n_tables;
        root_.dish_tables.assign(padded(root_.n_states), 0);
        for (int32_t k = 0; k < root_.n_states; ++k)
            root_.dish_tables[k] = transitions.base.dish_tables[kFirst + k];
        for (int32_t d = 1; d <= shape.depth(); ++d) {
            first_line_.push_back(n_lines_);
            n_lines_ += shape.stride(d);
            alphas_.push_back(shape.exists() ? transitions.contexts().alpha(d)
                                             : transitions.alpha);
        }
        std::vector<int32_t> draws(n_slots, 0);
        const auto take = [&](int32_t d, int32_t j, int32_t prefix, int32_t k, int32_t n) {
            const size_t line = line_of(d, j - kStart, prefix);
            if (line >= base_rows_.size()) base_rows_.resize(line + 1);
            base_rows_[line].push_back({k - kFirst, n});
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
        if (kappa_ == 0.0) return;
        root_.stays.assign(transitions.coins().stays().begin() + kFirst,
                           transitions.coins().stays().begin() + n_slots);
        root_.advances.assign(transitions.coins().advances().begin() + kFirst,
                              transitions.coins().advances().begin() + n_slots);
        root_.draws.assign(draws.begin() + kFirst, draws.begin() + n_slots);
    }
    void add_column(int32_t n_symbols, bool hierarchical, double alpha, double gamma) {
        Column column;
        column.hierarchical = hierarchical;
        column.alpha = hierarchical ? alpha : alpha * n_symbols;
        column.symbol_mass = hierarchical ? gamma / n_symbols : alpha;
        column.gamma = gamma;
        column.by_symbol.resize(n_symbols);
        column.symbol_tables.assign(n_symbols, 0);
        columns_.push_back(std::move(column));
        root_.columns.emplace_back();
        root_.columns.back().totals.assign(root_.n_states, 0);
        root_.columns.back().inverse.assign(padded(root_.n_states),
                                            1.0 / columns_.back().alpha);
    }
    // The same of symbols whose distribution depends on contexts: the tree of their restaurants,
    // in which the states come first, the leaf of every step, and the concentrations of depth
    // 1, 2, ...
    void add_tree(int32_t n_symbols, const ContextShape &shape,
                  std::vector<ContextPlace> places, std::vector<double> alphas, double gamma) {
        add_column(n_symbols, true, alphas[0], gamma);
        columns_.back().by_symbol.clear();
        columns_.back().tree = std::make_unique<SymbolLines>(
            n_symbols, shape, std::move(places), std::move(alphas));
    }
    // Customers of one restaurant of a tree, and their tables.
    void add_tree_cell(int32_t c, int32_t depth, int32_t state, int32_t prefix,
                       int32_t symbol, int32_t n_customers, int32_t n_tables) {
        Column &column = columns_[c];
        const SymbolLines &tree = *column.tree;
        change(column.line(tree.line(symbol, depth, prefix)), state, n_customers);
        change(column.line(tree.line(tree.n_symbols, depth, prefix)), state, n_customers);
        if (depth > 1) return;
        column.symbol_tables[symbol] += n_tables;
        root_.columns[c].n_tables += n_tables;
    }
    // The next columns of `values` are the rows of a family, which must outlive the filter.
    // Of the states there are, `numbers` holds the family's, one state after the other.
    void add_family(const Family *family, const double *numbers) {
        families_.push_back(family);
        n_values_ += family->data_width();
        row_width_ += family->row_width();
        fresh_.emplace_back(family->width);
        family->reset(fresh_.back().data(), 1);
        root_.numbers.emplace_back(
            numbers, numbers + static_cast<size_t>(root_.n_states) * family->width);
    }
    void add_symbol(int32_t c, int32_t state, int32_t symbol, int32_t n_customers,
                    int32_t n_tables) {
        columns_[c].by_symbol[symbol].push_back({state, n_customers});
        root_.columns[c].observe(state, n_customers, columns_[c].alpha);
        if (columns_[c].hierarchical) {
            columns_[c].symbol_tables[symbol] += n_tables;
            root_.columns[c].n_tables += n_tables;
        }
    }

    // ---- run

    // `run` and `simulate` return a tenth of a second after this, with the first step that is
    // left, so that a caller can look whether the user has pressed Ctrl-C.
    void start_slice() { slice_ = Slice(); }
    // From this step on one particle, drawn by weight, goes on alone.
    void set_filtered(int64_t n_steps) { n_filtered_ = n_steps; }
    // Begin with the seating given above, whatever was run before: one history for all
    // particles.  The first step is drawn after `restaurant`, whose state is in a stage, unless a
    // sequence begins there.
    void begin(int32_t restaurant, int32_t stage) {
        for (; !folded_.empty(); folded_.pop_back()) fold(*folded_.back(), -1);
        const size_t n = n_particles_;
        histories_.resize(n);
        next_.resize(n);
        n_children_.resize(n);
        free_.resize(n);
        for (size_t h = 0; h < n; ++h) free_[h] = static_cast<int32_t>(n - 1 - h);
        weights_.assign(n, 1.0 / n_particles_);
        history_of_.assign(n, free_.back());
        live_.assign(1, free_.back());
        free_.pop_back();
        History &start = histories_[live_[0]];
        start = root_;
        start.restaurant = restaurant;
        start.stage = restaurant == 0 ? n_stages_ - 1 : stage;
    }

    // Filter rows of `codes` (-1: missing) and of `values` (NaN: missing), the columns of
    // symbols and those of families, from step t on.  A step with first[t] starts from the
    // start restaurant.  Unless null, log_predictive[t] = log of sum_p W_p l_p, the predictive
    // probability of row t before it is used.  Without `finish` the last row is only predicted, not
    // seated, and there is no path to draw.
    int64_t run(const int32_t *codes, const double *values, int64_t t, int64_t n_steps,
                const uint8_t *first, bool finish, double *log_predictive, bitgen_t *g) {
        const size_t n_columns = columns_.size();
        for (; t < n_steps && goes_on(); ++t) {
            if (t == n_filtered_) keep_one(g);
            const int32_t *row = codes + t * n_columns;
            const double *y = complete(values + t * n_values_);
            if (first[t])
                for (int32_t h : live_) {
                    histories_[h].restaurant = 0;
                    histories_[h].stage = n_stages_ - 1;
                }
            find_place(t);
            find_symbol_places(t);
            lay_out(row);
            double largest = -std::numeric_limits<double>::infinity();
            // Two loops: what is looked up is scattered, and the searches of several
            // histories overlap.
            for (int32_t h : live_) look_up(histories_[h], row, &next_[h]);
            for (int32_t h : live_) weigh(histories_[h], row, y, &next_[h]);
            // Those whose weight has underflowed have no part in it.
            for (int32_t p = 0; p < n_particles_; ++p)
                if (weights_[p] > 0.0)
                    largest = std::max(largest, next_[history_of_[p]].log_factor);
            for (int32_t h : live_)
                if (next_[h].log_factor != largest)
                    next_[h].likelihood *=
                        std::exp(std::min(next_[h].log_factor - largest, 0.0));
            double total = 0.0, squares = 0.0;
            for (int32_t p = 0; p < n_particles_; ++p)
                total += weights_[p] *= next_[history_of_[p]].likelihood;
            // False for NaN too.
            if (!(total > 0.0 && std::isfinite(total) && std::isfinite(largest)))
                throw std::invalid_argument(
                    "step " + std::to_string(t) + " is impossible by the seating, or its "
                    "concentrations or counts are out of all proportion");
            if (log_predictive) log_predictive[t] = std::log(total) + largest;
            if (!finish && t == n_steps - 1) return n_steps;
            for (int32_t p = 0; p < n_particles_; ++p) {
                weights_[p] /= total;
                squares += weights_[p] * weights_[p];
            }
            if (squares * n_particles_ > 2.0) {
                resample(g);
                rotate();
            }
            branch(row, y, g);
        }
        return t;
    }
    // The path of one particle drawn by weight, in time order.
    std::vector<int32_t> draw_path(bitgen_t *g) {
        const History &chosen = histories_[history_of_[draw_particle(g)]];
        std::vector<const Generation *> parts;
        for (const auto &generation : folded_) parts.push_back(generation.get());
        if (chosen.old) parts.push_back(chosen.old.get());
        parts.push_back(&chosen.fresh);
        size_t size = 0;
        for (const Generation *part : parts) size += part->labels.size();
        std::vector<int32_t> path;
        path.reserve(size);
        for (const Generation *part : parts)
            path.insert(path.end(), part->labels.begin(), part->labels.end());
        return path;
    }

    // Draw new states and observations from the predictive distribution, from step t on; of
    // column c only the first n_known[c] symbols.
    int64_t simulate(int64_t t, int64_t n_steps, const int32_t *n_known, int32_t *states_out,
                     int32_t *codes_out, double *values_out, bitgen_t *g) {
        const size_t n_columns = columns_.size();
        const std::vector<int32_t> missing(n_columns, -1);
        const std::vector<double> nothing(row_width_, NAN);
        std::vector<double> parameters;
        std::vector<uint8_t> opens(2 + n_columns);
        Weights next;
        History &p = histories_[live_[0]];
        for (; t < n_steps && goes_on(); ++t) {
            find_place(t);
            find_symbol_places(t);
            lay_out(missing.data());
            look_up(p, missing.data(), &next);
            weigh(p, missing.data(), nothing.data(), &next);
            const int32_t k = choose(next, g);
            opens[0] = draw_entrance(p, next, k, g);
            opens[1 + n_columns] = draw_stage(p, g);
            int32_t *row = codes_out + t * n_columns;
            for (size_t c = 0; c < n_columns; ++c) {
                std::vector<double> w(n_known[c]);
                double total = 0.0;
                for (int32_t symbol = 0; symbol < n_known[c]; ++symbol) {
                    if (columns_[c].tree) {
                        total += w[symbol] = symbol_prob(p, c, k, symbol);
                        continue;
                    }
                    look_up(p, c, symbol, &next.symbols[c]);
                    int32_t count = next.symbols[c].count(k);
                    for (const Counts &entry : columns_[c].by_symbol[symbol])
                        count += entry.id == k ? entry.n : 0;
                    total += w[symbol] = dish_weight<double>(count, next.symbols[c].all);
                }
                row[c] = choose(w.data(), n_known[c], uniform(g) * total);
                if (!columns_[c].tree) look_up(p, c, row[c], &next.symbols[c]);
            }
            double *y = values_out + t * n_values_;
            for (size_t f = 0, at = 0; f < families_.size(); at += families_[f++]->data_width()) {
                const Family &family = *families_[f];
                double *own = y + at;
                family.next_inputs(t > 0 ? own - n_values_ : nullptr, own + family.n_columns);
                family.draw_predictive(numbers_of(p, f, k), 1, &parameters, own, g);
            }
            lay_out(row);
            for (size_t c = 0; c < n_columns; ++c)
                opens[1 + c] = draw_symbol_tables(p, next, c, k, row[c], g);
            seat(p, k, opens.data(), row, complete(y), g);
            states_out[t] = k;
        }
        return t;
    }

  private:
    struct Entry { int32_t line, id, n, next; };
    // Customers that joined since, by row or by symbol: a hash table of small lists, so that
    // a copy costs what joined, not what there is.
    struct Chains {
        std::vector<int32_t> heads;        // a power of two of them, or none
        std::vector<Entry> entries;
        int32_t head(int32_t line) const {
            return heads.empty() ? -1 : heads[line & (heads.size() - 1)];
        }
        void add(int32_t line, int32_t id) {
            for (int32_t at = head(line); at >= 0; at = entries[at].next)
                if (entries[at].id == id && entries[at].line == line) {
                    ++entries[at].n;
                    return;
                }
            entries.push_back({line, id, 1, -1});
            if (entries.size() <= heads.size()) {
                link(entries.size() - 1);
            } else {
                heads.assign(std::max<size_t>(8, 2 * heads.size()), -1);
                for (size_t i = 0; i < entries.size(); ++i) link(i);
            }
        }
        template <class Visit> void visit(int32_t line, Visit visitor) const {
            for (int32_t at = head(line); at >= 0; at = entries[at].next)
                if (entries[at].line == line) visitor(entries[at].id, entries[at].n);
        }

      private:
        void link(size_t i) {
            int32_t &first = heads[entries[i].line & (heads.size() - 1)];
            entries[i].next = first;
            first = static_cast<int32_t>(i);
        }
    };
    // Stands in a chain of a symbol for the tables that were opened.
    static constexpr int32_t kTables = -1;
    struct Generation {
        Chains transitions;              // by row: dishes
        std::vector<Chains> columns;     // by symbol: states
        std::vector<int32_t> labels;     // states of its steps
    };
    // Symbols in a tree of restaurants (_contexts.hpp).  A line of counts is a symbol in all
    // states' restaurants of one depth and prefix, in blocks of n_lines for every symbol; after
    // those of the symbols come the numbers of all customers of these restaurants.
    struct SymbolLines {
        const int32_t n_symbols;
        const ContextShape shape;
        const std::vector<ContextPlace> places;     // by step
        const std::vector<double> alphas;           // by depth
        std::vector<int32_t> first_line;            // by depth, in a block
        int32_t n_lines = 0;
        int32_t depth = 1;                          // of this step's leaf
        std::vector<int32_t> prefixes;              // of this step by depth
        std::unordered_map<int32_t, std::vector<Counts>> base;

        SymbolLines(int32_t n, const ContextShape &tree, std::vector<ContextPlace> steps,
                    std::vector<double> by_depth)
            : n_symbols(n), shape(tree), places(std::move(steps)), alphas(std::move(by_depth)),
              first_line(1, 0), prefixes(shape.depth() + 1, 0) {
            int64_t sum = 0;
            for (int32_t d = 1; d <= shape.depth(); ++d) {
                first_line.push_back(static_cast<int32_t>(sum));
                sum += shape.stride(d);
                if (sum * (n + int64_t{1}) > kMostCustomers) throw std::bad_alloc();
            }
            n_lines = static_cast<int32_t>(sum);
        }
        void find(int64_t t) {
            ContextPlace at;
            if (t < static_cast<int64_t>(places.size())) at = places[t];
            depth = at.depth;
            shape.fill_prefixes(at, prefixes.data());
        }
        int32_t line(int32_t symbol, int32_t d, int32_t prefix) const {
            return symbol * n_lines + first_line[d] + prefix;
        }
        // Of this step.
        int32_t line(int32_t symbol, int32_t d) const { return line(symbol, d, prefixes[d]); }
        int32_t total_line(int32_t d) const { return line(n_symbols, d); }
    };
    struct Column {
        bool hierarchical = true;
        std::unique_ptr<SymbolLines> tree;    // instead of by_symbol
        double alpha = 1.0, gamma = 1.0;
        double symbol_mass = 0.0;        // gamma/V, or the Dirichlet pseudo-count
        std::vector<std::vector<Counts>> by_symbol;
        std::vector<int32_t> symbol_tables;   // e_w
        WideVector<double> counts;            // of the symbol of this step, by state

        std::vector<Counts> &line(int32_t i) { return tree ? tree->base[i] : by_symbol[i]; }
        int32_t symbol_of(int32_t line) const { return tree ? line / tree->n_lines : line; }
    };
    struct ColumnState {
        std::vector<int32_t> totals;          // c_k
        WideVector<double> inverse;           // 1/(c_k + alpha_e), padded
        int64_t n_tables = 0;                 // e
        void observe(int32_t k, int32_t n, double alpha) {
            totals[k] += n;
            inverse[k] = 1.0 / total_weight(totals[k], alpha);
        }
    };
    // A line of the base by state.
    struct Row {
        WideVector<double> counts;
        double n_customers = 0.0;
    };
    static int32_t padded(int32_t n_states) { return (n_states / kBlock + 1) * kBlock; }
    struct History {
        int32_t n_states = 0;
        int32_t restaurant = 0;
        int32_t stage = 0;                    // draws are made in the last one
        int64_t n_tables = 0;                 // m_..
        WideVector<int32_t> dish_tables;      // m_.k, padded
        // Of a state, if there are coins.
        std::vector<int32_t> stays, advances, draws;
        std::vector<ColumnState> columns;
        std::vector<std::vector<double>> numbers;   // by family: of all states
        std::shared_ptr<const Generation> old;
        Generation fresh;
    };

    // The time after which to return.  To read a clock takes a fifth of a small step, so it
    // is read after some 4,096 histories and states.
    struct Slice {
        using Clock = std::chrono::steady_clock;
        Clock::time_point end = Clock::now() + std::chrono::milliseconds(100);
        int64_t work = 0;
    };
    bool goes_on() {
        slice_.work += static_cast<int64_t>(live_.size())
                       * (histories_[live_[0]].n_states + 1);
        if (slice_.work < 4096) return true;
        slice_.work = 0;
        return Slice::Clock::now() < slice_.end;
    }

    // Customers of one symbol that are not in the base, by state, and
    // alpha_e * (base probability of the symbol).
    struct Symbol {
        std::vector<Counts> joined;
        double all = 0.0;
        int32_t count(int32_t k) const { return count_of(joined, k); }
    };
    // A restaurant in which the next state may be drawn, as a history has it.
    struct Level {
        int32_t row = 0;                 // of rows_
        double total = 0.0;              // weight of all states
        double share = 0.0;              // of the probability of a state, by customer
        std::vector<Counts> joined;      // not in the base
    };
    // Of the next state, and what they were made of.
    struct Weights {
        WideVector<double> w;            // padded with zeros
        std::vector<double> ends;        // by block: the sum of all w up to its end
        double likelihood = 0.0, log_factor = 0.0;   // p(y) = likelihood * exp(log_factor)
        double self = 0.0;               // share of a stay in a self-transition
        double stay = 0.0;               // probability of a stay
        std::vector<Level> levels;       // by depth, from 1 on
        std::vector<Symbol> symbols;     // by column
    };
    static int32_t count_of(const std::vector<Counts> &joined, int32_t k) {
        int32_t count = 0;
        for (const Counts &entry : joined) count += entry.id == k ? entry.n : 0;
        return count;
    }

    void look_up(const History &p, size_t c, int32_t symbol, Symbol *out) const {
        const Column &column = columns_[c];
        int32_t tables = column.symbol_tables[symbol];
        out->joined.clear();
        const auto take = [&](int32_t id, int32_t n) {
            if (id == kTables) tables += n;
            else out->joined.push_back({id, n});
        };
        if (p.old && c < p.old->columns.size()) p.old->columns[c].visit(symbol, take);
        if (c < p.fresh.columns.size()) p.fresh.columns[c].visit(symbol, take);
        out->all = column.symbol_mass;
        if (column.hierarchical)
            out->all = new_table_weight(column.alpha, tables + column.symbol_mass,
                                        p.columns[c].n_tables, column.gamma);
    }

    // What `weigh` needs of the generations.
    void look_up(const History &p, const int32_t *row, Weights *out) {
        out->levels.resize(shape_.depth() + 1);
        for (int32_t d = 1; d <= depth_; ++d) {
            Level &level = out->levels[d];
            const int32_t line = line_of(d, p.restaurant, prefixes_[d]);
            const auto take = [&](int32_t k, int32_t n) { level.joined.push_back({k, n}); };
            level.row = row_at(d, p.restaurant, line);
            level.joined.clear();
            if (p.old) p.old->transitions.visit(line, take);
            p.fresh.transitions.visit(line, take);
        }
        out->symbols.resize(columns_.size());
        for (size_t c = 0; c < columns_.size(); ++c)
            if (row[c] >= 0 && !columns_[c].tree) look_up(p, c, row[c], &out->symbols[c]);
    }

    // Begin a step: expand the counts of its symbols in the base by state, and no row yet.
    void lay_out(const int32_t *row) {
        n_padded_ = 0;
        for (int32_t h : live_) n_padded_ = std::max(n_padded_, padded(histories_[h].n_states));
        for (size_t c = 0; c < columns_.size(); ++c) {
            columns_[c].counts.assign(n_padded_, 0.0);
            if (row[c] < 0 || columns_[c].tree) continue;
            for (const Counts &entry : columns_[c].by_symbol[row[c]])
                columns_[c].counts[entry.id] = entry.n;
        }
        row_of_.assign(depth_ * (n_padded_ + 1), -1);
        n_rows_ = 0;
    }
    // Where the line of a restaurant is in rows_: histories share it.
    int32_t row_at(int32_t d, int32_t j, int32_t line) {
        int32_t &at = row_of_[(d - 1) * (n_padded_ + 1) + (shape_.has_state(d) ? j : 0)];
        if (at >= 0) return at;
        at = n_rows_++;
        if (rows_.size() == static_cast<size_t>(at)) rows_.emplace_back();
        Row &row = rows_[at];
        row.n_customers = 0.0;
        row.counts.assign(n_padded_, 0.0);
        if (static_cast<size_t>(line) < base_rows_.size())
            for (const Counts &entry : base_rows_[line]) {
                row.counts[entry.id] = entry.n;
                row.n_customers += entry.n;
            }
        return at;
    }
    // w_k = p(k | restaurant) p(y | k) for every state and, last, a new one.
    void weigh(const History &p, const int32_t *row, const double *y, Weights *out) {
        const int32_t n_padded = padded(p.n_states), j = p.restaurant - 1;
        out->w.resize(n_padded);
        out->ends.resize(n_padded / kBlock);
        out->log_factor = 0.0;
        const double leave = set_coin(p, out);
        fill_law(p, leave, out);
        if (j >= 0 && kappa_ > 0.0) {
            out->w[j] += 1.0 - leave;
            out->self = (1.0 - leave) / out->w[j];
        }
        multiply_emissions(p, row, y, out);
        sum_blocks(n_padded / kBlock, out->w.data(), out->ends.data());
        out->likelihood = out->ends.back();
    }
    // The probability that the next state is drawn, which it is in the last stage only, and in
    // `out` that of a stay.
    double set_coin(const History &p, Weights *out) const {
        const int32_t j = p.restaurant - 1;
        out->self = 0.0;
        if (kappa_ == 0.0 || j < 0) return 1.0;
        const double stays = p.stays[j] + kappa_,
                     leaves = p.draws[j] + p.advances[j] + omega_;
        out->stay = stays / (stays + leaves);
        return p.stage == n_stages_ - 1 ? leaves / (stays + leaves) : 0.0;
    }
    // w_k = share * p(k | restaurant) of every state and, last, a new one, zero after it.  A draw
    // at a new table is one in the restaurant above, so its probability is a sum over those from
    // the leaf up of the customers that a state has there.
    void fill_law(const History &p, double share, Weights *out) {
        const int32_t n_padded = padded(p.n_states);
        for (int32_t d = depth_; d >= 1; --d) {
            Level &level = out->levels[d];
            double size = rows_[level.row].n_customers;
            for (const Counts &entry : level.joined) size += entry.n;
            level.total = total_weight(size, alphas_[d - 1]);
            level.share = share / level.total;
            share = level.share * alphas_[d - 1];
        }
        const double scale = table_scale(share, p.n_tables, gamma_);
        double *w = out->w.data();
        if (depth_ == 0) std::fill_n(w, n_padded, 0.0);
        const double *row = depth_ ? rows_[out->levels[1].row].counts.data() : w;
        mix_tables(n_padded, scale, p.dish_tables.data(), depth_ ? out->levels[1].share : 0.0,
                   row, w);
        for (int32_t d = 2; d <= depth_; ++d)
            add_row(n_padded, out->levels[d].share, rows_[out->levels[d].row].counts.data(), w);
        for (int32_t d = 1; d <= depth_; ++d)
            for (const Counts &entry : out->levels[d].joined)
                w[entry.id] += out->levels[d].share * entry.n;
        w[p.n_states] = scale * gamma_;
    }
    static void change(double *counts, const std::vector<Counts> &joined, int32_t sign) {
        for (const Counts &entry : joined) counts[entry.id] += sign * entry.n;
    }
    // w_k *= p(y | k) for every state and a new one, up to the factor.
    void multiply_emissions(const History &p, const int32_t *row, const double *y,
                            Weights *out) {
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
            if (!families_[f]->is_missing(y))
                families_[f]->fill_rows(p.numbers[f].data(), n - 1, fresh_[f].data(), y,
                                        logs_.data());
        if (p.stage != n_stages_ - 1) {
            // There is one possible state, however much more probable the row is by others.
            out->log_factor = logs_[p.restaurant - 1];
            return;
        }
        out->log_factor = *std::max_element(logs_.begin(), logs_.end());
        fill_exp(n, logs_.data(), out->log_factor, kLeastLog, likelihoods_.data());
        for (int32_t k = 0; k < n; ++k) w[k] *= likelihoods_[k];
    }
    const double *numbers_of(const History &p, size_t f, int32_t k) const {
        return k < p.n_states
                   ? &p.numbers[f][static_cast<size_t>(k) * families_[f]->width]
                   : fresh_[f].data();
    }
    // w[k] *= product over columns start .. stop - 1 of p(row[c] | k).
    void multiply_columns(const History &p, const int32_t *row, size_t start, size_t stop,
                          const Weights &next, double *w) {
        for (size_t c = start; c < stop; ++c) {
            if (row[c] < 0) continue;
            if (SKIHMM_UNLIKELY(columns_[c].tree != nullptr)) {
                multiply_symbol_law(p, c, row[c], w);
                continue;
            }
            const Symbol &symbol = next.symbols[c];
            double *counts = columns_[c].counts.data();
            change(counts, symbol.joined, 1);
            multiply_symbol(p.n_states + 1, counts, symbol.all, p.columns[c].inverse.data(), w);
            change(counts, symbol.joined, -1);
        }
    }

    // The state whose share of the weights has the point u in it.
    static int32_t choose(const double *w, int32_t n, double u) {
        int32_t chosen = 0;
        for (int32_t k = 0; k < n; ++k) {
            if (w[k] > 0.0) {
                chosen = k;
                if ((u -= w[k]) < 0.0) break;
            }
        }
        return chosen;
    }
    static int32_t choose(const Weights &next, bitgen_t *g) {
        const std::vector<double> &ends = next.ends;
        const double u = uniform(g) * ends.back();
        size_t block = 0;
        for (double end : ends) block += u >= end;
        // Where rounding has put u at the very end, the last block that has a share.
        block = std::min(block, ends.size() - 1);
        while (block > 0 && ends[block] == ends[block - 1]) --block;
        return static_cast<int32_t>(block) * kBlock
               + choose(&next.w[block * kBlock], kBlock, block ? u - ends[block - 1] : u);
    }

    // How state k, n_states for a new one, is entered: by a stay, by an advance, or by a customer
    // who opens so many tables, one above the other.
    enum Entrance : uint8_t { kStays = 254, kAdvances = 255 };
    uint8_t draw_entrance(const History &p, const Weights &next, int32_t k, bitgen_t *g) {
        if (p.stage < n_stages_ - 1) return uniform(g) < next.stay ? kStays : kAdvances;
        if (next.self > 0.0 && k == p.restaurant - 1 && uniform(g) < next.self) return kStays;
        double law = (k < p.n_states ? p.dish_tables[k] : gamma_)
                     / total_weight(p.n_tables, gamma_);
        fresh_tables_.resize(depth_ + 1);
        counts_.resize(depth_ + 1);
        for (int32_t d = 1; d <= depth_; ++d) {
            const Level &level = next.levels[d];
            fresh_tables_[d] = alphas_[d - 1] * law;
            counts_[d] = rows_[level.row].counts[k] + count_of(level.joined, k);
            law = dish_weight(counts_[d], fresh_tables_[d]) / level.total;
        }
        int32_t h = 0;
        for (int32_t d = depth_; d >= 1; --d, ++h)
            if (counts_[d] > 0.0 && !opens_table(counts_[d], fresh_tables_[d], uniform(g))) break;
        return static_cast<uint8_t>(h);
    }
    // The number of tables that the symbol of column c opens in state k.
    SKIHMM_INLINE uint8_t draw_symbol_tables(const History &p, const Weights &next, size_t c,
                                             int32_t k, int32_t symbol, bitgen_t *g) {
        if (!columns_[c].hierarchical) return 0;
        if (SKIHMM_UNLIKELY(columns_[c].tree != nullptr))
            return draw_opened_symbol(p, c, k, symbol, g);
        const double count = columns_[c].counts[k] + next.symbols[c].count(k);
        return count == 0.0
               || skihmm::opens_table(count, next.symbols[c].all, uniform(g));
    }
    // The stage that a draw leads to.
    uint8_t draw_stage(const History &p, bitgen_t *g) const {
        return p.restaurant == 0 && starts_inside_ ? static_cast<uint8_t>(below(g, n_stages_))
                                                   : 0;
    }
    // State k, n_states for a new one, is next, entered as opens[0] says, and emits `row` and `y`;
    // opens[1 + c] says where tables are opened, and the last one is the stage after a draw.
    void seat(History &p, int32_t k, const uint8_t *opens, const int32_t *row,
              const double *y, bitgen_t *g) {
        if (k == p.n_states) {
            ++p.n_states;
            p.dish_tables.resize(padded(p.n_states));
            if (kappa_ > 0.0) {
                p.stays.push_back(0);
                p.advances.push_back(0);
                p.draws.push_back(0);
            }
            for (size_t c = 0; c < columns_.size(); ++c) {
                p.columns[c].totals.push_back(0);
                p.columns[c].inverse.resize(padded(p.n_states), 1.0 / columns_[c].alpha);
            }
            for (size_t f = 0; f < families_.size(); ++f)
                p.numbers[f].insert(p.numbers[f].end(), fresh_[f].begin(), fresh_[f].end());
        }
        if (opens[0] == kStays) {
            ++p.stays[k];
        } else if (opens[0] == kAdvances) {
            ++p.advances[k];
            ++p.stage;
        } else {
            p.stage = opens[1 + columns_.size()];
            if (kappa_ > 0.0 && p.restaurant > 0) ++p.draws[p.restaurant - 1];
            for (int32_t d = depth_; d >= std::max(1, depth_ - opens[0]); --d)
                p.fresh.transitions.add(line_of(d, p.restaurant, prefixes_[d]), k);
            p.dish_tables[k] += opens[0] == depth_;
            p.n_tables += opens[0] == depth_;
        }
        p.fresh.labels.push_back(k);
        p.restaurant = k + 1;
        p.fresh.columns.resize(columns_.size());
        for (size_t c = 0; c < columns_.size(); ++c) {
            if (row[c] < 0) continue;
            if (columns_[c].tree) {
                seat_symbol(p, c, k, row[c], opens[1 + c]);
                continue;
            }
            p.columns[c].observe(k, 1, columns_[c].alpha);
            p.fresh.columns[c].add(row[c], k);
            if (opens[1 + c]) {
                ++p.columns[c].n_tables;
                p.fresh.columns[c].add(row[c], kTables);
            }
        }
        for (size_t f = 0; f < families_.size(); y += families_[f++]->row_width()) {
            const Family &family = *families_[f];
            if (family.is_missing(y)) continue;
            double *numbers = &p.numbers[f][static_cast<size_t>(k) * family.width];
            if (family.n_weights == 0) {
                family.add(numbers, 1, y);
                continue;
            }
            // Particles that share a history until now share the weight too: their number does not
            // depend on it, so weights of particles keep their expectations.
            weighted_.assign(y, y + family.row_width());
            family.draw_weights(numbers, weighted_.data(), g);
            family.add(numbers, 1, weighted_.data());
        }
    }
    // A row of `values` with weights, which are unknown.
    const double *complete(const double *y) {
        if (row_width_ == n_values_) return y;
        row_.clear();
        for (const Family *family : families_) {
            row_.insert(row_.end(), y, y + family->data_width());
            row_.insert(row_.end(), family->n_weights, NAN);
            y += family->data_width();
        }
        return row_.data();
    }

    // ---- restaurants of the transitions, in a tree of one depth or more (_contexts.hpp)

    // Of step t: the depth of the leaf, and by depth the prefix.
    void find_place(int64_t t) {
        ContextPlace at{shape_.n_before ? 0 : 1, 0};
        if (t < static_cast<int64_t>(places_.size())) at = places_[t];
        depth_ = at.depth;
        shape_.fill_prefixes(at, prefixes_.data());
    }
    // A line of counts is a restaurant: that of depth d, restaurant j of the states (0: the start)
    // and a prefix, in blocks of n_lines_ for every j; restaurants above the states are in the
    // first block.
    int32_t line_of(int32_t d, int32_t j, int32_t prefix) const {
        return (shape_.has_state(d) ? j : 0) * n_lines_ + first_line_[d] + prefix;
    }

    // ---- symbols that depend on contexts

    void find_symbol_places(int64_t t) {
        for (Column &column : columns_)
            if (column.tree) column.tree->find(t);
    }
    template <class Visit>
    void visit_symbols(const History &p, size_t c, int32_t line, Visit visit) const {
        const auto found = columns_[c].tree->base.find(line);
        if (found != columns_[c].tree->base.end())
            for (const Counts &entry : found->second) visit(entry.id, entry.n);
        if (p.old && c < p.old->columns.size()) p.old->columns[c].visit(line, visit);
        if (c < p.fresh.columns.size()) p.fresh.columns[c].visit(line, visit);
    }
    // p(symbol | root).
    double symbol_base(const History &p, size_t c, int32_t symbol) const {
        const Column &column = columns_[c];
        double tables = column.symbol_tables[symbol];
        visit_symbols(p, c, column.tree->line(symbol, 1, 0), [&](int32_t id, int32_t n) {
            tables += id == kTables ? n : 0;
        });
        return (tables + column.symbol_mass)
               / total_weight(p.columns[c].n_tables, column.gamma);
    }
    // w[k] *= p(symbol | k) of every state and, last, a new one: from the root to the leaf.
    SKIHMM_NOINLINE void multiply_symbol_law(const History &p, size_t c, int32_t symbol,
                                             double *w) {
        const SymbolLines &tree = *columns_[c].tree;
        const int32_t n = p.n_states + 1;
        law_.assign(n, symbol_base(p, c, symbol));
        for (int32_t d = 1; d <= tree.depth; ++d) {
            const double a = tree.alphas[d - 1];
            symbol_counts_.assign(n, 0.0);
            symbol_totals_.assign(n, 0.0);
            visit_symbols(p, c, tree.line(symbol, d), [&](int32_t k, int32_t n_k) {
                if (k != kTables) symbol_counts_[k] += n_k;
            });
            visit_symbols(p, c, tree.total_line(d), [&](int32_t k, int32_t n_k) {
                symbol_totals_[k] += n_k;
            });
            for (int32_t k = 0; k < n; ++k)
                law_[k] = dish_weight(symbol_counts_[k], a * law_[k])
                          / total_weight(symbol_totals_[k], a);
        }
        for (int32_t k = 0; k < n; ++k) w[k] *= law_[k];
    }
    // By depth, 0 for the root: p(symbol | k) and the customers that it is made of.
    void follow_symbol(const History &p, size_t c, int32_t k, int32_t symbol) {
        const SymbolLines &tree = *columns_[c].tree;
        law_.assign(tree.depth + 1, symbol_base(p, c, symbol));
        symbol_counts_.assign(tree.depth + 1, 0.0);
        for (int32_t d = 1; d <= tree.depth; ++d) {
            double size = 0.0;
            visit_symbols(p, c, tree.line(symbol, d), [&](int32_t id, int32_t n) {
                symbol_counts_[d] += id == k ? n : 0;
            });
            visit_symbols(p, c, tree.total_line(d), [&](int32_t id, int32_t n) {
                size += id == k ? n : 0;
            });
            law_[d] = dish_weight(symbol_counts_[d], tree.alphas[d - 1] * law_[d - 1])
                      / total_weight(size, tree.alphas[d - 1]);
        }
    }
    double symbol_prob(const History &p, size_t c, int32_t k, int32_t symbol) {
        follow_symbol(p, c, k, symbol);
        return law_.back();
    }
    SKIHMM_NOINLINE uint8_t draw_opened_symbol(const History &p, size_t c, int32_t k,
                                               int32_t symbol, bitgen_t *g) {
        const SymbolLines &tree = *columns_[c].tree;
        follow_symbol(p, c, k, symbol);
        int32_t h = 0;
        for (int32_t d = tree.depth; d >= 1; --d, ++h) {
            const double n = symbol_counts_[d], fresh = tree.alphas[d - 1] * law_[d - 1];
            if (n > 0.0 && !skihmm::opens_table(n, fresh, uniform(g))) break;
        }
        return static_cast<uint8_t>(h);
    }
    void seat_symbol(History &p, size_t c, int32_t k, int32_t symbol, int32_t n_opened) const {
        const SymbolLines &tree = *columns_[c].tree;
        Chains &lines = p.fresh.columns[c];
        for (int32_t d = tree.depth; d >= std::max(1, tree.depth - n_opened); --d) {
            lines.add(tree.line(symbol, d), k);
            lines.add(tree.total_line(d), k);
        }
        if (n_opened < tree.depth) return;
        ++p.columns[c].n_tables;
        lines.add(tree.line(symbol, 1, 0), kTables);
    }

    int32_t draw_particle(bitgen_t *g) const {
        double u = uniform(g);
        int32_t p = 0;
        while (p < n_particles_ - 1 && (u -= weights_[p]) >= 0.0) ++p;
        return p;
    }
    void keep_one(bitgen_t *g) {
        history_of_.assign(1, history_of_[draw_particle(g)]);
        n_particles_ = 1;
        weights_.assign(1, 1.0);
        find_live();
    }
    // Systematic: particle p goes on in as many copies as there are points in its share.
    void resample(bitgen_t *g) {
        std::vector<int32_t> offspring(n_particles_, 0);
        const double u = uniform(g);
        double cumulative = weights_[0];
        int32_t p = 0;
        for (int32_t i = 0; i < n_particles_; ++i) {
            const double point = (i + u) / n_particles_;
            while (point >= cumulative && p < n_particles_ - 1) cumulative += weights_[++p];
            ++offspring[p];
        }
        int32_t hole = 0;
        for (p = 0; p < n_particles_; ++p) {
            for (; offspring[p] > 1; --offspring[p]) {
                while (offspring[hole] > 0) ++hole;
                history_of_[hole] = history_of_[p];
                offspring[hole] = 1;
            }
        }
        std::fill(weights_.begin(), weights_.end(), 1.0 / n_particles_);
        find_live();
    }

    // The histories that some particle has; the others' places are free.
    void find_live() {
        for (int32_t h : live_) n_children_[h] = 0;
        for (int32_t h : history_of_) n_children_[h] = 1;
        size_t n = 0;
        for (int32_t h : live_) {
            if (n_children_[h]) live_[n++] = h;
            else free_.push_back(h);
        }
        live_.resize(n);
    }
    // Every particle draws its next state and which tables are opened, and goes on in a
    // history with those that share its history and drew the same.
    void branch(const int32_t *row, const double *y, bitgen_t *g) {
        const size_t n_opens = 2 + columns_.size();
        opens_.resize(n_particles_ * n_opens);
        chosen_.resize(n_particles_);
        lead_.resize(n_particles_);
        next_lead_.resize(n_particles_);
        size_t n_heads = 16;
        while (n_heads < static_cast<size_t>(n_particles_)) n_heads *= 2;
        lead_heads_.assign(n_heads, -1);
        for (int32_t h : live_) n_children_[h] = 0;
        for (int32_t p = 0; p < n_particles_; ++p) {
            const int32_t h = history_of_[p];
            const int32_t k = choose(next_[h], g);
            uint8_t *opens = &opens_[p * n_opens];
            opens[0] = draw_entrance(histories_[h], next_[h], k, g);
            for (size_t c = 0; c < columns_.size(); ++c)
                opens[1 + c] = row[c] < 0 ? 0
                                          : draw_symbol_tables(histories_[h], next_[h], c, k,
                                                               row[c], g);
            opens[1 + columns_.size()] = draw_stage(histories_[h], g);
            // The first particle that drew this from this history.
            int32_t &head = lead_heads_[(h * 0x9E3779B1u + k * 0x85EBCA6Bu) >> 7
                                        & (n_heads - 1)];
            int32_t lead = head;
            while (lead >= 0
                   && (history_of_[lead] != h || chosen_[lead] != k
                       || std::memcmp(&opens_[lead * n_opens], opens, n_opens) != 0))
                lead = next_lead_[lead];
            chosen_[p] = k;
            lead_[p] = lead >= 0 ? lead : p;
            if (lead >= 0) continue;
            next_lead_[p] = head;
            head = p;
            ++n_children_[h];
        }
        for (int32_t p = 0; p < n_particles_; ++p) {
            if (lead_[p] != p) {
                history_of_[p] = history_of_[lead_[p]];
                continue;
            }
            // The last child takes over the history itself.
            int32_t &h = history_of_[p];
            if (--n_children_[h] > 0) {
                const int32_t child = free_.back();
                free_.pop_back();
                live_.push_back(child);
                histories_[child] = histories_[h];
                h = child;
            }
            seat(histories_[h], chosen_[p], &opens_[p * n_opens], row, y, g);
        }
    }

    // Fold the old generation into the base once all histories share it.
    void rotate() {
        if (histories_[live_[0]].fresh.labels.size() < 32) return;
        const std::shared_ptr<const Generation> shared = histories_[live_[0]].old;
        for (int32_t h : live_)
            if (histories_[h].old != shared) return;
        if (shared) {
            fold(*shared, 1);
            folded_.push_back(shared);
        }
        for (int32_t h : live_) {
            History &p = histories_[h];
            p.old = std::make_shared<const Generation>(std::move(p.fresh));
            p.fresh = Generation();
        }
    }
    // Add the customers of a generation to the base (sign 1), or remove them (-1) if they were
    // the last ones added.
    void fold(const Generation &generation, int32_t sign) {
        for (const Entry &entry : generation.transitions.entries) {
            const size_t j = entry.line;
            if (j >= base_rows_.size()) base_rows_.resize(j + 1);
            change(base_rows_[j], entry.id, sign * entry.n);
        }
        for (size_t c = 0; c < generation.columns.size(); ++c)
            for (const Entry &entry : generation.columns[c].entries) {
                const int32_t n = sign * entry.n;
                Column &column = columns_[c];
                if (entry.id == kTables) column.symbol_tables[column.symbol_of(entry.line)] += n;
                else change(column.line(entry.line), entry.id, n);
            }
    }
    static void change(std::vector<Counts> &line, int32_t id, int32_t by) {
        size_t i = 0;
        while (i < line.size() && line[i].id != id) ++i;
        if (i == line.size()) line.push_back({id, 0});
        // What leaves joined last: a pair without customers is at the end, or will be.
        line[i].n += by;
        while (!line.empty() && line.back().n == 0) line.pop_back();
    }

    // Columns whose probabilities are multiplied before a logarithm is taken.
    static constexpr size_t kGroup = 16;

    int32_t n_particles_;
    int64_t n_filtered_ = -1;
    double gamma_;
    double kappa_, omega_;                           // kappa = 0: there are no coins
    int32_t n_stages_;
    bool starts_inside_;
    History root_;                                   // what every particle starts as
    std::vector<std::vector<Counts>> base_rows_;
    std::vector<Column> columns_;
    std::vector<const Family *> families_;
    std::vector<double> row_, weighted_;        // of all families, and of one with its weights
    std::vector<std::vector<double>> fresh_;         // by family: a state without observations
    size_t n_values_ = 0, row_width_ = 0;   // without weights, and with them
    std::vector<std::shared_ptr<const Generation>> folded_;   // into the base, in time order
    Slice slice_;
    std::vector<History> histories_;                 // places; the next ones are by place too
    std::vector<Weights> next_;
    std::vector<int32_t> n_children_;
    std::vector<int32_t> live_, free_;
    std::vector<int32_t> history_of_;                // by particle, and so are the next ones
    std::vector<double> weights_;
    std::vector<int32_t> chosen_, lead_, next_lead_, lead_heads_;
    std::vector<uint8_t> opens_;
    std::vector<Row> rows_;                          // of this step; by depth, restaurant
    std::vector<int32_t> row_of_;
    int32_t n_rows_ = 0, n_padded_ = 0;              // n_padded_: of all histories
    std::vector<double> logs_, likelihoods_;
    ContextShape shape_;
    std::vector<ContextPlace> places_;               // by step
    std::vector<double> alphas_;                     // by depth
    std::vector<int32_t> first_line_;                // by depth, in a block
    int32_t n_lines_ = 0;
    int32_t depth_ = 0;                              // of this step's leaf
    std::vector<int32_t> prefixes_;                  // of this step by depth
    std::vector<double> law_, counts_, fresh_tables_, symbol_counts_, symbol_totals_;
};

}  // namespace skihmm
