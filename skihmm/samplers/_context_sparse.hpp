// Weights of one step with contexts from the non-zeros of a row, a column and a symbol, while its
// customers are lifted: written nowhere (see Move::lift).
//
// Notation of _context_step.hpp.  With F_k = (e_k + d) h_k the weights add up to
//
//     sum_k q(k) = sum_k e_k h_k [s_k (O_k + R_k b) + g mass_k (O_k + R_k b_0)]  over the symbol
//                  + d [ sum_k h_k s_k (O_k + R_k b)                             over the row
//                        + g ( sum_k h_k O_k mass_k                           over the column
//                              + b_0 sum_k h_k R_k mass_k )],
//
// with s_k = sum_d w_d n_d(i, k), and b for all tables below the top.  The last sum depends on
// the place of the next step alone.  It is kept by place, and brought up to date with the labels
// that have changed since the place was last needed.
//
// The old label x, whose own restaurants the customers have left, is outside of the sums; so is i,
// and of o what opens a table at the top.  Sums and weights are in double, as they must be.
//
// For few slots the sums are known roughly before, by dense counts (_context_rough.hpp).
//
// This is of trees in which the labels share nothing but the top.  Where they share the first
// restaurant of a context too, with n' customers of dish k and the weight w', g mass_k is
// g mass_k + w' n'_k, and b_0 in that part the base after a table there.  Then the last sum is one
// of pairs of contexts: it is not kept, but made by a vectorised pass over all labels.  A step
// that is drawn in that restaurant itself is opened.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_blocked_vector.hpp"
#include "_context_rough.hpp"
#include "_contexts.hpp"
#include "_emission.hpp"
#include "_transitions.hpp"

namespace skihmm {

// The sum of near[k] (g mass[k] + w above[k]) for k < n, a multiple of 16.
SKIHMM_CLONES static double sum_shared(int32_t n, const double *near, double g,
                                       const double *mass, double w, const double *above) {
    double lanes[16] = {};
    for (int32_t at = 0; at < n; at += 16)
        for (int32_t l = 0; l < 16; ++l)
            lanes[l] += near[at + l] * (g * mass[at + l] + w * above[at + l]);
    return fold_lanes(lanes);
}

class ContextSparse {
  public:
    using Step = HCRPTransitions::Step;
    int32_t first = kNew;               // x, or kNew if no table is left to serve it
    double first_q = 0.0, first_stays = 0.0;    // its weight, and the part that joins a table
    double rest = 0.0;                  // that of all others
    double error = 0.0;                 // of `rest`, at most, while it is rough

    // Once n_slots is final; `h` is by slot, as it is between moves, and outlives the sweep.
    // is_rough: the sums may be known roughly at first.
    void attach(const ContextTree &tree, int32_t n_slots, const double *h, bool after,
                bool is_rough = false) {
        tree_ = &tree;
        tree.refresh();
        h_ = h;
        after_ = after;
        n_slots_ = n_slots;
        depth_ = tree.shape.depth();
        is_context_first_ = tree.shape.n_before > 0;
        own_depth_ = tree.first_own();
        const size_t n = tree.padded();
        s_.assign(n, 0.0);
        o_.assign(n, 0.0);
        mass_.assign(tree.masses(), tree.masses() + n);
        alphas_.assign(depth_ + 1, 1.0);
        offsets_.assign(depth_ + 2, 0);
        for (int32_t d = 1; d <= depth_; ++d) {
            alphas_[d] = tree.alpha(d);
            offsets_[d + 1] = offsets_[d] + tree.shape.stride(d);
        }
        w_.assign(depth_ + 1, 0.0);
        for (std::vector<int32_t> *v : {&prefixes_, &own_, &following_}) v->assign(depth_ + 1, 0);
        saved_.assign(2 * static_cast<size_t>(depth_), 0.0);
        places_.resize(offsets_[depth_ + 1]);
        for (Place &place : places_) place.is_known = false;
        changed_.clear();
        shared_.assign(is_context_first_ ? tree.shape.stride(1) * n : 0, 0.0);
        for (int32_t v = 0; is_context_first_ && v < tree.shape.stride(1); ++v)
            tree.row_line(1, v).scatter(shared_by(v));
        is_rough_ = false;
        counts_.clear();
        if (is_rough) attach_counts(tree);
    }
    // A move has ended with label k; `is_lifted`: without the customers having been taken out.
    SKIHMM_INLINE void settle(const Step &step, int32_t k, bool is_lifted) {
        if (SKIHMM_LIKELY(is_lifted)) {
            if (step.path_in.is_changed && counts_.exist())
                counts_.update(step.path_in.at, step.i, step.x, -1);
            if (step.path_out.is_changed && counts_.exist())
                counts_.update(step.path_out.at, step.x, step.o, -1);
            if (SKIHMM_UNLIKELY(is_context_first_)) {
                if (step.path_in.is_changed) count_shared(step.path_in.levels[1].row, step.x);
                if (step.path_out.is_changed) count_shared(step.path_out.levels[1].row, step.o);
            }
            if (step.path_in.is_changed) note(step.i);
            if (step.path_out.is_changed || step.path_in.changes_top()) note(step.x);
            if (step.path_out.changes_top()) note(step.o);
            return;
        }
        for (const int32_t j : {step.i, step.x, step.o}) if (j >= kFirst) note(j);
        if (k != step.x) note(k);
    }
    // The same of the counts, unless it was lifted: of a step and of the one after it.
    SKIHMM_NOINLINE void recount(const ContextTree &tree, int64_t t, const Step &step, int32_t k,
                                 const int32_t *hints) {
        recount_dense(tree, t, step, k, hints);
        if (!is_context_first_) return;
        tree.fill_prefixes(tree.place(t), prefixes_.data());
        for (const int32_t j : {k, step.x}) count_shared(prefixes_[1], j);
        if (step.o < 0) return;
        tree.fill_prefixes(tree.place(t + 1), prefixes_.data());
        count_shared(prefixes_[1], step.o);
    }
    void recount_dense(const ContextTree &tree, int64_t t, const Step &step, int32_t k,
                       const int32_t *hints) {
        if (!counts_.exist()) return;
        for (const int32_t j : {k, step.x}) {
            h_f_[j] = static_cast<float>(h_[j]);
            counts_.update(tree.place(t), step.i, j, j == k ? hints[0] : -1);
            if (step.o >= 0)
                counts_.update(tree.place(t + 1), j, step.o, j == k ? hints[1] : -1);
            if (k == step.x) break;
        }
    }
    // A lifted step, with the column of its observation, of which x has e_in without it, and h
    // of x without it.  To be closed before the seating changes.  Whether the sums are known.
    bool open(const Step &step, const SymbolColumn &column, int32_t e_in, double h_x) {
        look(step, column, e_in, h_x);
        error = 0.0;
        is_rough_ = counts_.exist() && step.m_x > 0 && at_.depth == 2 && next_.depth == 2;
        if (SKIHMM_LIKELY(is_rough_)) sum_roughly();
        else if (at_.depth < own_depth_ || next_.depth < own_depth_) return false;
        else sum();
        return true;
    }
    // Whether it is known if `share` of the sum of all weights lies in the first one, and in which
    // part of that; if not, `complete` is next.
    template <class Share> SKIHMM_INLINE bool decides(Share share) const {
        if (!is_rough_) return true;
        const Share least = share * (first_q + rest - error),
                    most = share * (first_q + rest + error);
        return most < first_q && (most < first_stays || least >= first_stays);
    }
    SKIHMM_NOINLINE void complete() {
        error = 0.0;
        is_rough_ = false;
        sum();
    }
    // The label in whose part of `rest` u lies.
    SKIHMM_NOINLINE int32_t draw(double u) const {
        if (u < i_q_) return i_;
        u -= i_q_;
        if (u < o_q_) return o_label_;
        u -= o_q_;
        const double *nearest = part(own_depth_);
        const bool is_shared = is_context_first_;
        int32_t found = first;
        const auto passes = [&](int32_t k, double value) {
            if (!(value > 0.0)) return false;
            found = k;
            return (u -= value) < 0.0;
        };
        if (u < symbol_sum_) {
            for (int32_t at = 0; at < column_->size; ++at) {
                const int32_t k = column_->ids[at];
                if (passes(k, column_->counts[at]
                                  * (s_[k] * (o_[k] + ab_ * nearest[k])
                                     + opening_part(k, nearest[k]))))
                    return k;
            }
            return found;
        }
        u = (u - symbol_sum_) / d_;
        if (u < row_sum_) {
            const Line &row = row_line(own_depth_);
            for (int32_t at = 0; at < row.size; ++at) {
                const int32_t k = row.ids[at];
                if (passes(k, s_[k] * (o_[k] + ab_ * nearest[k]))) return k;
            }
            return found;
        }
        u = (u - row_sum_) / (is_shared ? 1.0 : g_);
        if (u < column_sum_) {
            const Line &line = column_line(own_depth_);
            for (int32_t at = 0; at < line.size; ++at) {
                const int32_t k = line.ids[at];
                const double mass = is_shared ? g_ * mass_[k] + w_[1] * above_[k] : mass_[k];
                if (passes(k, o_[k] * mass)) return k;
            }
            return found;
        }
        u = (u - column_sum_) / (is_shared ? 1.0 : ab_opened_);
        for (int32_t k = 0; k < n_slots_; ++k)
            if (!is_apart(k) && passes(k, is_shared ? smooth_part(k) : place_->values[k]))
                return k;
        return found;
    }
    // Of a label other than `first`: its weight, and the part of it in which the draw joins a
    // table.
    double weight(int32_t k) const {
        if (k == i_) return i_q_;
        const double near = part(own_depth_)[k], f = symbol_weight(k);
        const double joins = f * s_[k] * (o_[k] + ab_ * near);
        if (k == o_label_) return joins + o_q_;
        return joins + f * opening_part(k, near);
    }
    double joining_part(int32_t k) const {
        if (k == i_) return i_stays_;
        if (s_[k] == 0.0) return 0.0;
        return symbol_weight(k) * w_[at_.depth] * tree_->leaf_count(at_, i_, k, -1)
               * (o_[k] + ab_ * part(own_depth_)[k]);
    }
    void close() {
        if (is_rough_) return;
        row_line(own_depth_).unscatter(s_.data());
        column_line(own_depth_).unscatter(o_.data());
        if (is_context_first_) above_[o_label_] = saved_above_;
        for (int32_t d = next_.depth; d >= own_depth_; --d) {
            part(d)[i_] = saved_[2 * d - 1];
            part(d)[x_] = saved_[2 * d - 2];
        }
        mass_[o_label_] = saved_mass_;
    }
    // Ask for the lists of the step between i and o.  (Dense counts are in the caches.)
    void prefetch(ContextPlace at, ContextPlace next, int32_t i, int32_t o) const {
        if (counts_.exist()) return;
        int32_t p = at.prefix, q = next.prefix;
        for (int32_t d = at.depth; d >= own_depth_; --d) {
            fetch(tree_->row_line(d, tree_->shape.row(d, i, p)));
            if (d > 1) p = tree_->shape.prefix_above(d, p);
        }
        for (int32_t d = next.depth; d >= own_depth_; --d) {
            fetch(tree_->column_line(d, o, q));
            if (d > 1) q = tree_->shape.prefix_above(d, q);
        }
    }

  private:
    // Of a place of the next step, by label between moves.
    struct Place {
        // h_k R_k mass_k / a; then, by depth, h_k times the weight of k's customers, which is
        // h_k R_k / a for the first depth of labels, with its concentration a.
        WideVector<double> values;
        double total = 0.0;             // sum of the first
        size_t n_seen = 0;              // of the changed labels
        bool is_known = false;
    };
    static constexpr double kCancelled = 1e-3;
    // A rough sum's relative error, with room: some twenty roundings of floats; and what all terms
    // together can have lost by underflow.
    static constexpr double kRoughness = 1e-5, kUnderflow = 1e-28;
    static constexpr size_t kMostChanged = 1 << 16;
    // With so few nothing is kept: all labels are as fast as those that have changed.
    static constexpr size_t kFewSlots = 48;

    static void fetch(const Line &line) {
        SKIHMM_PREFETCH(line.ids);
        SKIHMM_PREFETCH(line.counts);
    }
    const Line &row_line(int32_t d) const {
        return tree_->row_line(d, step_->path_in.levels[d].row);
    }
    const Line &column_line(int32_t d) const {
        return tree_->column_line(d, o_label_, prefixes_[d]);
    }
    double *part(int32_t d) { return place_->values.data() + d * s_.size(); }
    const double *part(int32_t d) const { return place_->values.data() + d * s_.size(); }
    bool is_apart(int32_t k) const {
        return k == x_ || k == i_ || k == o_label_ || k == first;
    }

    // ---- sums

    SKIHMM_INLINE void look(const Step &step, const SymbolColumn &column, int32_t e_in,
                            double h_x) {
        step_ = &step;
        column_ = &column;
        e_in_ = e_in;
        h_x_ = h_x;
        i_ = step.i;
        x_ = step.x;
        o_label_ = step.o;
        at_ = step.path_in.at;
        next_ = step.path_out.at;
        d_ = column.smooth;
        first = step.m_x > 0 ? x_ : kNew;
        tree_->fill_prefixes(next_, prefixes_.data());
        // What follows from the top, and what leads to it.
        double share = 1.0;
        for (int32_t d = at_.depth; d >= 1; --d) {
            w_[d] = share * step.path_in.levels[d].inverse;
            share = w_[d] * alphas_[d];
        }
        g_ = share / step.n_top;
        base_ = step.top_out(0);
        opened_ = after_ ? step.top_out(1) : base_;
        const double a = alphas_[1];
        ab_ = a * base_;
        ab_opened_ = a * opened_;
        ab_own_ = after_ ? a * (step.m_o + 1.0) / (step.n_top + 1.0) : ab_;
        ab_joined_ = ab_own_joined_ = ab_;
        if (SKIHMM_UNLIKELY(is_context_first_)) look_at_first();
    }
    // The bases are laws of the first restaurant of the next place.
    SKIHMM_NOINLINE void look_at_first() {
        const LiftedLevel &next = step_->path_out.levels[1];
        const bool is_joined = after_ && step_->is_joined;
        const double n = next.customer.n, now = next.inverse,
                     came = is_joined ? now / (1.0 + now) : now;
        const double on_top = ab_, on_opened = ab_opened_, on_own = ab_own_;
        opened_own_ = on_own / alphas_[1];
        ab_ = dish_weight(n, on_top) * now;
        ab_joined_ = dish_weight(n, on_top) * came;
        ab_opened_ = dish_weight(n, on_opened) * came;
        ab_own_joined_ = dish_weight(n + is_joined, on_top) * came;
        ab_own_ = dish_weight(n + is_joined, on_own) * came;
    }
    void sum() {
        if (SKIHMM_UNLIKELY(is_context_first_)) sum_lists<true>();
        else sum_lists<false>();
    }
    // kShared: the labels share the first restaurant of a context.
    template <bool kShared> SKIHMM_NOINLINE void sum_lists() {
        constexpr int32_t own = 1 + kShared;
        place_ = &known_place();
        const double *nearest = part(own);

        // x and i are apart, and what o has in restaurants that all share.
        for (int32_t d = own; d <= next_.depth; ++d) {
            double *w = part(d);
            saved_[2 * d - 2] = w[x_];
            saved_[2 * d - 1] = w[i_];
            w[x_] = w[i_] = 0.0;
        }
        const double mass_o = mass_[o_label_];
        saved_mass_ = mass_o;
        mass_[o_label_] = 0.0;
        if constexpr (kShared) {
            above_ = shared_by(step_->path_in.levels[1].row);
            saved_above_ = above_[o_label_];
            above_[o_label_] = 0.0;
            // Of labels, as a_1 of those above.
            for (double *ab : {&ab_, &ab_joined_, &ab_opened_, &ab_own_, &ab_own_joined_})
                *ab *= alphas_[own];
        }

        // Four sums at a time: one would wait for itself.
        double *s = s_.data(), *out = o_.data();
        const double *mass = mass_.data(), *above = above_;
        const double ab = ab_, g = g_;
        const double w_above = kShared ? w_[1] : 0.0;
        double column_part[4] = {0.0, 0.0, 0.0, 0.0}, row_part[4] = {0.0, 0.0, 0.0, 0.0};
        const int32_t i = i_, o = o_label_;
        bool follows_i = false;
        for (int32_t d = own; d <= next_.depth; ++d) {
            const double *w = part(d);
            column_line(d).for_fours([&](int32_t l, int32_t k, int32_t n) {
                const double value = w[k] * n;
                out[k] += value;
                column_part[l] += value * (kShared ? g * mass[k] + w_above * above[k] : mass[k]);
                if (kShared) follows_i |= k == i;
            });
        }
        for (int32_t d = at_.depth; d > own; --d) {
            const double w = w_[d];
            row_line(d).for_fours([&](int32_t, int32_t k, int32_t n) { s[k] += w * n; });
        }
        const double w_first = w_[own];
        row_line(own).for_fours([&](int32_t l, int32_t k, int32_t n) {
            const double value = s[k] += w_first * n;
            row_part[l] += value * (out[k] + ab * nearest[k]);
        });
        double symbol_sum = 0.0;
        int32_t e_i = 0, e_o = 0;
        for (int32_t at = 0; at < column_->size; ++at) {
            const int32_t k = column_->ids[at], n = column_->counts[at];
            e_i += k == i ? n : 0;
            e_o += k == o ? n : 0;
            symbol_sum += n * (s[k] * (out[k] + ab * nearest[k]) + opening_part(k, nearest[k]));
        }
        symbol_sum_ = symbol_sum;
        row_sum_ = (row_part[0] + row_part[1]) + (row_part[2] + row_part[3]);
        column_sum_ = (column_part[0] + column_part[1]) + (column_part[2] + column_part[3]);
        if constexpr (kShared) {
            if (SKIHMM_LIKELY(first != kNew)) {
                smooth_sum_ = sum_shared(static_cast<int32_t>(s_.size()), nearest,
                                         g * ab_opened_, mass, w_above * ab_joined_, above);
            } else {
                smooth_sum_ = 0.0;
                for (int32_t k = 0; k < n_slots_; ++k)
                    if (!is_apart(k)) smooth_sum_ += smooth_part(k);
            }
        } else {
            // The sum that is kept, without x, i and o.
            const double *values = place_->values.data();
            double gone = values[x_] + values[i_];
            if (o_label_ != i_) gone += values[o_label_];
            if (first == kNew) gone += values[kNew];
            smooth_sum_ = place_->total - gone;
            if (SKIHMM_UNLIKELY(!(smooth_sum_ > kCancelled * gone))) sum_smooth();
        }

        weigh_first();
        // Where a restaurant has customers its parent has some too.
        int32_t none = -1, no = -1, o_above = 0;
        is_owned_ = s[i] != 0.0;
        is_followed_ = kShared ? follows_i : s[o] != 0.0;
        if (SKIHMM_UNLIKELY(is_owned_)) tree_->fill_counts(at_, i, i, &none, own_.data());
        if (is_followed_) tree_->fill_counts(next_, i, o, &no, following_.data());
        if constexpr (kShared) {
            // A restaurant that both customers have left has not so many of o.
            const int32_t n_o = step_->path_out.levels[1].customer.n;
            o_above = step_->is_joined ? n_o : static_cast<int32_t>(saved_above_);
            if (!is_owned_) std::fill(own_.begin(), own_.end(), 0);
            if (!is_followed_) std::fill(following_.begin(), following_.end(), 0);
            own_[1] = i == o ? o_above : static_cast<int32_t>(above[i]);
            following_[1] = n_o;
            is_owned_ |= own_[1] > 0;
            is_followed_ |= n_o > 0;
        }
        weigh_i(dish_weight<double>(e_i, d_) * h_[i]);
        o_q_ = o_label_ == i_ ? 0.0 : g_ * step_->mass_o * dish_weight<double>(e_o, d_)
                                      * (out[o_label_] + ab_own_ * nearest[o_label_]);
        if (kShared && o != i)
            o_q_ += w_above * o_above * dish_weight<double>(e_o, d_)
                    * (out[o] + ab_own_joined_ * nearest[o]);
        if constexpr (kShared) rest = symbol_sum_ + d_ * (row_sum_ + column_sum_ + smooth_sum_);
        else rest = symbol_sum_ + d_ * (row_sum_ + g_ * (column_sum_ + ab_opened_ * smooth_sum_));
        rest = rest + i_q_ + o_q_;
    }
    // The same from dense counts, which between moves are those of s_0 but for labels apart; of
    // trees of two levels.
    SKIHMM_INLINE void sum_roughly() {
        const int32_t p = at_.prefix, next = next_.prefix, o = o_label_, i = i_;
        const uint16_t *row = counts_.row(2, p, i),
                       *row_above = counts_.row(1, is_context_first_ ? p : 0, i),
                       *column = counts_.column(2, next, o),
                       *column_above = counts_.column(1, 0, o);
        const float roughly = rough_weights(
            {static_cast<int32_t>(s_.size()), {x_, i, o}, row, row_above, column, column_above,
             h_f_.data(), tree_->inverse_f(2, next),
             is_context_first_ ? ones_f_.data() : tree_->inverse_f(1, 0), mass_f_.data(),
             static_cast<float>(w_[2]), static_cast<float>(w_[1]),
             static_cast<float>(alphas_[2]), static_cast<float>(ab_),
             static_cast<float>(ab_joined_), static_cast<float>(ab_opened_),
             static_cast<float>(g_)},
            q_f_.data());
        const float *q = q_f_.data();
        float by_symbol[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        int32_t of_i[4] = {0, 0, 0, 0}, of_o[4] = {0, 0, 0, 0};
        for (int32_t at = 0; at < column_->size; at += 4) {
            for (int32_t l = 0; l < 4; ++l) {
                const int32_t k = column_->ids[at + l], n = column_->counts[at + l];
                of_i[l] += k == i ? n : 0;
                of_o[l] += k == o ? n : 0;
                by_symbol[l] += q[k] * static_cast<float>(n);
            }
        }
        const int32_t e_i = (of_i[0] + of_i[1]) + (of_i[2] + of_i[3]),
                      e_o = (of_o[0] + of_o[1]) + (of_o[2] + of_o[3]);
        double all = d_ * roughly
                     + ((by_symbol[0] + by_symbol[1]) + (by_symbol[2] + by_symbol[3]));
        error = kRoughness * all + kUnderflow;
        weigh_first();
        // A restaurant that both customers have left has not so many of o.
        const int32_t o_above = step_->is_joined ? step_->path_out.levels[1].customer.n
                                                 : row_above[o];
        own_[1] = i == o ? o_above : row_above[i];
        own_[2] = row[i];
        following_[1] = is_context_first_ ? step_->path_out.levels[1].customer.n
                                          : column_above[i];
        following_[2] = column[i];
        is_owned_ = own_[1] > 0;
        is_followed_ = following_[1] > 0;
        weigh_i(dish_weight<double>(e_i, d_) * h_[i]);
        all += i_q_;
        if (i != o) {
            const double c = h_[o] * tree_->inverse(2, next)[o],
                         near = c * alphas_[2]
                                * (is_context_first_ ? 1.0 : tree_->inverse(1, 0)[o]),
                         out = c * column[o] + near * column_above[o];
            all += dish_weight<double>(e_o, d_)
                   * (w_[2] * row[o] * (out + ab_ * near)
                      + w_[1] * o_above * (out + ab_own_joined_ * near)
                      + g_ * step_->mass_o * (out + ab_own_ * near));
        }
        rest = all;
    }
    SKIHMM_NOINLINE void attach_counts(const ContextTree &tree) {
        if (!DenseCounts::suit(tree, n_slots_)) return;
        counts_.attach(tree, n_slots_);
        q_f_.assign(s_.size(), 0.0f);
        ones_f_.assign(s_.size(), 1.0f);
        h_f_.assign(s_.size(), 0.0f);
        for (int32_t k = 0; k < n_slots_; ++k) h_f_[k] = static_cast<float>(h_[k]);
        mass_f_.assign(mass_.begin(), mass_.end());
    }

    // ---- places

    // Label k has other sizes, or another mass, than before the move.
    void note(int32_t k) {
        mass_[k] = tree_->masses()[k];
        if (counts_.exist()) mass_f_[k] = static_cast<float>(mass_[k]);
        if (s_.size() <= kFewSlots) return;
        if (SKIHMM_UNLIKELY(changed_.size() > kMostChanged)) {
            for (Place &place : places_) place.is_known = false;
            changed_.clear();
        }
        changed_.push(k);
    }
    SKIHMM_INLINE Place &known_place() {
        if (s_.size() <= kFewSlots) {
            fill_place(&places_[0]);
            return places_[0];
        }
        Place &place = places_[offsets_[next_.depth] + next_.prefix];
        if (SKIHMM_UNLIKELY(!place.is_known
                            || changed_.size() - place.n_seen > s_.size() / 2))
            fill_place(&place);
        for (; place.n_seen < changed_.size(); ++place.n_seen)
            follow_change(&place, changed_[place.n_seen]);
        return place;
    }
    SKIHMM_NOINLINE void fill_place(Place *place) {
        const size_t n = s_.size();
        place->values.resize(n * (depth_ + 1));
        double *values = place->values.data();
        const double *before = h_;
        for (int32_t d = next_.depth; d >= own_depth_; --d) {
            const double *by = tree_->inverse(d, prefixes_[d]);
            const double a = d < next_.depth ? alphas_[d + 1] : 1.0;
            double *w = values + d * n;
            for (size_t k = 0; k < n; ++k) w[k] = before[k] * a * by[k];
            before = w;
        }
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        for (size_t k = 0; k < n; ++k) sum[k % 4] += values[k] = before[k] * mass_[k];
        place->total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        place->n_seen = changed_.size();
        place->is_known = true;
    }
    double fill_label(Place *place, int32_t k) {
        double *values = place->values.data(), w = h_[k];
        for (int32_t d = next_.depth; d >= own_depth_; --d) {
            if (d < next_.depth) w *= alphas_[d + 1];
            w *= tree_->inverse(d, prefixes_[d])[k];
            values[d * s_.size() + k] = w;
        }
        return values[k] = w * mass_[k];
    }
    void follow_change(Place *place, int32_t k) {
        const double before = place->values[k];
        place->total += fill_label(place, k) - before;
        if (SKIHMM_UNLIKELY(place->total < kCancelled * before)) {
            place->total = 0.0;
            for (int32_t j = 0; j < n_slots_; ++j) place->total += place->values[j];
        }
    }
    SKIHMM_NOINLINE void sum_smooth() {
        place_->total = smooth_sum_ = 0.0;
        for (int32_t k = 0; k < n_slots_; ++k) {
            place_->total += place_->values[k];
            if (!is_apart(k)) smooth_sum_ += place_->values[k];
        }
    }

    // Of the first restaurant of a context: the customers of all dishes, as doubles.
    double *shared_by(int32_t v) { return &shared_[v * s_.size()]; }
    // After the dense counts, if there are any.
    void count_shared(int32_t v, int32_t k) {
        shared_by(v)[k] = counts_.exist() ? counts_.row(1, v, 0)[k] : tree_->count(1, v, k);
    }
    // Of a label other than those apart: weights of the draw by restaurants that all share, without
    // F, and the part of that in which o follows by the base.
    SKIHMM_INLINE double opening_part(int32_t k, double near) const {
        const double part = g_ * mass_[k] * (o_[k] + ab_opened_ * near);
        if (SKIHMM_LIKELY(!is_context_first_)) return part;
        return part + w_[1] * above_[k] * (o_[k] + ab_joined_ * near);
    }
    double smooth_part(int32_t k) const {
        return part(own_depth_)[k]
               * (g_ * ab_opened_ * mass_[k] + w_[1] * ab_joined_ * above_[k]);
    }

    // ---- labels apart

    double symbol_weight(int32_t k) const {
        // Ids are distinct, so the compiler may compare many at once.
        int32_t count = 0;
        for (int32_t at = 0; at < column_->size; ++at)
            count += column_->ids[at] == k ? column_->counts[at] : 0;
        return dish_weight<double>(count, d_);
    }
    SKIHMM_INLINE void weigh_first() {
        const Step &step = *step_;
        if (SKIHMM_UNLIKELY(first == kNew)) {
            first_stays = 0.0;
            first_q = d_ * g_ * mass_[kNew] * ab_opened_ * part(own_depth_)[kNew];
            return;
        }
        const double by_symbol = dish_weight<double>(e_in_, d_) * h_x_;
        const LiftedLevel *levels = step.path_in.levels.data();
        double joined = 0.0;
        for (int32_t d = 1 + is_context_first_; d < at_.depth; ++d)
            joined += w_[d] * levels[d].customer.n;
        first_stays = by_symbol * step.p_out * w_[at_.depth] * levels[at_.depth].customer.n;
        double others = joined * step.p_out
                        + g_ * step.mass_x * (after_ ? step.p_out_opened : step.p_out);
        if (SKIHMM_UNLIKELY(is_context_first_))
            others += w_[1] * levels[1].customer.n
                      * (after_ ? step.p_out_after(at_.depth - 1) : step.p_out);
        first_q = first_stays + by_symbol * others;
    }
    // i, in whose restaurants the draw is; own_ and following_ have its customers.
    SKIHMM_INLINE void weigh_i(double f) {
        const bool is_o = i_ == o_label_;
        const double table = g_ * (is_o ? step_->mass_o : mass_[i_]);
        i_stays_ = 0.0;
        i_q_ = f * table * follower(1, true);
        if (!is_owned_) return;
        for (int32_t d = 1; d <= at_.depth; ++d) {
            if (own_[d] == 0) continue;
            const double joins = f * w_[d] * own_[d] * follower(d, false);
            i_q_ += joins;
            if (d == at_.depth) i_stays_ = joins;
        }
    }
    // p(o | i), if the draw counts when a customer of dish i has come to the restaurants of i from
    // depth `lowest` to its leaf, and perhaps a table to the top.
    double opened_own() const {
        return is_context_first_ ? opened_own_ : ab_own_ / alphas_[1];
    }
    double follower(int32_t lowest, bool opened) const {
        const bool is_o = i_ == o_label_;
        double p = !opened || !after_ ? base_ : is_o ? opened_own() : opened_;
        for (int32_t d = 1; d <= next_.depth; ++d) {
            const int32_t v = tree_->shape.row(d, i_, prefixes_[d]);
            const bool is_shared = d <= at_.depth && v == step_->path_in.levels[d].row;
            const bool came = after_ && is_shared && d >= lowest;
            const double n = (is_followed_ ? following_[d] : 0) + (came && is_o);
            const double inverse = is_shared ? step_->path_in.levels[d].inverse
                                   : d < tree_->first_own() ? step_->path_out.levels[d].inverse
                                                            : tree_->inverse(d, prefixes_[d])[i_];
            p = dish_weight(n, alphas_[d] * p) * (came ? inverse / (1.0 + inverse) : inverse);
        }
        return p;
    }

    const ContextTree *tree_ = nullptr;
    const double *h_ = nullptr;
    bool after_ = false, is_context_first_ = false;
    int32_t n_slots_ = 0, depth_ = 0;
    int32_t own_depth_ = 1;                         // the first of labels' restaurants
    std::vector<double> alphas_;                    // by depth
    std::vector<int32_t> offsets_;                  // of the places of a depth
    std::vector<Place> places_;
    Stack<int32_t> changed_;                        // labels, since all places were forgotten
    WideVector<double> mass_;                       // by label
    WideVector<double> shared_;                     // by first restaurant of contexts, by label
    // Rough sums: counts, and the above in floats.
    DenseCounts counts_;
    WideVector<float> h_f_, mass_f_, q_f_, ones_f_;
    bool is_rough_ = false;                         // of this step
    // this step
    const Step *step_ = nullptr;
    const SymbolColumn *column_ = nullptr;
    ContextPlace at_, next_;
    Place *place_ = nullptr;
    int32_t i_ = 0, x_ = 0, o_label_ = 0;
    double d_ = 1.0, g_ = 0.0;
    // Of o at the top: now, and if the draw opens a table there, of another label and of o.
    double base_ = 0.0, opened_ = 0.0, opened_own_ = 0.0;
    // a_1 times these, or context first the laws of the restaurant below, which exact sums have
    // times a_2; there also if the draw has come to that one.
    double ab_ = 0.0, ab_opened_ = 0.0, ab_own_ = 0.0, ab_joined_ = 0.0, ab_own_joined_ = 0.0;
    int32_t e_in_ = 0;
    double h_x_ = 0.0;
    bool is_owned_ = false, is_followed_ = false;           // whether i is in own_, o in following_
    double symbol_sum_ = 0.0, row_sum_ = 0.0, column_sum_ = 0.0, smooth_sum_ = 0.0;
    double i_q_ = 0.0, i_stays_ = 0.0, o_q_ = 0.0;
    std::vector<int32_t> prefixes_, own_, following_;       // by depth
    std::vector<double> w_, saved_;
    double saved_mass_ = 0.0, saved_above_ = 0.0;
    double *above_ = nullptr;                       // of shared_, in which the draw is
    WideVector<double> s_, o_;                      // zero between steps
};

}  // namespace skihmm
