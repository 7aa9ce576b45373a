// Symbol probabilities of all states, for samplers that draw parameters.
//
// One column of symbols.  phi_k, the distribution of state k, is Dirichlet with the shapes
// base_w + c_kw, where c_kw counts its symbols and base_w = alpha_e g_w: with an HCRP
// emission g is drawn first, g ~ Dir(gamma_e / V + e_w), given the tables e_w; with a
// Dirichlet emission g is uniform.  A fresh state has the predictive probabilities g.
//
// Probabilities stand symbol by symbol, all states side by side.
#pragma once
#include <cstdint>
#include <vector>

#include "_random.hpp"
#include "_restaurants.hpp"
#include "_slots.hpp"
#include "_workers.hpp"

namespace skihmm {

class SymbolParameters {
  public:
    // g and phi of the listed slots, by the threads of a sweep.
    void draw(const SymbolRestaurants &s, const std::vector<int32_t> &slots, int32_t n_slots,
              const Workers &workers, bitgen_t *g) {
        seating_ = &s;
        n_symbols_ = s.base.n_symbols;
        draw_root(g);
        resize(n_slots);
        for (int32_t w = 0; w < n_symbols_; ++w) at(w, kNew) = root_[w];
        const TaskStreams streams(g);
        const int64_t n = static_cast<int64_t>(slots.size());
        workers.run((n + kGroup - 1) / kGroup, [&](int64_t group, int32_t) {
            TaskStream stream = streams[group];
            bitgen_t bits = stream.bits();
            const int64_t first = group * kGroup;
            std::vector<double> shapes, falls, rows;
            draw_states(&slots[first],
                        static_cast<int32_t>(std::min<int64_t>(kGroup, n - first)), &shapes,
                        &falls, &rows, &bits);
        });
    }
    // Room for more slots; only after draw.
    void resize(int32_t n_slots) {
        const int32_t n = (n_slots + 15) / 16 * 16;
        if (n > stride_ || table_.size() != static_cast<size_t>(stride_) * n_symbols_) {
            const bool is_kept = !table_.empty() && n_slots_ > 0
                && table_.size() == static_cast<size_t>(stride_) * n_symbols_;
            const int32_t wider = std::max(n, is_kept ? stride_ + stride_ / 2 / 16 * 16 : n);
            WideVector<double> table(static_cast<size_t>(wider) * n_symbols_, 0.0);
            if (is_kept)
                for (int32_t w = 0; w < n_symbols_; ++w)
                    std::copy_n(&at(w, 0), n_slots_, &table[static_cast<size_t>(w) * wider]);
            table_.swap(table);
            stride_ = wider;
        }
        n_slots_ = n_slots;
    }
    // p(symbol | k) of all slots, side by side; of slots without a state any number.
    const double *probs(int32_t symbol) const {
        return &table_[static_cast<size_t>(symbol) * stride_];
    }
    // A state that has emitted `symbol` (-1: nothing yet).
    void draw_newborn(int32_t k, int32_t symbol, bitgen_t *g) {
        shapes_ = base_;
        if (symbol >= 0) shapes_[symbol] += 1.0;
        scratch_.resize(n_symbols_);
        draw_dirichlet(g, n_symbols_, shapes_.data(), scratch_.data(), &falls_);
        for (int32_t w = 0; w < n_symbols_; ++w) at(w, k) = scratch_[w];
    }
    // alpha_e g: the weight of a new table of each symbol.
    const double *base() const { return base_.data(); }

    size_t n_bytes() const {
        return (root_.capacity() + base_.capacity() + table_.capacity() + shapes_.capacity()
                + falls_.capacity() + scratch_.capacity()) * sizeof(double);
    }

  private:
    // States whose rows are written together: eight doubles share a cache line.
    static constexpr int32_t kGroup = 8;

    double &at(int32_t symbol, int32_t k) {
        return table_[static_cast<size_t>(symbol) * stride_ + k];
    }
    void draw_root(bitgen_t *g) {
        const SymbolRestaurants &s = *seating_;
        root_.resize(n_symbols_);
        base_.resize(n_symbols_);
        if (s.base.has_tables()) {
            shapes_.resize(n_symbols_);
            for (int32_t w = 0; w < n_symbols_; ++w)
                shapes_[w] = s.mass(w);
            draw_dirichlet(g, n_symbols_, shapes_.data(), root_.data(), &falls_);
        } else {
            root_.assign(n_symbols_, 1.0 / n_symbols_);
        }
        for (int32_t w = 0; w < n_symbols_; ++w) base_[w] = s.alpha * root_[w];
    }
    // The last vectors are scratch.
    void draw_states(const int32_t *states, int32_t n, std::vector<double> *shapes,
                     std::vector<double> *falls, std::vector<double> *rows, bitgen_t *g) {
        rows->resize(static_cast<size_t>(kGroup) * n_symbols_);
        for (int32_t i = 0; i < n; ++i) {
            *shapes = base_;
            const Line &row = seating_->rows[states[i]];
            for (int32_t l = 0; l < row.size; ++l) (*shapes)[row.ids[l]] += row.counts[l];
            draw_dirichlet(g, n_symbols_, shapes->data(),
                           &(*rows)[static_cast<size_t>(i) * n_symbols_], falls);
        }
        for (int32_t w = 0; w < n_symbols_; ++w)
            for (int32_t i = 0; i < n; ++i)
                at(w, states[i]) = (*rows)[static_cast<size_t>(i) * n_symbols_ + w];
    }

    const SymbolRestaurants *seating_ = nullptr;
    int32_t n_symbols_ = 0, n_slots_ = 0, stride_ = 0;
    std::vector<double> root_, base_;               // g, alpha_e g
    WideVector<double> table_;                      // [symbol][slot]
    std::vector<double> shapes_, falls_, scratch_;
};

}  // namespace skihmm
