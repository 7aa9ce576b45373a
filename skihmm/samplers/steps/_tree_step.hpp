// The label of one step of _stepwise.hpp in a tree of restaurants, by the weights of all labels.
//
// The weights are those of _context_step.hpp, with a symbol's sparse counts apart.  With coins the
// weights of the draws alone are the start of those of all labels.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_context_step.hpp"
#include "_rcd.hpp"
#include "_sparse_step.hpp"

namespace skihmm {

class TreeStep : protected SparseStep {
  protected:
    using SparseStep::SparseStep;

    // Start of a sweep.  Whether steps with a successor are drawn by the functions below; not with
    // coins, and not in plain restaurants.
    bool attach_tree(const Transitions &s) {
        is_tree_ = s.has_contexts();
        if (is_tree_) step_.attach(s.contexts());
        return is_tree_ && !s.coins().exist();
    }
    bool is_tree() const { return is_tree_; }
    // For symbols: h = 1/(e_k + alpha_e), and with the view of a step.
    void fill_inverses(int32_t padded) {
        if (!is_tree_) return;
        h_.assign(padded, 0.0);
        for (int32_t k = 0; k < n_slots_; ++k) h_[k] = 1.0 / total_weight(totals_[k], offset_);
    }
    const double *inverses(const SymbolView &symbol) {
        if (!symbol.exists) return step_.ones();
        h_[x_] = 1.0 / total_weight(symbol.e_x, offset_);
        return h_.data();
    }
    SKIHMM_NOINLINE void refresh_inverses(int32_t k) {
        h_[x_] = 1.0 / total_weight(totals_[x_], offset_);
        h_[k] = 1.0 / total_weight(totals_[k], offset_);
    }

    // Weights by the part h of the observation's probabilities that is not in its sparse counts.
    // To be closed.
    SKIHMM_INLINE void fill_tree(const Transitions &s, const double *h, const StepView &view,
                                 const SymbolView &symbol, int32_t hint) {
        h_now_ = h;
        const ContextTree &tree = s.contexts();
        // planted: contexts of a step
        step_.open(tree, tree.place(t_), tree.place(t_ + 1), i_, o_, is_exact_);
        step_.weigh(h_now_, view.is_ghost());
        Weights &weights = step_.weights;
        by_smooth_ = 0.0;
        extra_ = 0.0;
        double e_first = 0.0;
        first_q_ = weights.q[first_];
        weights.change(first_, 0.0);
        if (symbol.exists) {
            by_smooth_ = 1.0 / view_->smooth;
            for (int32_t at = 0; at < view_->size; ++at)
                extra_ += weights.q[view_->ids[at]] * (view_->counts[at] * by_smooth_);
            if (first_ == x_) e_first = symbol.e_in;
        }
        const double by_symbol = 1.0 + e_first * by_smooth_;
        first_q_ *= by_symbol;
        if (is_exact_)
            first_stays_ = step_.joining_part(first_, count_in(tree, first_, hint))
                           * h_now_[first_] * by_symbol;
        rest_ = weights.total() + extra_;
    }
    double weight_in_tree(int32_t k) const {
        return step_.weights.q[k] * (1.0 + symbol_count(k) * by_smooth_);
    }
    Choice split_in_tree(const Transitions &s, int32_t k, bitgen_t *g) {
        const ContextTree &tree = s.contexts();
        const double by_symbol = 1.0 + symbol_count(k) * by_smooth_;
        Choice choice{step_.weights.q[k] * by_symbol, 0.0, 0.0};
        choice.stays = step_.joining_part(k, count_in(tree, k, -1)) * h_now_[k] * by_symbol;
        choice.u = uniform(g) * choice.q;
        return choice;
    }
    int32_t draw_in_tree(double u) const {  // planted: draw in contexts
        const Weights &weights = step_.weights;
        if (u < extra_)
            return search(view_->size, [&](int32_t at) { return view_->ids[at]; },
                          [&](int32_t at) {
                return weights.q[view_->ids[at]] * (view_->counts[at] * by_smooth_);
            }, u);
        const int32_t k = weights.at(u - extra_);
        return k < 0 ? first_ : k;
    }
    void close_tree() { step_.close(); }

    // Weights of all labels without the observation, and without coins.
    void fill_all_in_tree(const Transitions &s, const StepView &view, double *weights,
                          double *stays) {
        const ContextTree &tree = s.contexts();
        const ContextPlace at = tree.place(t_), next = tree.place(t_ + 1);
        const double by = 1.0 / tree.total(at, i_);
        std::fill_n(stays, n_slots_, 0.0);
        if (o_ < 0) {
            tree.fill_row(at, i_, weights);
            tree.visit_leaf(at, i_, [&](int32_t k, int32_t n) { stays[k] = by * n; });
        } else {
            step_.open(tree, at, next, i_, o_, is_exact_);  // planted: weights in a tree
            step_.weigh(step_.ones(), view.is_ghost());
            std::copy_n(step_.weights.q.data(), n_slots_, weights);
            tree.visit_leaf(at, i_, [&](int32_t k, int32_t n) {
                stays[k] = step_.joining_part(k, n);
            });
            step_.close();
        }
    }

  private:
    int32_t count_in(const ContextTree &tree, int32_t k, int32_t hint) const {
        return k == kNew ? 0 : tree.leaf_count(tree.place(t_), i_, k, hint);
    }

    bool is_tree_ = false;
    ContextStep step_;
    std::vector<double> h_;               // padded
    double extra_ = 0.0;                  // part of the listed states' symbol counts
    double by_smooth_ = 0.0;              // over the symbol's smooth part
    const double *h_now_ = nullptr;       // of this step
};

}  // namespace skihmm
