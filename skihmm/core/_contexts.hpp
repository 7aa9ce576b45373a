// Transitions that depend on a context: restaurants in a tree of any depth.
//
// A step has a context, a path of columns u_1 .. u_C, and the label after j is drawn in a leaf
// of the tree.  The top is the root of the law's seating, which is the restaurants of depth 1;
// those of depth 2 and more are here.  A restaurant of depth d belongs to the first columns of a
// context and, below the first `n_before` of them, to the label before:
//
//     state first, n_before = 0:       j | j, u_1 | j, u_1, u_2 | ...
//     context first, n_before = 1:     u_1 | u_1, j | u_1, j, u_2 | ...
//
// Its dishes are drawn from its parent, the restaurant one depth above:  with n_v customers in
// restaurant v and concentration a of its depth
//
//     p(k | v) = (n_vk + a p(k | parent of v)) / (n_v + a),
//
// and every table in v is a customer of the parent.  A step whose context is missing from some
// column on is drawn in the restaurant of the columns before.  (If these are fewer than
// `n_before`, that would be the top.  Such a step has a restaurant of depth 1 of its own, which
// is the same law.)  A context that has not been seen has an empty restaurant, the law of which
// is its parent's.
//
// Sums over labels are taken apart as in _transitions.hpp:
//
//     p(k | j) = sum_d w_d(j) n_d(j, k) + rest(j) base(k),
//
// with the sparse counts n_d of the depths that depend on j, and the base that all j share: the
// law of the restaurant above those.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "_concentration.hpp"
#include "_record.hpp"
#include "_seating.hpp"
#include "_slots.hpp"

namespace skihmm {

// Base of a level of depth 2 or more: the level above, whose class depends on its depth.
template <class Root> class LevelAbove {
  public:
    using First = Seating<Root>;
    using Deep = Seating<LevelAbove>;
    static constexpr bool kIsRoot = false;
    static constexpr bool has_tables() { return true; }

    void set(First *first) { first_ = first; }
    void set(Deep *deep) { deep_ = deep; }  // planted: parent of a level
    double prob(int32_t row, int32_t dish) const {
        return first_ ? first_->prob(row, dish) : deep_->prob(row, dish);
    }
    double prob(int32_t row, int32_t dish, int32_t *hint) const {
        return first_ ? first_->prob(row, dish, hint) : deep_->prob(row, dish, hint);
    }
    double add(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) {
        return first_ ? first_->add(row, dish, g, hint) : deep_->add(row, dish, g, hint);
    }
    void add_at(int32_t row, int32_t dish, int32_t n_opened, bitgen_t *g, int32_t *hint) {
        if (first_) first_->add_at(row, dish, n_opened, g, hint);
        else deep_->add_at(row, dish, n_opened, g, hint);
    }
    void take(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) {
        if (first_) first_->take(row, dish, g, hint);
        else deep_->take(row, dish, g, hint);
    }
    int32_t count(int32_t row, int32_t dish) const {
        return first_ ? first_->count(row, dish) : deep_->count(row, dish);
    }
    void count_path(int32_t depth, int32_t row, int32_t dish, int32_t *hint,
                    int32_t *counts) const {
        if (first_) first_->count_path(depth, row, dish, hint, counts);
        else deep_->count_path(depth, row, dish, hint, counts);
    }
    void prefetch_cell(int32_t hint) const {
        if (first_) first_->prefetch_cell(hint);
        else deep_->prefetch_cell(hint);
    }
    void commit() {
        if (first_) first_->commit();
        else deep_->commit();
    }
    void rollback() {
        if (first_) first_->rollback();
        else deep_->rollback();
    }
    void clear() {
        if (first_) first_->clear();
        else deep_->clear();
    }
    double log_joint() const { return first_ ? first_->log_joint() : deep_->log_joint(); }
    size_t n_bytes() const { return first_ ? first_->n_bytes() : deep_->n_bytes(); }
    const char *check() const { return first_ ? first_->check() : deep_->check(); }

  private:
    First *first_ = nullptr;
    Deep *deep_ = nullptr;
};

using FirstLevel = Seating<InfiniteRoot>;
using DeepLevel = Seating<LevelAbove<InfiniteRoot>>;

// The contexts of some data: prefixes of n columns are numbered for every n, and parents[n - 1]
// has of each the number of its own prefix of n - 1 columns, which is 0 if that has no columns.
struct ContextShape {
    int32_t n_before = 0;
    std::vector<std::vector<int32_t>> parents;

    bool exists() const { return !parents.empty(); }
    int32_t n_columns() const { return static_cast<int32_t>(parents.size()); }
    // Depth of the leaves of complete contexts.
    int32_t depth() const { return n_columns() + 1; }
    bool has_state(int32_t depth) const { return depth > n_before; }
    int32_t n_prefixes(int32_t n_columns) const {
        return n_columns ? static_cast<int32_t>(parents[n_columns - 1].size()) : 1;
    }
    // Of the restaurants of a depth: the columns that they belong to, the number of prefixes,
    // that of restaurants for n labels, the restaurant of label j and a prefix.
    int32_t columns_of(int32_t depth) const { return has_state(depth) ? depth - 1 : depth; }
    int32_t stride(int32_t depth) const { return n_prefixes(columns_of(depth)); }
    int64_t n_rows(int32_t depth, int32_t n) const {
        return static_cast<int64_t>(stride(depth)) * (has_state(depth) ? n : 1);
    }
    int32_t row(int32_t depth, int32_t j, int32_t prefix) const {
        return has_state(depth) ? j * stride(depth) + prefix : prefix;
    }
    // The prefix to which the parents of a prefix's restaurants belong.
    int32_t prefix_above(int32_t depth, int32_t prefix) const {
        const int32_t n = columns_of(depth);
        return n == columns_of(depth - 1) ? prefix : parents[n - 1][prefix];
    }
    int32_t row_above(int32_t depth, int32_t row) const {
        const int32_t n = stride(depth), j = has_state(depth) ? row / n : 0;
        return this->row(depth - 1, j, prefix_above(depth, row % n));
    }
    // Refuse what is no tree.
    void check(const std::string &what) const {
        if (n_before < 0 || n_before > 1 || n_before > n_columns())
            refuse(what, std::to_string(n_before) + " columns before the state; expected 0 or 1");
        for (int32_t n = 1; n <= n_columns(); ++n) {
            if (parents[n - 1].size() > static_cast<size_t>(kMostCustomers))
                refuse(what, "too many contexts");
            for (const int32_t p : parents[n - 1])
                if (p < 0 || p >= n_prefixes(n - 1))
                    refuse(what, "a context has the parent " + std::to_string(p) + " of "
                                 + std::to_string(n_prefixes(n - 1)));
        }
    }
    bool operator==(const ContextShape &other) const {
        return n_before == other.n_before && parents == other.parents;
    }
};

// Where a step is drawn: the depth of its leaf, 0 for the top, and the prefix of its context.
struct ContextPlace {
    int32_t depth = 0, prefix = 0;
};

class ContextTree {
  public:
    const ContextShape shape;

    // `first` is the level of depth 1, and outlives the tree.
    ContextTree(FirstLevel *first, ContextShape tree)
        : shape(std::move(tree)), first_(first), offsets_(shape.depth() + 1),
          weights_(shape.depth() + 1) {
        for (int32_t d = 2; d <= shape.depth(); ++d) {
            levels_.push_back(std::make_unique<DeepLevel>());
            if (d == 2) levels_.back()->base.set(first);
            else levels_.back()->base.set(levels_[d - 3].get());
        }
    }

    // ---- places

    void set_places(std::vector<ContextPlace> places) { places_ = std::move(places); }
    size_t n_places() const { return places_.size(); }
    // Of a step; of others that without a context.
    ContextPlace place(int64_t t) const {
        if (t >= 0 && t < static_cast<int64_t>(places_.size())) return places_[t];
        return {shape.n_before ? 0 : 1, 0};
    }

    // ---- concentrations: of depth 1, 2, ...

    SKIHMM_INLINE double alpha(int32_t d) const {
        return d == 1 ? first_->alpha : levels_[d - 2]->alpha;
    }
    void set_alpha(int32_t d, double value) {
        is_fresh_ = false;
        if (d == 1) first_->set_alpha(value);
        else levels_[d - 2]->set_alpha(value);
    }
    // Those of all depths but one, if that is not 0.
    void draw_concentrations(double prior_shape, double rate, int32_t but, bitgen_t *g) {
        for (int32_t d = 1; d <= shape.depth(); ++d) {
            if (d == but) continue;
            ConcentrationPosterior posterior(prior_shape, rate);
            if (d == 1) posterior.count_rows(*first_, g);
            else posterior.count_rows(*levels_[d - 2], g);
            set_alpha(d, posterior.draw(g));
        }
    }

    // ---- size, records

    // Of all depths but the first, which is the caller's.
    void resize(int32_t n_slots) {
        is_fresh_ = false;
        for (int32_t d = 2; d <= shape.depth(); ++d) {
            const int64_t n = shape.n_rows(d, n_slots);
            if (n > kMostCustomers) throw std::bad_alloc();
            std::vector<int32_t> parents(n);
            for (int32_t row = 0; row < n; ++row) parents[row] = shape.row_above(d, row);
            levels_[d - 2]->set_parents(std::move(parents), shape.stride(d));
            levels_[d - 2]->resize(static_cast<int32_t>(n), n_slots);
        }
    }
    void clear() {
        deepest().clear();
        is_fresh_ = false;
    }
    void commit() {
        deepest().commit();
        settle();
    }
    void rollback() {
        deepest().rollback();
        n_refreshed_ = 0;  // planted: sizes after a rejection
        settle();
    }
    double log_joint() const { return deepest().log_joint(); }
    int64_t count_deep_tables() const {
        int64_t n = 0;
        for (const auto &level : levels_) n += level->count_tables();
        return n;
    }
    size_t n_bytes() const {
        size_t n = deepest().n_bytes() + places_.capacity() * sizeof(ContextPlace);
        for (const Sizes &sizes : sizes_) n += 16 * sizes.inverse.capacity();
        n += shared_.capacity() * sizeof(double);
        return n;
    }
    const char *check() const { return deepest().check(); }
    // The record of a depth over slots, with other labels.
    SeatingRecord record(int32_t d, const std::vector<int32_t> &labels) const {
        const SeatingRecord own = d == 1 ? first_->record() : levels_[d - 2]->record();
        std::vector<int32_t> rows(shape.n_rows(d, static_cast<int32_t>(labels.size())));
        const int32_t n = shape.stride(d);
        for (size_t row = 0; row < rows.size(); ++row) {
            const int32_t label = shape.has_state(d) ? labels[row / n] : 0;
            rows[row] = shape.row(d, label, static_cast<int32_t>(row) % n);
        }
        return relabelled(own, rows, &labels);
    }
    // The other way round, for the states 0 .. n_states - 1 of a checked record; the start
    // restaurant is n_states.
    void load(int32_t d, SeatingRecord record, int32_t n_states, int32_t n_slots) {
        const int32_t n = shape.stride(d);
        if (shape.has_state(d)) {
            for (int32_t &row : record.rows) {
                const int32_t j = row / n == n_states ? kStart : kFirst + row / n;
                row = shape.row(d, j, row % n);
            }
        }
        for (int32_t &dish : record.dishes) dish += kFirst;
        is_fresh_ = false;
        const int32_t n_rows = static_cast<int32_t>(shape.n_rows(d, n_slots));
        if (d == 1) first_->load(record, n_rows, n_slots);
        else levels_[d - 2]->load(record, n_rows, n_slots);
    }
    // Refuse customers of a depth other than those of the steps, which follow the labels `before`
    // by a draw (label -1: they do not), and the tables of `below`, the record one depth deeper, if
    // there is one.
    void check_customers_of(int32_t d, const SeatingRecord &record, const SeatingRecord *below,
                            const std::vector<int32_t> &before,
                            const std::vector<int32_t> &labels, int32_t n_states,
                            const std::string &what) const {
        std::vector<int32_t> rows, dishes;
        for (size_t t = 0; t < labels.size(); ++t) {
            if (places_[t].depth != d || labels[t] < 0) continue;
            rows.push_back(shape.row(d, before[t], places_[t].prefix));
            dishes.push_back(labels[t]);
        }
        for (size_t i = 0; below && i < below->rows.size(); ++i) {
            rows.insert(rows.end(), below->n_tables[i], shape.row_above(d + 1, below->rows[i]));
            dishes.insert(dishes.end(), below->n_tables[i], below->dishes[i]);
        }
        check_customers(record, rows.data(), dishes.data(), 1,
                        static_cast<int64_t>(rows.size()),
                        static_cast<int32_t>(shape.n_rows(d, n_states + 1)), what);
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

    // ---- the draw of k after label j

    double add(ContextPlace at, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        touch(at, j, k);
        const int32_t row = leaf(at, j);
        return at.depth == 1 ? first_->add(row, k, g, hint)
                             : levels_[at.depth - 2]->add(row, k, g, hint);
    }
    void add_at(ContextPlace at, int32_t j, int32_t k, int32_t n_opened, bitgen_t *g,
                int32_t *hint) {
        touch(at, j, k);
        const int32_t row = leaf(at, j);
        if (at.depth == 1) first_->add_at(row, k, n_opened, g, hint);
        else levels_[at.depth - 2]->add_at(row, k, n_opened, g, hint);
    }
    double remove(ContextPlace at, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        touch(at, j, k);
        const int32_t row = leaf(at, j);
        return at.depth == 1 ? first_->remove(row, k, g, hint)
                             : levels_[at.depth - 2]->remove(row, k, g, hint);
    }

    size_t n_cells() const {
        size_t n = first_->n_cells();
        for (const auto &level : levels_) n += level->n_cells();
        return n;
    }
    // Of steps with complete contexts.
    void prefetch_cell(int32_t hint) const { deepest().prefetch_cell(hint); }
    void prefetch_lists(int32_t hint) const { deepest().prefetch_lists(hint); }
    double prob(ContextPlace at, int32_t j, int32_t k) const {
        if (at.depth == 0) return top(k);
        const int32_t row = leaf(at, j);
        return at.depth == 1 ? first_->prob(row, k) : levels_[at.depth - 2]->prob(row, k);
    }

    // Customers and concentration of the restaurant in which the draw is made, and the probability
    // that k joins a table there.
    double total(ContextPlace at, int32_t j) const {
        if (at.depth == 0) return total_weight(first_->base.n_tables, first_->base.gamma);
        return total(at.depth, leaf(at, j));
    }
    double join_prob(ContextPlace at, int32_t j, int32_t k) const {
        if (at.depth == 0) return 0.0;
        return count(at.depth, leaf(at, j), k) / total(at, j);
    }
    // Of one depth: the customers of every restaurant, the tables of all.
    const std::vector<int32_t> &customers(int32_t d) const {
        return d == 1 ? first_->row_customers : levels_[d - 2]->row_customers;
    }
    int64_t count_tables(int32_t d) const {
        return d == 1 ? first_->base.n_tables : levels_[d - 2]->count_tables();
    }

    // ---- passes over all labels; see _transitions.hpp

    void fill_row(ContextPlace at, int32_t j, double *out) const {
        fill_base(at, out);
        const double rest = split_one(at, j);
        for (int32_t k = 0; k < n_slots(); ++k) out[k] *= rest;
        for (int32_t d = first_own(); d <= at.depth; ++d)
            for_line(row_line(d, row(d, j)), [&](int32_t k, int32_t n) {
                out[k] += weights_[d] * n;
            });
    }
    // Of labels with f[j] <= least only the total is spread, in proportion to the base.
    void push(ContextPlace at, const double *f, double *out, double least) const {
        const int32_t n = n_slots();
        base_.resize(n);
        fill_base(at, base_.data());
        rest_.resize(n);
        fill_rest(at, rest_.data());
        std::fill_n(out, n, 0.0);
        double smooth = 0.0;
        for (int32_t j = 0; j < n; ++j) smooth += f[j] > least ? f[j] * rest_[j] : f[j];
        for (int32_t d = first_own(); d <= at.depth; ++d) {
            for (int32_t j = 0; j < n; ++j) {
                if (!(f[j] > least)) continue;
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
        for (int32_t d = first_own(); d <= at.depth; ++d) {
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
        const int32_t first = first_own();
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

    // Weights of a step for all labels as in _transitions.hpp, FranchiseTransitions::fill_step,
    // up to one factor.  `ghost`: o is served by no table.
    void fill_step(ContextPlace at, ContextPlace next, int32_t i, int32_t o, bool ghost,
                   bool after, double *weights, double *stays) const {
        const int32_t n = n_slots();
        if (!after || o < 0) {
            fill_row(at, i, weights);
            if (ghost) weights[o] = weights[kNew];
            std::fill_n(stays, n, 0.0);
            if (after && at.depth > 0) {
                // Nothing comes after that would depend on the tables opened.
                const int32_t v = leaf(at, i);
                const double by = 1.0 / total(at.depth, v);
                for_line(row_line(at.depth, v), [&](int32_t k, int32_t n_k) {
                    stays[k] = by * n_k;
                });
            } else if (o >= 0) {
                fill_column(next, o, stays);
                for (int32_t k = 0; k < n; ++k) weights[k] *= stays[k];
            }
            return;
        }
        fill_parts(at, next, i, o, weights, stays);
        // These are in the same restaurants as the draw before, and the table that it opens
        // serves o.
        for (const int32_t k : {i, o}) {
            if (k == kStart) continue;
            set_parts(at, next, i, k, o);
            const bool is_label = first_->base.dish_tables[k] > 0 || (ghost && k == o);
            stays[k] = is_label || k == kNew ? parts_[0] : 0.0;
            weights[k] = 0.0;
            if (is_label || k == kNew) for (const double part : parts_) weights[k] += part;
        }
        weights[kStart] = stays[kStart] = 0.0;
    }
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

    // The first depth that depends on the label before.
    int32_t first_own() const { return shape.n_before + 1; }
    // The prefixes of a place's restaurants by depth.
    void fill_prefixes(ContextPlace at, int32_t *out) const {
        int32_t prefix = at.prefix;
        for (int32_t d = at.depth; d >= 1; --d) {
            out[d] = prefix;
            if (d > 1) prefix = shape.prefix_above(d, prefix);
        }
    }
    int32_t padded() const { return padded_; }
    // Bring the arrays below up to date: of all labels, of those of one depth and prefix.
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
    const Line &row_line(int32_t d, int32_t v) const {
        return d == 1 ? first_->rows[v] : levels_[d - 2]->rows[v];
    }
    // Labels before, in the restaurants of one prefix (where the depth has labels).
    const Line &column_line(int32_t d, int32_t k, int32_t prefix) const {
        return d == 1 ? first_->columns[k]
                      : levels_[d - 2]->columns[static_cast<size_t>(k) * shape.stride(d) + prefix];
    }
    const InfiniteRoot &root() const { return first_->base; }
    double total(int32_t d, int32_t v, int32_t change = 0) const {
        return d == 1 ? first_->total(v, change) : levels_[d - 2]->total(v, change);
    }
    int32_t count(int32_t d, int32_t v, int32_t k) const {
        return d == 1 ? first_->count(v, k) : levels_[d - 2]->count(v, k);
    }
    int32_t leaf_count(ContextPlace at, int32_t j, int32_t k, int32_t hint) const {
        if (at.depth == 0) return 0;
        return at.depth == 1 ? first_->count(leaf(at, j), k, hint)
                             : levels_[at.depth - 2]->count(leaf(at, j), k, hint);
    }
    // Customers of dish k in the restaurants of j: counts[d] by depth, from a place's on.
    void fill_counts(ContextPlace at, int32_t j, int32_t k, int32_t *hint,
                     int32_t *counts) const {
        if (at.depth == 0) return;
        if (at.depth == 1) first_->count_path(1, leaf(at, j), k, hint, counts);
        else levels_[at.depth - 2]->count_path(at.depth, leaf(at, j), k, hint, counts);
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
        for (int32_t d = first_own(); d <= at.depth; ++d)
            scale_by(n_slots(), alpha(d), inverse(d, offsets_[d]), out);
    }
    SKIHMM_CLONES static void scale_by(int32_t n, double a, const double *by, double *out) {
        for (int32_t j = 0; j < n; ++j) out[j] *= a * by[j];
    }
    // base(k) of all labels, 0 of those for which kNew stands.
    void fill_base(ContextPlace at, double *out) const {
        follow(at);
        const double c = 1.0 / total_weight(first_->base.n_tables, first_->base.gamma);
        for (int32_t k = 0; k < n_slots(); ++k) out[k] = c * first_->base.dish_tables[k];
        out[kNew] = c * first_->base.gamma;
        if (at.depth == 0 || shape.n_before == 0) return;
        refresh();
        const double by = 1.0 / total(1, row(1, 0)), smooth = alpha(1) * by;
        const double *shared = shared_counts(offsets_[1]);
        for (int32_t k = 0; k < n_slots(); ++k) out[k] = out[k] * smooth + by * shared[k];
    }
    // Of one label; `prefixes` are those of a place, by depth.
    double base_of(int32_t depth, const int32_t *prefixes, int32_t k) const {
        double p = top(k);
        for (int32_t d = 1; d <= std::min(depth, shape.n_before); ++d) {
            const int32_t v = shape.row(d, 0, prefixes[d]), n = k == kNew ? 0 : count(d, v, k);
            p = dish_weight<double>(n, alpha(d) * p) / total(d, v);
        }
        return p;
    }
    // Of a draw in restaurants `rows` by depth, before the draw of o in those of the prefixes
    // `next`: bases[h] is the base of o when a dish other than o has come with h new tables at
    // the lowest depths; h = depth is a table at the top.  If not `after`, before it has come.
    // shared[d] are the customers of o in the restaurants above the states.  Returns whether all
    // bases but the last are the same.
    bool fill_bases(const int32_t *rows, int32_t depth, const int32_t *next, int32_t next_depth,
                    int32_t o, bool after, int32_t *shared, double *bases) const {
        const InfiniteRoot &root = first_->base;
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
    // the leaf, and perhaps a table to the top; counts[d] are those of o after k.
    double follower(const int32_t *rows, int32_t depth, const int32_t *next, int32_t next_depth,
                    const int32_t *counts, int32_t k, int32_t o, int32_t lowest,
                    bool opened) const {
        const InfiniteRoot &root = first_->base;
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
    // The law of the top, also of a label without tables.
    double top(int32_t k) const {
        return first_->mass(k) / total_weight(first_->base.n_tables, first_->base.gamma);
    }

  private:
    DeepLevel &deepest() { return *levels_.back(); }
    const DeepLevel &deepest() const { return *levels_.back(); }
    int32_t n_slots() const { return static_cast<int32_t>(first_->columns.size()); }
    int32_t leaf(ContextPlace at, int32_t j) const { return shape.row(at.depth, j, at.prefix); }

    // The prefixes, for `row`.
    void follow(ContextPlace at) const { fill_prefixes(at, offsets_.data()); }
    int32_t row(int32_t d, int32_t j) const { return shape.row(d, j, offsets_[d]); }
    // Of label j, after `follow`: weights_[d] of the counts; returns that of the base.
    double split_one(ContextPlace at, int32_t j) const {
        double rest = 1.0;
        for (int32_t d = at.depth; d >= first_own(); --d) {
            const double c = rest / total(d, row(d, j));
            weights_[d] = c;
            rest = c * alpha(d);
        }
        return rest;
    }
    // That of the counts of depth d, after `follow` and `refresh`.
    double weight_of(ContextPlace at, int32_t d, int32_t j) const {
        double c = inverse(d, offsets_[d])[j];
        for (int32_t e = d + 1; e <= at.depth; ++e) c *= alpha(e) * inverse(e, offsets_[e])[j];
        return c;
    }

    // n_v + a of all restaurants of a depth, by prefix and label.  What a move changes is brought
    // up to date before the next pass.
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
    void settle() {
        if (is_fresh_) refresh();
        touched_.clear();
        n_refreshed_ = 0;
    }
    SKIHMM_NOINLINE void rebuild() const {
        padded_ = (n_slots() + kLanes - 1) / kLanes * kLanes;
        mass_.assign(padded_, 0.0);
        for (int32_t k = 0; k < n_slots(); ++k) mass_[k] = first_->base.dish_tables[k];
        mass_[kNew] = first_->base.gamma;
        const int32_t n_shared = shape.n_before ? shape.stride(1) : 0;
        shared_.assign(static_cast<size_t>(n_shared) * padded_, 0.0);
        for (int32_t v = 0; v < n_shared; ++v)
            for_line(row_line(1, v), [&](int32_t k, int32_t n) {
                shared_[static_cast<size_t>(v) * padded_ + k] = n;
            });
        sizes_.resize(shape.depth() + 1);
        for (int32_t d = first_own(); d <= shape.depth(); ++d) {
            const size_t n = static_cast<size_t>(shape.stride(d)) * padded_;
            const double a = alpha(d);
            sizes_[d].inverse.assign(n, 1.0 / a);
            sizes_[d].sizes.assign(n, static_cast<float>(a));
            sizes_[d].inverse_f.assign(n, static_cast<float>(1.0 / a));
            const std::vector<int32_t> &customers =
                d == 1 ? first_->row_customers : levels_[d - 2]->row_customers;
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
        if (draw.k != kNew) mass_[draw.k] = first_->base.dish_tables[draw.k];
        int32_t prefix = draw.prefix;
        for (int32_t d = draw.depth; d >= first_own(); --d) {
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
        for (int32_t d = first_own(); d <= at.depth; ++d)
            for_line(column_line(d, k, offsets_[d]),
                     [&](int32_t j, int32_t n_k) { visit(d, j, n_k); });
    }
    // base(k).
    double base_of(ContextPlace at, int32_t k) const {
        follow(at);
        return base_of(at.depth, offsets_.data(), k);
    }
    // ---- a step after label i and the one after that, with label o or -1

    // weights[k] = p(k, o | i) and the parts that open no table, of all labels whose own
    // restaurants do not change by the draw: all but i and, because of the top, o.  The draw
    // changes the base of what follows if it comes to a restaurant above the states or to the
    // top: then o has there the probability bases_[h], h being the number of tables opened.
    void fill_parts(ContextPlace at, ContextPlace next, int32_t i, int32_t o, double *weights,
                    double *stays) const {
        const int32_t n = n_slots();
        base_.resize(n);
        sparse_.assign(n, 0.0);
        // Of what follows: sparse_ and rest times the base.
        rest_.resize(n);
        fill_rest(next, rest_.data());
        for_column(next, o, [&](int32_t d, int32_t j, int32_t n_o) {
            sparse_[j] += weight_of(next, d, j) * n_o;
        });
        trail_.resize(shape.depth() + 1);
        following_.resize(shape.depth() + 1);
        bases_.resize(at.depth + 1);
        follow(at);
        for (int32_t d = 1; d <= at.depth; ++d) trail_[d] = row(d, i);
        follow(next);
        fill_bases(trail_.data(), at.depth, offsets_.data(), next.depth, o, true,
                   following_.data(), bases_.data());
        const double *rest = rest_.data();
        // A table at the top.
        follow(at);
        const double share = split_to_top(at, i), b = bases_[at.depth];
        const double by = share / total_weight(first_->base.n_tables, first_->base.gamma);
        const int32_t *tables = first_->base.dish_tables.data();
        for (int32_t k = 0; k < n; ++k)
            weights[k] = by * tables[k] * (sparse_[k] + rest[k] * b);
        weights[kNew] = by * first_->base.gamma * (sparse_[kNew] + rest[kNew] * b);
        std::fill_n(stays, n, 0.0);
        // No table, or one or more below a table of depth d that is there.
        for (int32_t d = 1; d <= at.depth; ++d) {
            const double to = bases_[at.depth - d], c = weights_[d];
            for_line(row_line(d, row(d, i)), [&](int32_t k, int32_t n_k) {
                const double part = c * n_k * (sparse_[k] + rest[k] * to);
                weights[k] += part;
                if (d == at.depth) stays[k] = part;
            });
        }
    }
    // As split_one, down to the top.
    double split_to_top(ContextPlace at, int32_t i) const {
        double share = 1.0;
        for (int32_t d = at.depth; d >= 1; --d) {
            weights_[d] = share / total(d, row(d, i));
            share = weights_[d] * alpha(d);
        }
        return share;
    }
    // parts_[h] = p(k and that h tables are opened, o | i): the h lowest restaurants each get a
    // table, that of the last one is a customer of a table in the restaurant above or of the top.
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
        parts_[at.depth] = share * top(k) * after(stay, prob_of_next(at, next, k, o, 1, true));
    }
    static double after(double stay, double p) { return stay + (1.0 - stay) * p; }
    // That of o after k, after set_parts has counted; 1 if there is no o.
    double prob_of_next(ContextPlace at, ContextPlace next, int32_t k, int32_t o, int32_t lowest,
                        bool opened) const {
        if (o < 0) return 1.0;
        return follower(trail_.data(), at.depth, offsets_.data(), next.depth, following_.data(),
                        k, o, lowest, opened);
    }

    static constexpr int32_t kLanes = 16;

    FirstLevel *first_;
    std::vector<std::unique_ptr<DeepLevel>> levels_;        // of depth 2, 3, ...
    std::vector<ContextPlace> places_;                      // by step
    Stack<Draw> touched_;                   // in this move, whose sizes may have changed
    mutable size_t n_refreshed_ = 0;        // of them
    mutable bool is_fresh_ = false;
    mutable int32_t padded_ = 0;
    mutable std::vector<Sizes> sizes_;      // by depth
    mutable WideVector<double> mass_;       // by label, padded: see own_mass
    mutable WideVector<double> shared_;     // by prefix of depth 1 and by label, the same
    // Scratch, by depth or by label.
    mutable std::vector<int32_t> offsets_, trail_, following_;
    mutable std::vector<double> weights_, base_, parts_, bases_, sparse_, rest_;
};

}  // namespace skihmm
