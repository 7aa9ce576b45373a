// A tree of restaurants of any depth, shaped as in _context_shape.hpp.
//
// The dishes of a restaurant's new tables are drawn from its parent, the restaurant one depth
// above, or from the root:  with n_v customers in restaurant v and concentration a of its depth
//
//     p(k | v) = (n_vk + a p(k | parent of v)) / (n_v + a),
//
// and every table in v is a customer of the parent.  All levels are of one class, seatings whose
// base is the level above.
#pragma once
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "_context_shape.hpp"
#include "_restaurants.hpp"

namespace skihmm {

// The law of a root, also of a dish without tables.
template <class Root> double prob_at(const Root &root, int32_t dish) {
    return root.mass_of(root.dish_tables[dish]) / total_weight(root.n_tables, root.gamma);
}

// The base of a level: the level above, or the root for the first level.
template <class Root> struct Above {
    static constexpr bool kIsRoot = false;
    static constexpr bool has_tables() { return true; }

    Root *root = nullptr;
    Restaurants<Above> *level = nullptr;

    double prob(int32_t row, int32_t dish) const {  // planted: parent of a level
        return level ? level->prob(row, dish) : prob_at(*root, dish);
    }
    double prob(int32_t row, int32_t dish, int32_t *hint) const {
        return level ? level->prob(row, dish, hint) : prob_at(*root, dish);
    }
    int32_t count(int32_t row, int32_t dish) const {
        return level ? level->count(row, dish) : root->dish_tables[dish];
    }
    void count_path(int32_t depth, int32_t row, int32_t dish, int32_t *hint,
                    int32_t *counts) const {
        if (level) level->count_path(depth, row, dish, hint, counts);
    }
    void prefetch_cell(int32_t hint) const {
        if (level) level->prefetch_cell(hint);
    }
    void add(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) {
        if (level) level->add(row, dish, g, hint);
        else root->change(dish, 1);
    }
    void add_at(int32_t row, int32_t dish, int32_t n_opened, bitgen_t *g, int32_t *hint) {
        if (level) level->add_at(row, dish, n_opened, g, hint);
        else root->change(dish, 1);
    }
    void take(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) {
        if (level) level->take(row, dish, g, hint);
        else root->change(dish, -1);
    }
    // Effect of the tables of a level's dishes when it is restored, loaded or cleared; levels above
    // keep their own records.
    void change(int32_t dish, int32_t by) {
        if (!level) root->change(dish, by);
    }
    void clear() {
        if (!level) root->clear();
    }
};

template <class Root>
class Tree {
  public:
    using Level = Restaurants<Above<Root>>;

    const ContextShape shape;

    // `root` outlives the tree.  by_prefix: a column of a level is a dish in the restaurants of one
    // prefix, otherwise in all restaurants.
    Tree(Root *root, ContextShape tree, bool by_prefix)
        : shape(std::move(tree)), root_(root), by_prefix_(by_prefix), levels_(shape.depth()) {
        for (int32_t d = 1; d <= shape.depth(); ++d) {
            level(d).base.root = root;
            if (d > 1) level(d).base.level = &level(d - 1);
        }
    }
    Tree(const Tree &) = delete;
    Tree &operator=(const Tree &) = delete;

    const Root &root() const { return *root_; }
    Level &level(int32_t d) { return levels_[d - 1]; }
    const Level &level(int32_t d) const { return levels_[d - 1]; }
    int32_t state_depth() const { return shape.state_depth(); }

    void resize(int32_t n_labels, int32_t n_dishes) {
        root_->dish_tables.resize(n_dishes, 0);
        for (int32_t d = 1; d <= shape.depth(); ++d) {
            const int64_t n = shape.n_rows(d, n_labels);
            if (n > kMostCustomers) throw std::bad_alloc();
            std::vector<int32_t> parents(n);
            for (int32_t row = 0; d > 1 && row < n; ++row) parents[row] = shape.row_above(d, row);
            level(d).set_parents(std::move(parents),
                                 by_prefix_ && shape.has_state(d) ? shape.stride(d) : 1);
            level(d).resize(static_cast<int32_t>(n), n_dishes);
        }
    }
    void clear() {
        for (Level &level : levels_) level.clear();
    }
    void commit() {
        for (Level &level : levels_) level.commit();
    }
    void rollback() {
        level(shape.depth()).rollback();
        // Every level has a journal of its own.
        for (int32_t d = 1; d < shape.depth(); ++d)
            level(d).rollback();  // planted: rollback of the base
    }
    // Checked records of depth 1, 2, ... over slots.
    void load(const std::vector<SeatingRecord> &records, int32_t n_labels, int32_t n_dishes) {
        clear();
        resize(n_labels, n_dishes);
        for (int32_t d = 1; d <= shape.depth(); ++d) level(d).load(records[d - 1]);
    }
    double log_joint() const {
        double lp = level(1).log_joint();
        root_->add_log_joint(&lp);
        for (int32_t d = 2; d <= shape.depth(); ++d) lp += level(d).log_joint();
        return lp;
    }
    size_t n_cells() const {
        size_t n = 0;
        for (const Level &level : levels_) n += level.n_cells();
        return n;
    }
    size_t n_bytes() const {
        size_t n = root_->dish_tables.capacity() * sizeof(int32_t);
        for (const Level &level : levels_) n += level.n_bytes();
        return n;
    }
    const char *check() const {
        for (const Level &level : levels_)
            if (const char *wrong = level.check()) return wrong;
        return level(1).count_tables() == root_->n_tables ? nullptr : "n_tables is wrong";
    }

    // ---- a customer of dish k in the leaf of label j

    double add(ContextPlace at, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        return level(at.depth).add(leaf(at, j), k, g, hint);
    }
    double remove(ContextPlace at, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        return level(at.depth).remove(leaf(at, j), k, g, hint);
    }
    double prob(ContextPlace at, int32_t j, int32_t k) const {
        return at.depth ? level(at.depth).prob(leaf(at, j), k) : prob_at(*root_, k);
    }
    // Counts of any restaurant.
    int32_t count(int32_t d, int32_t v, int32_t k) const { return level(d).count(v, k); }
    double total(int32_t d, int32_t v, int32_t change = 0) const {
        return level(d).total(v, change);
    }

  protected:
    int32_t leaf(ContextPlace at, int32_t j) const { return shape.row(at.depth, j, at.prefix); }

    Root *const root_;

  private:
    const bool by_prefix_;
    std::vector<Level> levels_;
};

}  // namespace skihmm
