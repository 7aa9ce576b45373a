// Weights of one step whose transitions depend on contexts (_contexts.hpp).
//
// With the customers of the step removed, i before it and o after it, label k has the weight
//
//     q(k) = F_k [ sum_d w_d n_d(i, k) (O_k + R_k b_d) + g mass_k (O_k + R_k b_0) ],
//
// where n_d are the customers of i's restaurants of depth d and w_d their weights, g the weight of
// a table at the top, O_k the sparse part of p(o | k), and R_k the weight of its base.  b_d is the
// base of o when the draw of k has joined a table of depth d, and b_0 when the draw has opened a
// table at the top: it may have opened tables in restaurants that the next step shares.  (At s_0,
// without the exact step, all b_d are equal.)
//
// Rows of i and columns of o are expanded into arrays by label, beside the counts of a restaurant
// that all labels share, and all weights are computed in one vectorised pass.  Only i and o, whose
// restaurants or tables the draw itself changes, are computed apart.  The pass is in double:
// weights of the exact step must be correct to rounding.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_contexts.hpp"
#include "_vector.hpp"
#include "_weights.hpp"

namespace skihmm {

// q[k] = (o[k] (s[k] + g mass[k] + u up[k])
//         + a c[k] d[k] (to t[k] + g_to mass[k] + u_to up[k])) h[k]
// for k < n, a multiple of 16; lanes[l] = q[l] + q[l + 16] + ...
struct ContextWeights {
    int32_t n;
    const double *s, *t, *o, *mass, *up, *c, *d, *h;
    double g, u, a, to, g_to, u_to;
};

SKIHMM_CLONES static void context_weights(const ContextWeights &in, double *__restrict q,
                                          double *__restrict lanes) {
    const double *__restrict s = in.s, *__restrict t = in.t, *__restrict o = in.o,
                 *__restrict mass = in.mass, *__restrict up = in.up, *__restrict c = in.c,
                 *__restrict d = in.d, *__restrict h = in.h;
    const double g = in.g, u = in.u, a = in.a, to = in.to, g_to = in.g_to, u_to = in.u_to;
    double total[kWeightLanes] = {};
    for (int32_t at = 0; at < in.n; at += kWeightLanes) {
        for (int32_t l = 0; l < kWeightLanes; ++l) {
            const int32_t k = at + l;
            q[k] = (o[k] * (s[k] + g * mass[k] + u * up[k])
                    + a * c[k] * d[k] * (to * t[k] + g_to * mass[k] + u_to * up[k]))
                   * h[k];
            total[l] += q[k];
        }
    }
    std::copy_n(total, kWeightLanes, lanes);
}

class ContextStep {
  public:
    Weights weights;

    const double *ones() const { return ones_.data(); }
    // Before open, once n_slots is final: arrays for a tree.
    void attach(const ContextTree &tree) {
        tree.refresh();
        const size_t n = tree.padded(), n_depths = tree.shape.depth() + 1;
        weights.resize(static_cast<int32_t>(n));
        s_.assign(n, 0.0);
        t_.assign(n, 0.0);
        o_.assign(n, 0.0);
        ones_.assign(n, 1.0);
        product_.assign(n, 1.0);
        bases_.assign(n_depths, 0.0);
        w_.assign(n_depths, 0.0);
        rows_.assign(n_depths, 0);
        for (std::vector<int32_t> *v : {&at_prefix_, &next_prefix_, &counts_, &following_,
                                        &shared_})
            v->assign(n_depths, 0);
    }
    // A step after i, at a place, and before o, at the next.  `after`: o is drawn when the
    // customer of k has come.  To be closed before the seating changes.
    void open(const ContextTree &tree, ContextPlace at, ContextPlace next, int32_t i, int32_t o,
              bool after) {
        tree_ = &tree;
        at_ = at;
        next_ = next;
        i_label_ = i;
        o_label_ = o;
        after_ = after;
        tree.refresh();
        tree.fill_prefixes(at, at_prefix_.data());
        tree.fill_prefixes(next, next_prefix_.data());
        open_row();
        open_column();
        is_one_base_ = tree.fill_bases(rows_.data(), at.depth, next_prefix_.data(), next.depth, o,
                                       after, shared_.data(), bases_.data());
        for (int32_t d = at.depth; d >= tree.state_depth(); --d) {
            const double w = w_[d], to = bases_[at.depth - d];
            double *s = s_.data(), *t = t_.data();
            if (is_one_base_)
                tree.row_line(d, rows_[d]).for_fours([&](int32_t, int32_t k, int32_t n) {
                    s[k] += w * n;
                });
            else
                tree.row_line(d, rows_[d]).for_fours([&](int32_t, int32_t k, int32_t n) {
                    s[k] += w * n;
                    t[k] += w * n * to;
                });
        }
    }
    // Weights of all labels with emission probabilities h; of i and o too.
    SKIHMM_INLINE void weigh(const double *h, bool is_ghost) {
        const double *c = ones_.data(), *d = ones_.data();
        double a = 1.0;
        const int32_t first = tree_->state_depth();
        if (first <= next_.depth) {
            c = tree_->inverse(first, next_prefix_[first]);
            a = tree_->alpha(first);
        }
        if (first + 1 <= next_.depth) {
            d = tree_->inverse(first + 1, next_prefix_[first + 1]);
            a *= tree_->alpha(first + 1);
        }
        for (int32_t e = first + 2; e <= next_.depth; ++e) {
            const double *by = tree_->inverse(e, next_prefix_[e]), *before = d;
            for (size_t k = 0; k < product_.size(); ++k) product_[k] = before[k] * by[k];
            d = product_.data();
            a *= tree_->alpha(e);
        }
        c_ = c;
        d_ = d;
        a_ = a;
        const double last = bases_[at_.depth];  // planted: base of the leaf
        const double u = shared_row_ ? w_[1] : 0.0;
        const double u_to = shared_row_ ? u * bases_[at_.depth - 1] : 0.0;
        context_weights({static_cast<int32_t>(s_.size()), s_.data(),
                         is_one_base_ ? s_.data() : t_.data(), o_.data(), tree_->masses(),
                         shared_row_ ? shared_row_ : ones_.data(), c, d, h, g_, u, a,
                         is_one_base_ ? bases_[0] : 1.0, g_ * last, u_to},
                        weights.q.data(), weights.lanes);
        if (after_) {
            if (i_label_ != kStart)
                weights.change(i_label_, weigh_apart(i_label_, is_ghost) * h[i_label_]);
            if (o_label_ != i_label_) weigh_next(h[o_label_], is_ghost);
        } else if (is_ghost) {
            weights.change(o_label_, g_ * tree_->root().gamma
                                     * (o_[o_label_] + rest(o_label_) * last) * h[o_label_]);
        }
    }
    // The part of a weight in which the draw joins a table, without h; n customers of the label are
    // in its restaurant.
    double joining_part(int32_t k, int32_t n) {
        if (n == 0 || at_.depth == 0) return 0.0;
        const double c = w_[at_.depth] * n;
        if (after_ && (k == i_label_ || k == o_label_)) {
            read_counts(k);
            return c * follow(k, at_.depth, false);
        }
        return c * (o_[k] + rest(k) * bases_[0]);
    }
    void close() {
        for (int32_t d = at_.depth; d >= tree_->state_depth(); --d) {
            tree_->row_line(d, rows_[d]).unscatter(s_.data());
            if (!is_one_base_) tree_->row_line(d, rows_[d]).unscatter(t_.data());
        }
        for (int32_t d = tree_->state_depth(); d <= next_.depth; ++d)
            tree_->column_line(d, o_label_, next_prefix_[d]).unscatter(o_.data());
    }

  private:
    void open_row() {
        double share = 1.0;
        for (int32_t d = at_.depth; d >= 1; --d) {
            rows_[d] = tree_->shape.row(d, i_label_, at_prefix_[d]);
            w_[d] = share * (d >= tree_->state_depth()
                                 ? tree_->inverse(d, at_prefix_[d])[i_label_]
                                 : 1.0 / tree_->total(d, rows_[d]));
            share = w_[d] * tree_->alpha(d);
        }
        g_ = share / total_weight(tree_->root().n_tables, tree_->root().gamma);
        const bool is_shared = tree_->shape.n_before > 0 && at_.depth > 0;
        shared_row_ = is_shared ? tree_->shared_counts(at_prefix_[1]) : nullptr;
    }
    void open_column() {
        double *out = o_.data();
        for (int32_t d = tree_->state_depth(); d <= next_.depth; ++d) {
            const Line &line = tree_->column_line(d, o_label_, next_prefix_[d]);
            const double *by = tree_->inverse(d, next_prefix_[d]);
            if (d == next_.depth) {
                line.for_fours([&](int32_t, int32_t k, int32_t n) { out[k] += by[k] * n; });
            } else if (d + 1 == next_.depth) {
                const double a = tree_->alpha(d + 1);
                const double *below = tree_->inverse(d + 1, next_prefix_[d + 1]);
                line.for_fours([&](int32_t, int32_t k, int32_t n) {
                    out[k] += by[k] * (a * below[k]) * n;
                });
            } else {
                line.for_fours([&](int32_t, int32_t k, int32_t n) {
                    double w = by[k] * n;
                    for (int32_t e = d + 1; e <= next_.depth; ++e)
                        w *= tree_->alpha(e) * tree_->inverse(e, next_prefix_[e])[k];
                    out[k] += w;
                });
            }
        }
    }
    double rest(int32_t k) const { return a_ * c_[k] * d_[k]; }

    // ---- i and o: the draw is in the restaurants of i, and a table that it opens serves o

    void read_counts(int32_t k) {
        std::fill(counts_.begin(), counts_.end(), 0);
        std::fill(following_.begin(), following_.end(), 0);
        int32_t none = -1, no = -1;
        if (s_[k] != 0.0) tree_->fill_counts(at_, i_label_, k, &none, counts_.data());
        else if (shared_row_) counts_[1] = static_cast<int32_t>(shared_row_[k]);
        if (o_[k] != 0.0) tree_->fill_counts(next_, k, o_label_, &no, following_.data());
        for (int32_t d = 1; d <= tree_->shape.n_before; ++d) following_[d] = shared_[d];
    }
    // The weight of o, not i.
    SKIHMM_INLINE void weigh_next(double h, bool is_ghost) {
        const int32_t o = o_label_;
        if (tree_->shape.n_before > 0) {
            weights.change(o, weigh_apart(o, is_ghost) * h);
            return;
        }
        // Only the top is shared, where a table that the draw opens may be a further table of o.
        const InfiniteRoot &root = tree_->root();
        const double mass = root.mass_of(root.dish_tables[o]);
        const double after = (root.dish_tables[o] + 1.0)
                             / total_weight(root.n_tables + 1, root.gamma);
        // planted: successor without a table in a tree
        if (is_ghost) weights.change(o, g_ * mass * (o_[o] + rest(o) * after) * h);
        else
            weights.change(o, weights.q[o]
                                  + g_ * rest(o) * mass * (after - bases_[at_.depth]) * h);
    }
    SKIHMM_NOINLINE double weigh_apart(int32_t k, bool is_ghost) {
        const InfiniteRoot &root = tree_->root();
        if (root.dish_tables[k] == 0 && !(is_ghost && k == o_label_)) return 0.0;
        const double table = g_ * root.mass_of(root.dish_tables[k]);
        read_counts(k);
        double sum = table * follow(k, 1, true);
        for (int32_t d = at_.depth; d >= 1; --d)
            if (counts_[d]) sum += w_[d] * counts_[d] * follow(k, d, false);
        return sum;
    }
    double follow(int32_t k, int32_t lowest, bool opened) const {
        return tree_->follower(rows_.data(), at_.depth, next_prefix_.data(), next_.depth,
                               following_.data(), k, o_label_, lowest, opened);
    }

    const ContextTree *tree_ = nullptr;
    ContextPlace at_, next_;
    int32_t i_label_ = 0, o_label_ = 0;
    bool after_ = false, is_one_base_ = true;
    double g_ = 0.0, a_ = 1.0;
    const double *c_ = nullptr, *d_ = nullptr;      // R_k = a c[k] d[k]
    const double *shared_row_ = nullptr;            // n_1, if all labels share that restaurant
    // By label, zero between steps: sum_d w_d n_d(i, k) of the depths that depend on i, the same
    // times the bases, and O_k.
    WideVector<double> s_, t_, o_;
    WideVector<double> ones_, product_;
    // By depth.
    std::vector<double> w_, bases_;
    std::vector<int32_t> rows_, at_prefix_, next_prefix_, counts_, following_, shared_;
};

}  // namespace skihmm
