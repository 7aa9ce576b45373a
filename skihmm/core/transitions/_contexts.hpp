// Transitions that depend on a context: restaurants in a tree of any depth.
//
// A step has a context, a path of columns u_1 .. u_C, and the label after j is drawn in a leaf of
// the tree (_tree.hpp), whose root, the top, is the root of the law.  A restaurant of depth d
// belongs to the first columns of a context and, below the first `n_before` columns, to the label
// before:
//
//     state first, n_before = 0:       j | j, u_1 | j, u_1, u_2 | ...
//     context first, n_before = 1:     u_1 | u_1, j | u_1, j, u_2 | ...
//
// A step whose context is missing from some column on is drawn in the restaurant of the columns
// before.  (With fewer columns than `n_before`, that would be the top.  Such a step has a
// restaurant of depth 1 of its own, which is the same law.)  An unseen context has an empty
// restaurant, whose law is its parent's.
//
// Sums over labels are taken apart as in _transitions.hpp:
//
//     p(k | j) = sum_d w_d(j) n_d(j, k) + rest(j) base(k),
//
// with the sparse counts n_d of the depths that depend on j, and the base that all j share: the law
// of the restaurant above these depths.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "_slots.hpp"
#include "_tree.hpp"

namespace skihmm {

class ContextTree : public Tree<InfiniteRoot> {
  public:
    ContextTree(InfiniteRoot *root, const ContextShape &tree)
        : Tree(root, tree, true), offsets_(shape.depth() + 1), weights_(shape.depth() + 1) {}

    // ---- places

    void set_places(std::vector<ContextPlace> places) { places_ = std::move(places); }
    const std::vector<ContextPlace> &places() const { return places_; }
    // The place of a step; for t without contexts that without a context.
    ContextPlace place(int64_t t) const {
        if (t >= 0 && t < static_cast<int64_t>(places_.size())) return places_[t];
        return {shape.has_state(1), 0};
    }

    SKIHMM_INLINE double alpha(int32_t d) const { return level(d).alpha; }
    void set_alpha(int32_t d, double value) {
        is_fresh_ = false;
        level(d).set_alpha(value);
    }

    // ---- size, moves

    void resize(int32_t n_labels, int32_t n_dishes) {
        is_fresh_ = false;
        Tree::resize(n_labels, n_dishes);
    }
    void load(const std::vector<SeatingRecord> &records, int32_t n_slots) {
        is_fresh_ = false;
        Tree::load(records, n_slots, n_slots);
    }
    void clear() {
        Tree::clear();
        is_fresh_ = false;
    }
    void commit() {
        Tree::commit();
        end_move();
    }
    void rollback() {
        Tree::rollback();
        n_refreshed_ = 0;  // planted: sizes after a rejection
        end_move();
    }
    int64_t count_deep_tables() const {
        int64_t n = 0;
        for (int32_t d = 2; d <= shape.depth(); ++d) n += level(d).count_tables();
        return n;
    }
    size_t n_bytes() const {
        size_t n = Tree::n_bytes() + places_.capacity() * sizeof(ContextPlace);
        for (const Sizes &sizes : sizes_) n += 16 * sizes.inverse.capacity();
        return n + shared_.capacity() * sizeof(double);
    }

    // visit(d, j, prefix, k, n) for the n customers of dish k in every restaurant.
    template <class Visit> void visit_cells(Visit visit) const {
        for (int32_t d = 1; d <= shape.depth(); ++d) {
            const int32_t stride = shape.stride(d);
            const int64_t n = shape.n_rows(d, n_slots());
            for (int32_t v = 0; v < n; ++v)
                for_line(row_line(d, v), [&](int32_t k, int32_t n_k) {
                    visit(d, v / stride, v % stride, k, n_k);
                });
        }
    }

    // log of the probability of the draws of all steps, by the counts.  Customers of a restaurant
    // are the draws in it and the tables of its children.
    double log_prob_of_draws() const {
        double lp = 0.0;
        for (int32_t d = 1; d <= shape.depth(); ++d) {
            const SeatingRecord cells = level(d).record();
            for (size_t i = 0; i < cells.rows.size(); ++i) {
                const int32_t v = cells.rows[i], k = cells.dishes[i];
                lp += cells.n_customers[i] * std::log(level(d).prob(v, k));
                if (d == 1) continue;
                const int32_t above = shape.row_above(d, v);
                lp -= cells.n_tables[i] * std::log(level(d - 1).prob(above, k));
            }
        }
        return lp;
    }

    // ---- the draw of k after label j

    double add(ContextPlace at, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        touch(at, j, k);
        return Tree::add(at, j, k, g, hint);
    }
    void add_at(ContextPlace at, int32_t j, int32_t k, int32_t n_opened, bitgen_t *g,
                int32_t *hint) {
        touch(at, j, k);
        level(at.depth).add_at(leaf(at, j), k, n_opened, g, hint);
    }
    double remove(ContextPlace at, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        touch(at, j, k);
        return Tree::remove(at, j, k, g, hint);
    }
    // For steps with complete contexts.
    void prefetch_cell(int32_t hint) const { level(shape.depth()).prefetch_cell(hint); }
    void prefetch_lists(int32_t hint) const { level(shape.depth()).prefetch_lists(hint); }

    // Customers and concentration of the restaurant in which the draw is made, and the probability
    // that k joins a table there.
    using Tree::total;
    double total(ContextPlace at, int32_t j) const {
        if (at.depth == 0) return total_of_top();
        return total(at.depth, leaf(at, j));
    }
    double join_prob(ContextPlace at, int32_t j, int32_t k) const {
        if (at.depth == 0) return 0.0;
        return count(at.depth, leaf(at, j), k) / total(at, j);
    }

    // ---- passes over all labels; see _transitions.hpp

    void fill_row(ContextPlace at, int32_t j, double *out) const {
        fill_base(at, out);
        const double rest = split(at, j);
        for (int32_t k = 0; k < n_slots(); ++k) out[k] *= rest;
        for (int32_t d = state_depth(); d <= at.depth; ++d)
            for_line(row_line(d, row(d, j)), [&](int32_t k, int32_t n) {
                out[k] += weights_[d] * n;
            });
    }
    void push(ContextPlace at, const double *f, double *out) const {
        const int32_t n = n_slots();
        base_.resize(n);
        fill_base(at, base_.data());
        rest_.resize(n);
        fill_rest(at, rest_.data());
        std::fill_n(out, n, 0.0);
        double smooth = 0.0;
        for (int32_t j = 0; j < n; ++j) smooth += f[j] * rest_[j];
        for (int32_t d = state_depth(); d <= at.depth; ++d) {
            for (int32_t j = 0; j < n; ++j) {
                if (f[j] == 0.0) continue;
                const double share = f[j] * weight_of(at, d, j);
                for_line(row_line(d, row(d, j)), [&](int32_t k, int32_t n_dk) {
                    out[k] += share * n_dk;
                });
            }
        }
        for (int32_t k = 0; k < n; ++k) out[k] += smooth * base_[k];
    }
    void pull(ContextPlace at, const double *values, double *out) const {
        const int32_t n = n_slots();
        base_.resize(n);
        fill_base(at, base_.data());
        fill_rest(at, out);
        double smooth = 0.0;
        for (int32_t k = 0; k < n; ++k) smooth += base_[k] * values[k];
        for (int32_t j = 0; j < n; ++j) out[j] *= smooth;
        for (int32_t d = state_depth(); d <= at.depth; ++d) {
            for (int32_t j = 0; j < n; ++j) {
                double sum = 0.0;
                for_line(row_line(d, row(d, j)), [&](int32_t k, int32_t n_dk) {
                    sum += n_dk * values[k];
                });
                out[j] += weight_of(at, d, j) * sum;
            }
        }
    }
    // Where a restaurant has customers its parent has some too.  So the maximum is over the label
    // with the largest smooth part and over those in whose first restaurant k is.
    void push_max(ContextPlace at, const double *f, double *out, int32_t *argmax_out) const {
        const int32_t n = n_slots();
        base_.resize(n);
        fill_base(at, base_.data());
        rest_.resize(n);
        fill_rest(at, rest_.data());
        int32_t best = kNew;
        double largest = -1.0;
        for (int32_t j = 0; j < n; ++j) {
            const double share = f[j] * rest_[j];
            if (share > largest) {
                largest = share;
                best = j;
            }
        }
        for (int32_t k = 0; k < n; ++k) {
            out[k] = largest * base_[k];
            argmax_out[k] = best;
        }
        const int32_t first = state_depth();
        for (int32_t j = 0; first <= at.depth && j < n; ++j) {
            if (f[j] == 0.0) continue;
            for_line(row_line(first, row(first, j)), [&](int32_t k, int32_t) {
                const double value = f[j] * prob(at, j, k);
                if (!(value > out[k])) return;
                out[k] = value;
                argmax_out[k] = j;
            });
        }
    }
    // out[j] = p(k | j) for every label j before.
    void fill_column(ContextPlace at, int32_t k, double *out) const {
        const double base = base_of(at, k);
        fill_rest(at, out);
        for (int32_t j = 0; j < n_slots(); ++j) out[j] *= base;
        for_column(at, k, [&](int32_t d, int32_t j, int32_t n) {
            out[j] += weight_of(at, d, j) * n;
        });
    }

    // ---- one step between i, at one place, and o, at the next; the customers have been removed

    // p(k by a draw that joins a table, o | i).
    double joining_part(ContextPlace at, ContextPlace next, int32_t i, int32_t k,
                        int32_t o) const {
        set_parts(at, next, i, k, o);
        return parts_[0];
    }
    // The number of tables that the draw of k opens, given whether it is 0 and the next label o,
    // which follows k with probability `stay` without a draw.
    int32_t draw_opened(ContextPlace at, ContextPlace next, int32_t i, int32_t k, int32_t o,
                        bool opens, bitgen_t *g, double stay = 0.0) const {
        if (!opens) return 0;
        if (at.depth == 1) return 1;
        set_parts(at, next, i, k, o, stay);  // planted: parts of restaurants
        double sum = 0.0;
        for (int32_t h = 1; h <= at.depth; ++h) sum += parts_[h];  // planted: sum of parts
        double u = uniform(g) * sum;  // planted: number of a restaurant
        int32_t chosen = at.depth;
        for (int32_t h = 1; h <= at.depth; ++h) {
            if (!(parts_[h] > 0.0)) continue;
            chosen = h;
            if ((u -= parts_[h]) < 0.0) break;
        }
        return chosen;
    }

    // ---- parts, for kernels that put passes together themselves

    // The prefixes of a place's restaurants by depth.
    void fill_prefixes(ContextPlace at, int32_t *out) const { shape.fill_prefixes(at, out); }
    int32_t padded() const { return padded_; }
    // Update the arrays below for all labels of one depth and prefix.
    void refresh() const {
        if (SKIHMM_UNLIKELY(!is_fresh_)) rebuild();
        for (; n_refreshed_ < touched_.size(); ++n_refreshed_)
            refresh_draw(touched_[n_refreshed_]);
    }
    const double *masses() const { return mass_.data(); }
    const double *inverse(int32_t d, int32_t prefix) const {
        return &sizes_[d].inverse[static_cast<size_t>(prefix) * padded_];
    }
    // Customers by label of the restaurant that all labels before share, if there is one.
    const double *shared_counts(int32_t prefix) const {
        return &shared_[static_cast<size_t>(prefix) * padded_];
    }
    const float *sizes(int32_t d, int32_t prefix) const {
        return &sizes_[d].sizes[static_cast<size_t>(prefix) * padded_];
    }
    const float *inverse_f(int32_t d, int32_t prefix) const {
        return &sizes_[d].inverse_f[static_cast<size_t>(prefix) * padded_];
    }
    const Line &row_line(int32_t d, int32_t v) const { return level(d).rows[v]; }
    // visit(k, n) for the n customers of dish k in the leaf of label j.
    template <class Visit> void visit_leaf(ContextPlace at, int32_t j, Visit visit) const {
        if (at.depth) for_line(row_line(at.depth, leaf(at, j)), visit);
    }
    // Labels before, in the restaurants of one prefix (where the depth has labels).
    const Line &column_line(int32_t d, int32_t k, int32_t prefix) const {
        return level(d).columns[static_cast<size_t>(k) * shape.stride(d) + prefix];
    }
    int32_t leaf_count(ContextPlace at, int32_t j, int32_t k, int32_t hint) const {
        return at.depth ? level(at.depth).count(leaf(at, j), k, hint) : 0;
    }
    // Customers of dish k in the restaurants of j: counts[d] by depth, from a place's on.
    void fill_counts(ContextPlace at, int32_t j, int32_t k, int32_t *hint,
                     int32_t *counts) const {
        if (at.depth) level(at.depth).count_path(at.depth, leaf(at, j), k, hint, counts);
    }
    template <class Visit> static void for_line(const Line &line, Visit visit) {
        for (int32_t i = 0; i < line.size; ++i)
            if (line.counts[i]) visit(line.ids[i], line.counts[i]);
    }
    // rest(j) of all labels.
    void fill_rest(ContextPlace at, double *out) const {
        refresh();
        follow(at);
        std::fill_n(out, n_slots(), 1.0);
        for (int32_t d = state_depth(); d <= at.depth; ++d)
            scale_by(n_slots(), alpha(d), inverse(d, offsets_[d]), out);
    }
    SKIHMM_CLONES static void scale_by(int32_t n, double a, const double *by, double *out) {
        for (int32_t j = 0; j < n; ++j) out[j] *= a * by[j];
    }
    // base(k) of all labels, 0 for labels that kNew stands for.
    void fill_base(ContextPlace at, double *out) const {
        follow(at);
        const double c = 1.0 / total_of_top();
        for (int32_t k = 0; k < n_slots(); ++k) out[k] = c * root_->dish_tables[k];
        out[kNew] = c * root_->gamma;
        if (at.depth == 0 || shape.n_before == 0) return;
        refresh();
        const double by = 1.0 / total(1, row(1, 0)), smooth = alpha(1) * by;
        const double *shared = shared_counts(offsets_[1]);
        for (int32_t k = 0; k < n_slots(); ++k) out[k] = out[k] * smooth + by * shared[k];
    }
    // The base of one label; `prefixes` of a place, by depth.
    double base_of(int32_t depth, const int32_t *prefixes, int32_t k) const {
        double p = prob_at(*root_, k);
        for (int32_t d = 1; d <= std::min(depth, shape.n_before); ++d) {
            const int32_t v = shape.row(d, 0, prefixes[d]), n = k == kNew ? 0 : count(d, v, k);
            p = dish_weight<double>(n, alpha(d) * p) / total(d, v);
        }
        return p;
    }
    // For a draw in restaurants `rows` by depth, before the draw of o in the restaurants of the
    // prefixes `next`: bases[h] is the base of o when a dish other than o has come with h new
    // tables at the lowest depths; h = depth is a table at the top.  If not `after`, before it has
    // come. shared[d] are the customers of o in the restaurants above the states.  Returns whether
    // all bases but the last are the same.
    bool fill_bases(const int32_t *rows, int32_t depth, const int32_t *next, int32_t next_depth,
                    int32_t o, bool after, int32_t *shared, double *bases) const {
        const InfiniteRoot &root = *root_;
        const int32_t n_shared = std::min(next_depth, shape.n_before);
        const double mass = root.mass_of(root.dish_tables[o]);
        bool is_one = true;
        for (int32_t d = 1; d <= n_shared; ++d) shared[d] = count(d, shape.row(d, 0, next[d]), o);
        for (int32_t h = 0; h <= depth; ++h) {
            const int32_t opened = after && h == depth;
            if (n_shared == 0 && h > 0 && !opened) {
                bases[h] = bases[0];
                continue;
            }
            double p = mass / total_weight(root.n_tables + opened, root.gamma);
            for (int32_t d = 1; d <= n_shared; ++d) {
                const int32_t v = shape.row(d, 0, next[d]);
                // planted: customer of a shared restaurant
                const int32_t came = after && d >= depth - h && d <= depth && rows[d] == v;
                p = dish_weight<double>(shared[d], alpha(d) * p) / total(d, v, came);
            }
            bases[h] = p;
            if (h < depth) is_one &= p == bases[0];
        }
        return is_one;
    }
    // p(o | k) when a customer of dish k has come to the restaurants `rows` from depth `lowest` to
    // the leaf, and perhaps a table to the top; counts[d] are the customers of o after k.
    double follower(const int32_t *rows, int32_t depth, const int32_t *next, int32_t next_depth,
                    const int32_t *counts, int32_t k, int32_t o, int32_t lowest,
                    bool opened) const {
        const InfiniteRoot &root = *root_;
        double p = root.mass_of(root.dish_tables[o] + (opened && k == o))
                   / total_weight(root.n_tables + opened, root.gamma);
        for (int32_t d = 1; d <= next_depth; ++d) {
            const int32_t v = shape.row(d, k, next[d]);
            // planted: customer of a middle restaurant
            const int32_t came = d >= lowest && d <= depth && v == rows[d];
            const double n = counts[d] + (came && k == o);
            p = dish_weight(n, alpha(d) * p) / total(d, v, came);
        }
        return p;
    }

  private:
    int32_t n_slots() const { return static_cast<int32_t>(root_->dish_tables.size()); }
    double total_of_top() const { return total_weight(root_->n_tables, root_->gamma); }

    // The prefixes, for `row`.
    void follow(ContextPlace at) const { fill_prefixes(at, offsets_.data()); }
    int32_t row(int32_t d, int32_t j) const { return shape.row(d, j, offsets_[d]); }
    // For label j, after `follow`: weights_[d] of the counts; returns the weight of the base.
    double split(ContextPlace at, int32_t j) const {
        double rest = 1.0;
        for (int32_t d = at.depth; d >= state_depth(); --d) {
            weights_[d] = rest / total(d, row(d, j));
            rest = weights_[d] * alpha(d);
        }
        return rest;
    }
    // The weight of the counts of depth d, after `follow` and `refresh`.
    double weight_of(ContextPlace at, int32_t d, int32_t j) const {
        double c = inverse(d, offsets_[d])[j];
        for (int32_t e = d + 1; e <= at.depth; ++e) c *= alpha(e) * inverse(e, offsets_[e])[j];
        return c;
    }

    // n_v + a of all restaurants of a depth, by prefix and label.  Changes by a move are brought up
    // to date before the next pass.
    struct Sizes {
        WideVector<double> inverse;
        WideVector<float> sizes, inverse_f;
    };
    struct Draw {
        int32_t depth, prefix, j, k;
    };
    void touch(ContextPlace at, int32_t j, int32_t k) {
        touched_.push({at.depth, at.prefix, j, k});
    }
    // End of a move.
    void end_move() {
        if (is_fresh_) refresh();
        touched_.clear();
        n_refreshed_ = 0;
    }
    SKIHMM_NOINLINE void rebuild() const {
        padded_ = (n_slots() + kLanes - 1) / kLanes * kLanes;
        mass_.assign(padded_, 0.0);
        for (int32_t k = 0; k < n_slots(); ++k) mass_[k] = root_->dish_tables[k];
        mass_[kNew] = root_->gamma;
        const int32_t n_shared = shape.n_before ? shape.stride(1) : 0;
        shared_.assign(static_cast<size_t>(n_shared) * padded_, 0.0);
        for (int32_t v = 0; v < n_shared; ++v)
            for_line(row_line(1, v), [&](int32_t k, int32_t n) {
                shared_[static_cast<size_t>(v) * padded_ + k] = n;
            });
        sizes_.resize(shape.depth() + 1);
        for (int32_t d = state_depth(); d <= shape.depth(); ++d) {
            const size_t n = static_cast<size_t>(shape.stride(d)) * padded_;
            const double a = alpha(d);
            sizes_[d].inverse.assign(n, 1.0 / a);
            sizes_[d].sizes.assign(n, static_cast<float>(a));
            sizes_[d].inverse_f.assign(n, static_cast<float>(1.0 / a));
            const std::vector<int32_t> &customers = level(d).row_customers;
            for (size_t v = 0; v < customers.size(); ++v)
                if (customers[v]) set_size(d, v % shape.stride(d), v / shape.stride(d));
        }
        n_refreshed_ = touched_.size();
        is_fresh_ = true;
    }
    void set_size(int32_t d, int32_t prefix, int32_t j) const {
        const double size = total(d, shape.row(d, j, prefix)), by = 1.0 / size;
        const size_t at = static_cast<size_t>(prefix) * padded_ + j;
        sizes_[d].inverse[at] = by;
        sizes_[d].sizes[at] = static_cast<float>(size);
        sizes_[d].inverse_f[at] = static_cast<float>(by);
    }
    void refresh_draw(const Draw &draw) const {
        if (draw.k != kNew) mass_[draw.k] = root_->dish_tables[draw.k];
        int32_t prefix = draw.prefix;
        for (int32_t d = draw.depth; d >= state_depth(); --d) {
            set_size(d, prefix, draw.j);
            if (d > 1) prefix = shape.prefix_above(d, prefix);
        }
        if (shape.n_before > 0 && draw.depth > 0)
            // planted: counts of a shared restaurant
            shared_[static_cast<size_t>(prefix) * padded_ + draw.k] = count(1, prefix, draw.k);
    }
    // visit(d, j, n) for the n > 0 customers of dish k in the restaurants of every label before,
    // after `follow`.
    template <class Visit> void for_column(ContextPlace at, int32_t k, Visit visit) const {
        for (int32_t d = state_depth(); d <= at.depth; ++d)
            for_line(column_line(d, k, offsets_[d]),
                     [&](int32_t j, int32_t n_k) { visit(d, j, n_k); });
    }
    // base(k).
    double base_of(ContextPlace at, int32_t k) const {
        follow(at);
        return base_of(at.depth, offsets_.data(), k);
    }
    // parts_[h] = p(k and h new tables, o | i): the h lowest restaurants get a table each; the
    // table of the highest is a customer of an existing table in the restaurant above or of the
    // top.
    void set_parts(ContextPlace at, ContextPlace next, int32_t i, int32_t k, int32_t o,
                   double stay = 0.0) const {
        follow(at);
        trail_.resize(shape.depth() + 1);
        parts_.resize(at.depth + 1);
        for (int32_t d = 1; d <= at.depth; ++d) trail_[d] = row(d, i);
        follow(next);
        following_.resize(shape.depth() + 1);
        for (int32_t d = 1; o >= 0 && d <= next.depth; ++d)
            following_[d] = count(d, row(d, k), o);
        double share = 1.0;
        for (int32_t h = 0; h < at.depth; ++h) {
            const int32_t d = at.depth - h, n = count(d, trail_[d], k);
            const double c = share / total(d, trail_[d]);
            parts_[h] = n > 0 ? c * n * after(stay, prob_of_next(at, next, k, o, d, false)) : 0.0;
            share = c * alpha(d);
        }
        parts_[at.depth] = share * prob_at(*root_, k)
                           * after(stay, prob_of_next(at, next, k, o, 1, true));
    }
    static double after(double stay, double p) { return stay + (1.0 - stay) * p; }
    // p(o given k), after set_parts(); 1 without a successor.
    double prob_of_next(ContextPlace at, ContextPlace next, int32_t k, int32_t o, int32_t lowest,
                        bool opened) const {
        if (o < 0) return 1.0;
        return follower(trail_.data(), at.depth, offsets_.data(), next.depth, following_.data(),
                        k, o, lowest, opened);
    }

    static constexpr int32_t kLanes = 16;

    std::vector<ContextPlace> places_;                      // by step
    Stack<Draw> touched_;                   // in this move, whose sizes may have changed
    mutable size_t n_refreshed_ = 0;        // of touched_
    mutable bool is_fresh_ = false;
    mutable int32_t padded_ = 0;
    mutable std::vector<Sizes> sizes_;      // by depth
    mutable WideVector<double> mass_;       // by label, padded: see counted_mass
    mutable WideVector<double> shared_;     // by prefix of depth 1 and by label, the same
    // Scratch, by depth or by label.
    mutable std::vector<int32_t> offsets_, trail_, following_;
    mutable std::vector<double> weights_, base_, parts_, rest_;
};

}  // namespace skihmm
