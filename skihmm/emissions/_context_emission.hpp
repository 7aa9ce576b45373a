// Symbols whose distribution depends on the state and on contexts: a tree of restaurants.
//
// Of a column of symbols, with V of them and the contexts u_1 .. u_C of the step:
//
//     phi_0 ~ DP(gamma, uniform),  phi_k ~ DP(a_1, phi_0),  phi_{k,u_1} ~ DP(a_2, phi_k),  ...
//
// The restaurants of depth 1 belong to the states, those of depth d to a state and the first
// d - 1 columns of a context; they are numbered as in _contexts.hpp, state first.  A step whose
// context is missing, or has not been seen, from some column on is drawn in the restaurant of
// the columns before.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_symbol_columns.hpp"
#include "_concentration.hpp"
#include "_contexts.hpp"
#include "_emission.hpp"
#include "_record.hpp"
#include "_slots.hpp"

namespace skihmm {

// The restaurants of one column of symbols.
class SymbolTree {
  public:
    using First = Seating<UniformRoot>;
    using Deep = Seating<LevelAbove<UniformRoot>>;

    // `shape` has one column or more, and outlives this.
    SymbolTree(int32_t n_symbols, const ContextShape *shape)
        : shape_(shape), first_(std::make_unique<First>()) {
        first_->set_symbols(n_symbols);
        for (int32_t d = 2; d <= shape->depth(); ++d) {
            levels_.push_back(std::make_unique<Deep>());
            if (d == 2) levels_.back()->base.set(first_.get());
            else levels_.back()->base.set(levels_[d - 3].get());
        }
    }
    int32_t n_symbols() const { return first_->base.n_symbols; }
    // The concentrations of depth 1, 2, ... and of the root.
    void set_concentrations(const std::vector<double> &alphas, double gamma) {
        first_->set_concentrations(alphas[0], gamma);
        for (size_t d = 1; d < alphas.size(); ++d) levels_[d - 1]->set_alpha(alphas[d]);
    }
    // Returns what `use` does of the restaurants of depth d.
    template <class Use> auto at(int32_t d, Use use) const {
        return d == 1 ? use(*first_) : use(*levels_[d - 2]);
    }
    const UniformRoot &root() const { return first_->base; }

    void resize(int32_t n_slots) {
        first_->resize(n_slots, n_symbols());
        for (int32_t d = 2; d <= shape_->depth(); ++d) {
            const int64_t n = shape_->n_rows(d, n_slots);
            if (n > kMostCustomers) throw std::bad_alloc();
            std::vector<int32_t> parents(n);
            for (int32_t row = 0; row < n; ++row) parents[row] = shape_->row_above(d, row);
            levels_[d - 2]->set_parents(std::move(parents));
            levels_[d - 2]->resize(static_cast<int32_t>(n), n_symbols());
        }
    }
    // Of all depths: each level passes it on to the one above.
    void clear() { levels_.back()->clear(); }
    void commit() { levels_.back()->commit(); }
    void rollback() { levels_.back()->rollback(); }
    double log_joint() const { return levels_.back()->log_joint(); }
    size_t n_bytes() const { return levels_.back()->n_bytes(); }
    const char *check() const { return levels_.back()->check(); }

    double add(ContextPlace place, int32_t k, int32_t symbol, bitgen_t *g, int32_t *hint) {
        const int32_t row = row_of(place, k);
        return at(place.depth, [&](auto &s) { return s.add(row, symbol, g, hint); });
    }
    double remove(ContextPlace place, int32_t k, int32_t symbol, bitgen_t *g, int32_t *hint) {
        const int32_t row = row_of(place, k);
        return at(place.depth, [&](auto &s) { return s.remove(row, symbol, g, hint); });
    }
    double prob(ContextPlace place, int32_t k, int32_t symbol) const {
        const int32_t row = row_of(place, k);
        return at(place.depth, [&](auto &s) { return s.prob(row, symbol); });
    }
    // out[w] = p(w | k) of every symbol.
    void fill_symbols(ContextPlace place, int32_t k, double *out) const {
        const int32_t row = row_of(place, k);
        at(place.depth, [&](auto &s) { s.fill_probs(row, out); });
    }
    // out[k] *= p(symbol | k) for all slots k < n: from the root to the leaf.
    void multiply(ContextPlace place, int32_t symbol, int32_t n, double *out) const {
        law_.assign(n, first_->mass(symbol)
                           / total_weight(root().n_tables, root().gamma));
        follow(place);
        for (int32_t d = 1; d <= place.depth; ++d) {
            counts_.assign(n, 0);
            count_column(d, symbol);
            const int32_t stride = shape_->stride(d), prefix = prefixes_[d];
            at(d, [&](const auto &s) {
                const double a = s.alpha;
                const int32_t *totals = s.row_customers.data() + prefix;
                for (int32_t k = 0; k < n; ++k)
                    law_[k] = dish_weight<double>(counts_[k], a * law_[k])
                              / total_weight(totals[static_cast<size_t>(k) * stride], a);
            });
        }
        for (int32_t k = 0; k < n; ++k) out[k] *= law_[k];
    }

    // ---- a state that takes one observation after the other, for proposals

    // Customers that have joined since; a table is opened only where the dish has none.
    class Guests {
      public:
        void clear() { joined_.clear(); }
        int32_t &of(int32_t d, int32_t row, int32_t dish) {
            return joined_[{d, row, dish}];
        }

      private:
        std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> joined_;
    };
    // p(symbol | k) with the guests, whom it joins.
    double welcome(ContextPlace place, int32_t k, int32_t symbol, Guests *guests) const {
        follow(place);
        double p = first_->mass(symbol) / total_weight(root().n_tables, root().gamma);
        int32_t lowest = 1;
        for (int32_t d = 1; d <= place.depth; ++d) {
            const int32_t row = shape_->row(d, k, prefixes_[d]);
            const int32_t joined = guests->of(d, row, symbol), size = guests->of(d, row, -1);
            at(d, [&](const auto &s) {
                const int32_t n = s.count(row, symbol) + joined;
                p = dish_weight<double>(n, s.alpha * p) / s.total(row, size);
                if (n > 0) lowest = d;
            });
        }
        for (int32_t d = lowest; d <= place.depth; ++d) {
            const int32_t row = shape_->row(d, k, prefixes_[d]);
            ++guests->of(d, row, symbol);
            ++guests->of(d, row, -1);
        }
        return p;
    }

    // ---- records: seatings of depth 1, 2, ...

    // Over slots, with other labels.
    std::vector<SeatingRecord> record(const std::vector<int32_t> &labels) const {
        std::vector<SeatingRecord> records;
        for (int32_t d = 1; d <= shape_->depth(); ++d) {
            const int32_t n = shape_->stride(d);
            std::vector<int32_t> rows(labels.size() * n);
            for (size_t row = 0; row < rows.size(); ++row)
                rows[row] = labels[row / n] * n + static_cast<int32_t>(row) % n;
            records.push_back(
                at(d, [&](const auto &s) { return relabelled(s.record(), rows); }));
        }
        return records;
    }
    // The other way round: state k of checked records in slot kFirst + k.
    void load(std::vector<SeatingRecord> records, int32_t n_slots) {
        for (int32_t d = 1; d <= shape_->depth(); ++d) {
            SeatingRecord &record = records[d - 1];
            for (int32_t &row : record.rows) row += kFirst * shape_->stride(d);
            const int32_t n = static_cast<int32_t>(shape_->n_rows(d, n_slots));
            at(d, [&](auto &s) { s.load(record, n, n_symbols()); });
        }
    }

  private:
    int32_t row_of(ContextPlace place, int32_t k) const {
        return shape_->row(place.depth, k, place.prefix);
    }
    // The prefixes of a place's restaurants by depth.
    void follow(ContextPlace place) const {
        prefixes_.resize(shape_->depth() + 1);
        int32_t prefix = place.prefix;
        for (int32_t d = place.depth; d >= 1; --d) {
            prefixes_[d] = prefix;
            if (d > 1) prefix = shape_->prefix_above(d, prefix);
        }
    }
    // counts_[k] of the restaurants of depth d of every state, after `follow`.
    void count_column(int32_t d, int32_t symbol) const {
        const int32_t stride = shape_->stride(d), prefix = prefixes_[d];
        const Line &first = first_->columns[symbol];
        at(d, [&](const auto &s) {
            const Line &line = s.columns[symbol];
            if (line.size <= kFewContexts * first.size) {
                for (int32_t i = 0; i < line.size; ++i)
                    if (line.ids[i] % stride == prefix)
                        counts_[line.ids[i] / stride] = line.counts[i];
                return;
            }
            // The states that have the symbol in some context have it at depth 1.
            for (int32_t i = 0; i < first.size; ++i)
                counts_[first.ids[i]] = s.count(shape_->row(d, first.ids[i], prefix), symbol);
        });
    }

    // A column with at most this multiple of the states that it names is read through.
    static constexpr int32_t kFewContexts = 16;

    const ContextShape *shape_;
    std::unique_ptr<First> first_;
    std::vector<std::unique_ptr<Deep>> levels_;     // of depth 2, 3, ...
    mutable std::vector<int32_t> prefixes_, counts_;    // scratch: by depth, by slot
    mutable std::vector<double> law_;               // scratch, by slot
};

class ContextEmission final : public SymbolColumns {
  public:
    std::vector<SymbolTree> trees;          // by column
    std::vector<double> alphas;             // of depth 1, 2, ...
    double gamma = 1.0;

    ContextEmission(const int32_t *codes, int64_t n_steps,
                    const std::vector<int32_t> &n_symbols, double prior_shape,
                    double prior_rate)
        : SymbolColumns(codes, n_steps, n_symbols.size(), prior_shape, prior_rate),
          n_symbols_(n_symbols) {}
    // A checked tree and the leaf of every step in it; no customer is left.  Has to
    // be followed by set_concentrations.
    void set_contexts(ContextShape shape, std::vector<ContextPlace> places) {
        shape_ = std::move(shape);
        places_ = std::move(places);  // planted: places of symbols
        trees.clear();
        for (const int32_t n : n_symbols_) {
            trees.emplace_back(n, &shape_);
            trees.back().resize(n_slots);
        }
    }
    const ContextShape &shape() const { return shape_; }
    void set_concentrations(std::vector<double> lower, double top) {
        alphas = std::move(lower);
        gamma = top;
        for (SymbolTree &tree : trees) tree.set_concentrations(alphas, gamma);
    }

    void add(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
        for (size_t c = 0; c < n_columns_; ++c)
            if (code(t, c) >= 0)
                r->multiply(trees[c].add(places_[t], k, code(t, c), g, hint(t, c)));
    }
    void remove(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
        for (size_t c = n_columns_; c-- > 0;)
            if (code(t, c) >= 0)
                r->multiply(trees[c].remove(places_[t], k, code(t, c), g, hint(t, c)));
    }
    void fill_prefixes(int64_t start, int64_t stop, int32_t k, bool backwards,
                       double *out) override {
        const int64_t n = stop - start;
        std::fill_n(out, n, 0.0);
        for (size_t c = 0; c < n_columns_; ++c) {
            Product p;
            guests_.clear();
            for (int64_t i = 0; i < n; ++i) {
                const int64_t t = backwards ? stop - 1 - i : start + i;
                if (code(t, c) >= 0)
                    p.multiply(trees[c].welcome(places_[t], k, code(t, c), &guests_));
                out[i] += p.log();
            }
        }
    }
    void commit() override {
        for (SymbolTree &tree : trees) tree.commit();
    }
    void rollback() override {
        for (SymbolTree &tree : trees) tree.rollback();
    }
    void resize(int32_t n) override {
        n_slots = n;
        for (SymbolTree &tree : trees) tree.resize(n);
    }
    double log_joint() const override {
        double lp = 0.0;
        for (const SymbolTree &tree : trees) lp += tree.log_joint();
        return lp;
    }
    // Every depth by itself, from the restaurants of all columns.
    void draw_hyperparameters(bitgen_t *g) override {
        if (prior_rate_ <= 0.0) return;
        std::vector<double> lower;
        for (int32_t d = 1; d <= shape_.depth(); ++d) {
            ConcentrationPosterior posterior(prior_shape_, prior_rate_);
            for (const SymbolTree &tree : trees)
                tree.at(d, [&](const auto &s) { posterior.count_rows(s, g); });
            lower.push_back(posterior.draw(g));
        }
        ConcentrationPosterior top(prior_shape_, prior_rate_);
        for (const SymbolTree &tree : trees) top.count_root(tree.root(), g);
        set_concentrations(std::move(lower), top.draw(g));
    }
    size_t n_bytes() const override {
        size_t total = 8 * n_steps * n_columns_ + places_.capacity() * sizeof(ContextPlace)
                       + 8 * logs_.capacity();
        for (const SymbolTree &tree : trees) total += tree.n_bytes();
        return total;
    }

    // Tables of all columns' restaurants of depth d.
    int64_t count_tables(int32_t d) const {
        int64_t n = 0;
        for (const SymbolTree &tree : trees)
            n += tree.at(d, [](const auto &s) { return s.count_tables(); });
        return n;
    }
    // Refuse records of column c, of all depths and checked, whose customers are not the
    // observations in these states and the tables of the next depth.
    void check_customers_of(size_t c, const std::vector<SeatingRecord> &records,
                            const std::vector<int32_t> &states, int32_t n_states,
                            const std::string &what) const {
        for (int32_t d = shape_.depth(); d >= 1; --d) {
            std::vector<int32_t> rows, dishes;
            for (int64_t t = 0; t < n_steps; ++t) {
                if (places_[t].depth != d || code(t, c) < 0) continue;
                rows.push_back(shape_.row(d, states[t], places_[t].prefix));
                dishes.push_back(code(t, c));
            }
            for (size_t i = 0; d < shape_.depth() && i < records[d].rows.size(); ++i) {
                const SeatingRecord &below = records[d];
                rows.insert(rows.end(), below.n_tables[i],
                            shape_.row_above(d + 1, below.rows[i]));
                dishes.insert(dishes.end(), below.n_tables[i], below.dishes[i]);
            }
            check_customers(records[d - 1], rows.data(), dishes.data(), 1,
                            static_cast<int64_t>(rows.size()),
                            static_cast<int32_t>(shape_.n_rows(d, n_states)),
                            what + ", depth " + std::to_string(d));
        }
    }

  private:
    Product product(int64_t t, int32_t k) const override {
        Product p;
        for (size_t c = 0; c < n_columns_; ++c)
            if (code(t, c) >= 0) p.multiply(trees[c].prob(places_[t], k, code(t, c)));
        return p;
    }
    void multiply_columns(int64_t t, size_t start, size_t stop, double *out) const override {
        std::fill_n(out, n_slots, 1.0);
        for (size_t c = start; c < stop; ++c)
            if (code(t, c) >= 0) trees[c].multiply(places_[t], code(t, c), n_slots, out);
    }

    const std::vector<int32_t> n_symbols_;
    ContextShape shape_;
    std::vector<ContextPlace> places_;      // by step
    SymbolTree::Guests guests_;             // scratch
};

}  // namespace skihmm
