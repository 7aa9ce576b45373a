// Symbols whose distribution depends on the state and on contexts: a tree of restaurants.
//
// A column of V symbols, with the contexts u_1 .. u_C of the step:
//
//     phi_0 ~ DP(gamma, uniform),  phi_k ~ DP(a_1, phi_0),  phi_{k,u_1} ~ DP(a_2, phi_k),  ...
//
// The restaurants of depth 1 belong to the states, restaurants of depth d to a state and the first
// d - 1 columns of a context; _context_shape.hpp numbers them.  A step whose context is missing, or
// has not been seen, from some column on is drawn in the restaurant of the columns before.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_symbol_columns.hpp"
#include "_concentration.hpp"
#include "_emission.hpp"
#include "_tree.hpp"

namespace skihmm {

// The restaurants of one column of symbols, states first.
class SymbolTree : public Tree<SymbolBase> {
  public:
    SymbolTree(int32_t n_symbols, const ContextShape &shape) : Tree(&own_root_, shape, false) {
        own_root_.set_symbols(n_symbols);
    }
    int32_t n_symbols() const { return own_root_.n_symbols; }
    // The concentrations of depth 1, 2, ... and of the root.
    void set_concentrations(const std::vector<double> &alphas, double gamma) {
        own_root_.set_gamma(gamma);
        for (size_t d = 1; d <= alphas.size(); ++d)
            level(static_cast<int32_t>(d)).set_alpha(alphas[d - 1]);
    }
    // out[w] = p(w | k) of every symbol.
    void fill_symbols(ContextPlace place, int32_t k, double *out) const {
        level(place.depth).fill_probs(leaf(place, k), out);
    }
    // out[k] *= p(symbol | k) for all slots k < n: from the root to the leaf.
    void multiply(ContextPlace place, int32_t symbol, int32_t n, double *out) const {
        law_.assign(n, prob_at(own_root_, symbol));
        follow(place);
        for (int32_t d = 1; d <= place.depth; ++d) {
            counts_.assign(n, 0);
            count_column(d, symbol);
            const int32_t stride = shape.stride(d);
            const double a = level(d).alpha;
            const int32_t *totals = level(d).row_customers.data() + prefixes_[d];
            for (int32_t k = 0; k < n; ++k)
                law_[k] = dish_weight<double>(counts_[k], a * law_[k])
                          / total_weight(totals[static_cast<size_t>(k) * stride], a);
        }
        for (int32_t k = 0; k < n; ++k) out[k] *= law_[k];
    }

    // ---- a state that takes observations one by one, for proposals

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
        double p = prob_at(own_root_, symbol);
        int32_t lowest = 1;
        for (int32_t d = 1; d <= place.depth; ++d) {
            const int32_t row = shape.row(d, k, prefixes_[d]);
            const int32_t n = count(d, row, symbol) + guests->of(d, row, symbol);
            p = dish_weight<double>(n, level(d).alpha * p)
                / total(d, row, guests->of(d, row, -1));
            if (n > 0) lowest = d;
        }
        for (int32_t d = lowest; d <= place.depth; ++d) {
            const int32_t row = shape.row(d, k, prefixes_[d]);
            ++guests->of(d, row, symbol);
            ++guests->of(d, row, -1);
        }
        return p;
    }

    // ---- records: seatings of depth 1, 2, ...

    // Over slots, with other labels.
    std::vector<SeatingRecord> record(const std::vector<int32_t> &labels) const {
        std::vector<SeatingRecord> records;
        for (int32_t d = 1; d <= shape.depth(); ++d)
            records.push_back(shape.with_labels(level(d).record(), d, labels));
        return records;
    }
    // Load state k of checked records into slot kFirst + k.
    void load(std::vector<SeatingRecord> records, int32_t n_slots) {
        shape.to_slots(&records);
        Tree::load(records, n_slots, n_symbols());
    }

  private:
    // The prefixes of a place's restaurants by depth.
    void follow(ContextPlace place) const {
        prefixes_.resize(shape.depth() + 1);
        shape.fill_prefixes(place, prefixes_.data());
    }
    // counts_[k] of the restaurants of depth d of every state, after `follow`.
    void count_column(int32_t d, int32_t symbol) const {
        const int32_t stride = shape.stride(d), prefix = prefixes_[d];
        const Line &first = level(1).columns[symbol], &line = level(d).columns[symbol];
        if (line.size <= kFewContexts * first.size) {
            for (int32_t i = 0; i < line.size; ++i)
                if (line.ids[i] % stride == prefix)
                    counts_[line.ids[i] / stride] = line.counts[i];
            return;
        }
        // The states that have the symbol in some context have it at depth 1.
        for (int32_t i = 0; i < first.size; ++i)
            counts_[first.ids[i]] = count(d, shape.row(d, first.ids[i], prefix), symbol);
    }

    // A column with at most this multiple of the states that it names is read through.
    static constexpr int32_t kFewContexts = 16;

    SymbolBase own_root_;
    mutable std::vector<int32_t> prefixes_, counts_;    // scratch: by depth, by slot
    mutable std::vector<double> law_;               // scratch, by slot
};

class ContextEmission final : public SymbolColumns {
  public:
    std::deque<SymbolTree> trees;           // by column; they stay where they are

    // contexts[t * n_contexts + i]: category of step t in column i, -1: missing; they must outlive this.
    // Has to be followed by set_concentrations.
    ContextEmission(const int32_t *codes, const int32_t *contexts, int32_t n_contexts,
                    int64_t n_steps, const std::vector<int32_t> &n_symbols, double prior_shape,
                    double prior_rate)
        : SymbolColumns(codes, n_steps, n_symbols, prior_shape, prior_rate, n_contexts),
          n_symbols_(n_symbols), given_(contexts) {
        SymbolContexts all(n_contexts);
        for (int64_t t = 0; t < n_steps; ++t) all.add(given(t));
        ContextEmission::set_contexts(std::move(all));
    }
    int32_t n_symbols(size_t c) const override { return n_symbols_[c]; }
    void fill_symbols(size_t c, const int32_t *context, int32_t k, double *out) const override {
        trees[c].fill_symbols(contexts_.place(context), k, out);
    }
    std::vector<int64_t> table_counts() const override {
        std::vector<int64_t> counts(depth());
        for (const SymbolTree &tree : trees)
            for (int32_t d = 1; d <= depth(); ++d) counts[d - 1] += tree.level(d).count_tables();
        return counts;
    }
    void set_concentrations(std::vector<double> lower, double top) override {
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
        for (SymbolTree &tree : trees) tree.resize(n, tree.n_symbols());
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
        for (int32_t d = 1; d <= depth(); ++d) {
            ConcentrationPosterior posterior(prior_shape_, prior_rate_);
            for (const SymbolTree &tree : trees)
                posterior.count_rows(tree.level(d), g);
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

  private:
    const int32_t *given(int64_t t) const { return given_ + t * n_inputs(); }
    ContextShape::Levels record(size_t c, const std::vector<int32_t> &labels) const override {
        return trees[c].record(labels);
    }
    void load_column(size_t c, ContextShape::Levels records) override {
        trees[c].load(std::move(records), n_slots);
    }
    const char *check_column(size_t c) const override { return trees[c].check(); }
    void set_contexts(SymbolContexts contexts) override {
        std::vector<ContextPlace> places;
        for (int64_t t = 0; t < n_steps; ++t) places.push_back(contexts.place(given(t)));
        contexts_ = std::move(contexts);
        places_ = std::move(places);  // planted: places of symbols
        trees.clear();
        for (const int32_t n : n_symbols_) {
            trees.emplace_back(n, contexts_.shape());
            trees.back().resize(n_slots, n);
        }
    }
    void extend(ContextShape *shape, std::vector<ContextPlace> *places) const override {
        SymbolContexts all = contexts_;
        for (int64_t t = 0; t < n_steps; ++t) all.add(given(t));
        for (int64_t t = 0; t < n_steps; ++t) places->push_back(all.place(given(t)));
        *shape = all.shape();
    }

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
    const int32_t *const given_;
    SymbolTree::Guests guests_;             // scratch
};

}  // namespace skihmm
