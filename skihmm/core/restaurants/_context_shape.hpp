// The restaurants of a tree: how they are numbered, and their records.
//
// A restaurant of depth d belongs to the first columns of a context and, below the first `n_before`
// columns, to a label.  Without any column there is one restaurant for every label.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "_record.hpp"
#include "_slots.hpp"

namespace skihmm {

// Where a step is drawn: the depth of its leaf, 0 for the top, and the prefix of its context.
struct ContextPlace {
    int32_t depth = 1, prefix = 0;
};

// The contexts of some data: prefixes of n columns are numbered for every n, and parents[n - 1]
// has of each the number of its own prefix of n - 1 columns, which is 0 if that has no columns.
struct ContextShape {
    using Levels = std::vector<SeatingRecord>;      // of depth 1, 2, ...

    int32_t n_before = 0;
    std::vector<std::vector<int32_t>> parents;

    bool exists() const { return !parents.empty(); }
    int32_t n_columns() const { return static_cast<int32_t>(parents.size()); }
    // Depth of the leaves of complete contexts.
    int32_t depth() const { return n_columns() + 1; }
    bool has_state(int32_t depth) const { return depth > n_before; }
    // The first depth that depends on the label.
    int32_t state_depth() const { return n_before + 1; }
    int32_t n_prefixes(int32_t n_columns) const {
        return n_columns ? static_cast<int32_t>(parents[n_columns - 1].size()) : 1;
    }
    // For the restaurants of a depth: their columns, the number of prefixes, the number of
    // restaurants for n labels, the restaurant of label j and a prefix.
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
    // The prefixes of a place's restaurants by depth.
    void fill_prefixes(ContextPlace at, int32_t *out) const {
        int32_t prefix = at.prefix;
        for (int32_t d = at.depth; d >= 1; --d) {
            out[d] = prefix;
            if (d > 1) prefix = prefix_above(d, prefix);
        }
    }
    // Refuse a shape that is not a tree.
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
    // Places by step; refuse those that are none.
    std::vector<ContextPlace> places(const std::vector<int32_t> &depths,
                                     const std::vector<int32_t> &prefixes) const {
        if (depths.size() != prefixes.size())
            refuse("contexts", std::to_string(depths.size()) + " depths and "
                               + std::to_string(prefixes.size()) + " prefixes");
        std::vector<ContextPlace> out;
        for (size_t t = 0; t < depths.size(); ++t) {
            const int32_t d = depths[t], least = n_before ? 0 : 1;
            if (d < least || d > depth() || prefixes[t] < 0
                || prefixes[t] >= (d ? stride(d) : 1))
                refuse("contexts", "step " + std::to_string(t) + " has depth " + std::to_string(d)
                                   + " and prefix " + std::to_string(prefixes[t])
                                   + ", which no restaurant has");
            out.push_back({d, prefixes[t]});
        }
        return out;
    }
    bool operator==(const ContextShape &other) const {
        return n_before == other.n_before && parents == other.parents;
    }

    // ---- records of all restaurants

    void visit(const Archive &archive) {
        archive["n_before"].scalar(&n_before, {0, 1});
        const Archive columns = archive["parents"];
        if (archive.reads()) parents.resize(columns.size());
        const std::vector<Archive> all = columns.list(parents.size());
        for (size_t n = 0; n < all.size(); ++n) all[n].array(&parents[n]);
        if (!exists()) refuse(archive.what(), "there is no column");
        check(archive.what());
    }
    // The restaurants of a depth, for so many labels.
    void visit_level(const Archive &archive, int32_t depth, int32_t n_labels, int32_t n_dishes,
                     bool seats, SeatingRecord *level) const {
        const int64_t n = n_rows(depth, n_labels);
        if (n > kMostCustomers) refuse(archive.what(), "too many restaurants");
        level->visit(archive, static_cast<int32_t>(n), n_dishes, seats);
    }
    // Name of a depth in messages.
    std::string name(const std::string &what, int32_t depth) const {
        return exists() ? what + ", depth " + std::to_string(depth) : what;
    }
    // A record over slots with labels in their place, and dishes with labels of theirs, if any.
    SeatingRecord with_labels(const SeatingRecord &record, int32_t depth,
                              const std::vector<int32_t> &labels,
                              const std::vector<int32_t> *dishes = nullptr) const {
        std::vector<int32_t> rows(n_rows(depth, static_cast<int32_t>(labels.size())));
        const int32_t n = stride(depth);
        for (size_t i = 0; i < rows.size(); ++i)
            rows[i] = row(depth, has_state(depth) ? labels[i / n] : 0,
                          static_cast<int32_t>(i) % n);
        return relabelled(record, rows, dishes);
    }
    // Give state k of a checked record the slot kFirst + k, and `start`, if it is a label, the slot
    // of the start restaurant.
    void to_slots(Levels *levels, int32_t start = -1) const {
        for (int32_t d = state_depth(); d <= depth(); ++d) {
            const int32_t n = stride(d);
            for (int32_t &i : (*levels)[d - 1].rows)
                i = row(d, i / n == start ? kStart : kFirst + i / n, i % n);
        }
    }
    // Refuse tables that are not among the customers of the restaurants above.
    void check_tables(const Levels &levels, const std::string &what) const {
        for (int32_t d = 1; d < depth(); ++d) {
            const SeatingRecord &parents = levels[d - 1], &level = levels[d];
            std::map<std::pair<int32_t, int32_t>, int64_t> customers;
            for (size_t i = 0; i < parents.rows.size(); ++i)
                customers[{parents.rows[i], parents.dishes[i]}] = parents.n_customers[i];
            for (size_t i = 0; i < level.rows.size(); ++i)
                if ((customers[{row_above(d + 1, level.rows[i]), level.dishes[i]}]
                     -= level.n_tables[i]) < 0)
                    refuse(what, name_cell(level, i) + "of depth " + std::to_string(d + 1)
                                 + " has more tables than its parent has customers");
        }
    }
    // Refuse checked records whose customers differ from the steps' draws (a dish, -1 for none, in
    // the leaf of a label and a place) and the tables of the next depth.  Without places there is
    // one restaurant for every label.
    void check_customers_of(const Levels &levels, const std::vector<ContextPlace> &places,
                            const int32_t *labels, const int32_t *dishes, int64_t stride,
                            int64_t n_steps, int32_t n_labels, const std::string &what) const {
        if (!exists())
            return check_customers(levels[0], labels, dishes, stride, n_steps, n_labels, what);
        for (int32_t d = depth(); d >= 1; --d) {
            std::vector<int32_t> rows, customers;
            for (int64_t t = 0; t < n_steps; ++t) {
                if (places[t].depth != d || dishes[t * stride] < 0) continue;
                rows.push_back(row(d, labels[t], places[t].prefix));
                customers.push_back(dishes[t * stride]);
            }
            for (size_t i = 0; d < depth() && i < levels[d].rows.size(); ++i) {
                const SeatingRecord &below = levels[d];
                rows.insert(rows.end(), below.n_tables[i], row_above(d + 1, below.rows[i]));
                customers.insert(customers.end(), below.n_tables[i], below.dishes[i]);
            }
            check_customers(levels[d - 1], rows.data(), customers.data(), 1,
                            static_cast<int64_t>(rows.size()),
                            static_cast<int32_t>(n_rows(d, n_labels)), name(what, d));
        }
    }
};

}  // namespace skihmm
