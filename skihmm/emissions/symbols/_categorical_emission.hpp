// Categorical emissions: one franchise per column of symbols, HCRP or Dirichlet.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "_categorical_parameters.hpp"
#include "_symbol_columns.hpp"
#include "_concentration.hpp"
#include "_dirichlet_counts.hpp"
#include "_emission.hpp"

namespace skihmm {

class CategoricalEmission final : public SymbolColumns, public EmissionParameters {
  public:
    std::vector<SymbolRestaurants> seatings;    // by column: rows are slots, dishes are symbols
    const bool is_hierarchical;         // HCRP (tables, concentrations) or Dirichlet

    CategoricalEmission(const int32_t *codes, int64_t n_steps,
                        const std::vector<int32_t> &n_symbols, bool is_hierarchical,
                        double prior_shape, double prior_rate, bool draws_pseudo_count)
        : SymbolColumns(codes, n_steps, n_symbols, prior_shape, prior_rate),
          seatings(n_symbols.size()), is_hierarchical(is_hierarchical),
          draws_pseudo_count_(draws_pseudo_count) {
        for (size_t c = 0; c < n_columns_; ++c) {
            seatings[c].base.is_fixed = !is_hierarchical;
            seatings[c].set_symbols(n_symbols[c]);
        }
        if (n_columns_ == 1) symbols_ = {&seatings[0], codes_, hints_.data()};
    }
    // Concentrations of restaurants, or a Dirichlet's pseudo-count.
    void set_concentrations(std::vector<double> lower, double top) override {
        const double alpha = lower[0];
        alphas = std::move(lower);
        gamma = is_hierarchical ? top : 1.0;
        for (SymbolRestaurants &s : seatings) {
            // A Dirichlet with pseudo-count a is a restaurant of concentration V a whose base
            // stays uniform.
            if (is_hierarchical) s.set_concentrations(alpha, gamma);
            else s.set_concentrations(alpha * s.base.n_symbols, gamma);
        }
    }

    void add(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
        for (size_t c = 0; c < n_columns_; ++c)
            if (code(t, c) >= 0) r->multiply(seatings[c].add(k, code(t, c), g, hint(t, c)));
    }
    void remove(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
        for (size_t c = n_columns_; c-- > 0;)
            if (code(t, c) >= 0) r->multiply(seatings[c].remove(k, code(t, c), g, hint(t, c)));
    }
    // With the tables as they are.
    void fill_prefixes(int64_t start, int64_t stop, int32_t k, bool backwards,
                       double *out) override {
        const int64_t n = stop - start;
        std::fill_n(out, n, 0.0);
        for (size_t c = 0; c < n_columns_; ++c) {
            const SymbolRestaurants &s = seatings[c];
            Product p;
            int32_t n_added = 0;
            added_.assign(s.base.n_symbols, 0);
            for (int64_t i = 0; i < n; ++i) {
                const int32_t symbol = code(backwards ? stop - 1 - i : start + i, c);
                if (symbol >= 0)
                    p.multiply(dish_weight<double>(s.count(k, symbol) + added_[symbol]++,
                                                   s.new_table(symbol))
                               / s.total(k, n_added++));
                out[i] += p.log();
            }
        }
    }
    void commit() override {
        for (SymbolRestaurants &s : seatings) s.commit();
    }
    void rollback() override {
        for (SymbolRestaurants &s : seatings) s.rollback();
    }
    void resize(int32_t n) override {
        n_slots = n;
        for (SymbolRestaurants &s : seatings) s.resize(n, s.base.n_symbols);
        if (!has_parameters_) return;
        for (SymbolParameters &parameters : parameters_) parameters.resize(n);
    }
    double log_joint() const override {
        double lp = 0.0;
        for (const SymbolRestaurants &s : seatings) lp += s.log_joint();
        return lp;
    }
    void draw_hyperparameters(bitgen_t *g) override {
        if (draws_pseudo_count_) {
            draw_pseudo_count(g);
        } else if (is_hierarchical && prior_rate_ > 0.0) {
            draw_concentrations(seatings.data(), n_columns_, prior_shape_, prior_rate_, g);
            alphas[0] = seatings[0].alpha;
            gamma = seatings[0].base.gamma;
        }
    }
    size_t n_bytes() const override {
        size_t total = 8 * n_steps * n_columns_ + 8 * (logs_.capacity() + row_.capacity());
        for (const SymbolRestaurants &s : seatings) total += s.n_bytes();
        // The tables of samplers that draw parameters are kept for the next sweep.
        for (const SymbolParameters &parameters : parameters_) total += parameters.n_bytes();
        return total;
    }
    int32_t n_symbols(size_t c) const override { return seatings[c].base.n_symbols; }
    void fill_symbols(size_t c, const int32_t *, int32_t k, double *out) const override {
        seatings[c].fill_probs(k, out);
    }
    bool reread() override { return true; }
    std::vector<int64_t> table_counts() const override {
        std::vector<int64_t> counts(1);
        for (const SymbolRestaurants &s : seatings) counts[0] += s.count_tables();
        return counts;
    }
    SeatingEmission *symbols() override { return n_columns_ == 1 ? &symbols_ : nullptr; }
    EmissionParameters *parameters() override { return this; }

    // ---- parameters

    bool is_table() const override { return n_columns_ == 1; }
    void draw_parameters(const std::vector<int32_t> &slots, const Workers &workers,
                         bitgen_t *g) override {
        parameters_.resize(n_columns_);
        for (size_t c = 0; c < n_columns_; ++c)
            parameters_[c].draw(seatings[c], slots, n_slots, workers, g);
        has_parameters_ = true;
    }
    const double *likelihoods(int64_t t, const int32_t *occupancy) override {
        if (n_columns_ == 1 && code(t, 0) >= 0) return parameters_[0].probs(code(t, 0));
        // Room for whole vectors of sixteen.
        row_.resize(n_slots + 16);
        if (n_columns_ <= kColumnGroup) {
            multiply_parameters(t, 0, n_columns_, row_.data());
        } else {
            CategoricalEmission::fill_log_row(t, occupancy, row_.data());
            floor_likelihoods(n_slots, occupancy, row_.data());
        }
        return row_.data();
    }
    void fill_log_row(int64_t t, const int32_t *, double *out) override {
        fill_column_logs(out, [&](size_t start, size_t stop, double *product) {
            multiply_parameters(t, start, stop, product);
        });
    }
    void draw_newborn(int32_t k, int64_t t, bitgen_t *g) override {
        for (size_t c = 0; c < n_columns_; ++c) parameters_[c].draw_newborn(k, code(t, c), g);
    }
    const double *table_row(int64_t t) const override {
        return code(t, 0) < 0 ? nullptr : parameters_[0].probs(code(t, 0));
    }
    void fill_log_likelihoods(int64_t t, const int32_t *slots, int32_t n,
                              double *out) const override {
        for (int32_t i = 0; i < n; ++i) {
            Product p;
            for (size_t c = 0; c < n_columns_; ++c)
                if (code(t, c) >= 0) p.multiply(parameters_[c].probs(code(t, c))[slots[i]]);
            out[i] = p.log();
        }
    }
    void reseat(const int32_t *states, const Workers &workers, bitgen_t *g) override {
        for (size_t c = 0; c < n_columns_; ++c)
            seatings[c].reseat(count_pairs(workers, n_steps, n_slots, seatings[c].base.n_symbols,
                                           [&](int64_t t, int32_t *row, int32_t *dish) {
                                               *row = states[t];
                                               *dish = code(t, c);
                                               return *dish >= 0;
                                           }),
                               parameters_[c].base(), g);
        has_parameters_ = false;
    }

  private:
    ContextShape::Levels record(size_t c, const std::vector<int32_t> &labels) const override {
        return {relabelled(seatings[c].record(), labels)};
    }
    void load_column(size_t c, ContextShape::Levels records) override {
        contexts_.shape().to_slots(&records);
        seatings[c].load(records[0]);
    }
    const char *check_column(size_t c) const override { return seatings[c].check(); }
    bool is_seated() const override { return is_hierarchical; }

    Product product(int64_t t, int32_t k) const override {
        Product p;
        for (size_t c = 0; c < n_columns_; ++c)
            if (code(t, c) >= 0) p.multiply(seatings[c].prob(k, code(t, c)));
        return p;
    }
    void multiply_columns(int64_t t, size_t start, size_t stop, double *out) const override {
        std::fill_n(out, n_slots, 1.0);
        for (size_t c = start; c < stop; ++c) {
            const int32_t symbol = code(t, c);
            if (symbol < 0) continue;
            // The listed states get the factor (count + smooth)/smooth on top of all states'
            // factor.
            const SymbolRestaurants &s = seatings[c];
            const double smooth = s.new_table(symbol);
            const Line &line = s.columns[symbol];
            for (int32_t k = 0; k < n_slots; ++k)
                out[k] *= smooth / s.total(k);
            for (int32_t i = 0; i < line.size; ++i)
                out[line.ids[i]] *= dish_weight<double>(line.counts[i], smooth) / smooth;
        }
    }
    // multiply given parameters.
    void multiply_parameters(int64_t t, size_t start, size_t stop, double *out) const {
        std::fill_n(out, n_slots, 1.0);
        for (size_t c = start; c < stop; ++c) {
            if (code(t, c) < 0) continue;
            const double *probs = parameters_[c].probs(code(t, c));
            for (int32_t k = 0; k < n_slots; ++k) out[k] *= probs[k];
        }
    }
    void draw_pseudo_count(bitgen_t *g) {
        DirichletCounts counts;
        for (const SymbolRestaurants &s : seatings)
            for (int32_t k = 0; k < n_slots; ++k) {
                const Line &row = s.rows[k];
                for (int32_t i = 0; i < row.size; ++i) counts.add_cell(row.counts[i]);
                counts.add_state(s.base.n_symbols, s.row_customers[k]);
            }
        set_concentrations({counts.draw_pseudo_count(alphas[0], g)}, 1.0);
    }

    const bool draws_pseudo_count_;
    SeatingEmission symbols_;
    std::vector<SymbolParameters> parameters_;      // by column; only while has_parameters_
    bool has_parameters_ = false;
    std::vector<double> row_;               // scratch
    std::vector<int32_t> added_;            // scratch, by symbol
};

}  // namespace skihmm
