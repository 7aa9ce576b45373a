// The restaurants of a Chinese restaurant franchise and who sits where, with exact undo.
//
// A `Restaurants` is all the customers of one level of a franchise: restaurants j (rows), dishes
// k, n_jk customers of (j, k) at m_jk tables.  Its base says where the dish of a new table
// comes from: a root or, in a tree (_tree.hpp), the level above, in which every table is a
// customer.  Transitions (restaurant = previous state, dish = next state) have an InfiniteRoot,
// emissions (restaurant = state, dish = symbol) a SymbolBase, which is fixed for Dirichlet
// emissions.  The predictive probability is that of _law.hpp.
//
// Notation of arXiv 1106.0474 beside the names here (docs/notation.md has the table):
//   n_jk  cell.n_customers      m_jk  cell.n_tables       alpha_0  alpha
//   n_j   row_customers[j]      m_.k  dish_tables[k]      gamma    gamma
//   m_..  n_tables              getProb  prob             addCustomer  add
// (dish_tables, n_tables and gamma belong to the root.)
// The paper prints m_.k + gamma as the denominator of the base measure; the joint that it
// is derived from has m_.. + gamma, and only that sums to one.  The code uses the latter.
//
// Layout.  A cell exists while n_jk > 0 (or, inside a move, while the journal may still
// need it).  Every cell stands in two lists, that of its row and that of its dish, which
// hold (index, count) pairs contiguously: the proposals read those lists and nothing else.
// At Alice's K of about 350 a row has 22 entries and a column 50, while K is 350; the
// whole franchise is a few hundred kilobytes and stays in the second-level cache.
// Table sizes are stored only for cells with two tables or more.
//
// For a moderate number of slots the counts also stand in two dense 16-bit matrices, by row
// and by column, which the vectorised step-wise proposal reads; `has_dense` says whether
// they are there and complete.  They show the last committed seating, not the one inside a
// move: most moves end where they began and then write nothing there, and a vector load
// right behind a 16-bit store to the same place would wait for it (a fifth of a step).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "_containers.hpp"
#include "_law.hpp"
#include "_math.hpp"
#include "_pair_counts.hpp"
#include "_random.hpp"

namespace skihmm {

struct Cell {
    int32_t row = -1;        // -1: the record is free
    int32_t dish = -1;
    int32_t n_customers = 0;
    int32_t n_tables = 0;
    int32_t pool = -1;       // where the table sizes are when n_tables >= 2, else -1
    int32_t in_row = 0;      // position in the list of the row
    int32_t in_dish = 0;     // position in the list of the dish
    int16_t pending = 0;     // 1 while queued for erasure at the end of the move
    int16_t order = 0;       // there is room for 2^order table sizes
};

// ---- bases ----------------------------------------------------------------------------

// A base without restaurants of its own: how many tables serve each dish, and the mass that
// this gives it (_law.hpp).
struct Root {
    static constexpr bool kIsRoot = true;
    static constexpr bool has_tables() { return true; }

    double gamma = 1.0;
    std::vector<int32_t> dish_tables;       // m_.k
    int64_t n_tables = 0;                   // m_..

    void set_gamma(double value) { gamma = value; }
    // The scale if there were `change` tables more.
    double scale(double alpha, int32_t change = 0) const {
        return table_scale(alpha, n_tables + change, gamma);
    }
    void change(int32_t dish, int32_t by) {
        dish_tables[dish] += by;
        n_tables += by;
    }
    void clear() {
        std::fill(dish_tables.begin(), dish_tables.end(), 0);
        n_tables = 0;
    }
};

// Infinitely many dishes.  Each that no table serves has the mass of a new one.
struct InfiniteRoot : Root {
    double mass_of(int32_t n) const { return n ? n : gamma; }
    void add_log_joint(double *lp) const {
        *lp -= log_rising(gamma, n_tables);
        const double log_gamma = std::log(gamma);
        for (int32_t m : dish_tables) if (m) *lp += log_gamma + std::lgamma(m);
    }
};

// V dishes, equally probable; the restaurant of the root is integrated out.  Of a fixed one they
// have the probability 1/V whatever happens: customers are counted, not seated.
struct SymbolBase : Root {
    bool is_fixed = false;
    int32_t n_symbols = 1;                  // V
    double symbol_mass = 1.0;               // gamma / V

    bool has_tables() const { return !is_fixed; }
    void set_symbols(int32_t n) {
        n_symbols = n;
        symbol_mass = gamma / n;
    }
    void set_gamma(double value) {
        gamma = value;
        symbol_mass = gamma / n_symbols;
    }
    double scale(double alpha, int32_t change = 0) const {
        return is_fixed ? alpha / n_symbols : Root::scale(alpha, change);
    }
    double mass_of(int32_t n) const { return is_fixed ? 1.0 : n + symbol_mass; }
    void add_log_joint(double *lp) const {
        if (is_fixed) return;
        *lp -= log_rising(gamma, n_tables);
        for (int32_t m : dish_tables) if (m) *lp += log_rising(symbol_mass, m);
    }
};

// A packed copy of a seating: cells by (row, dish), each cell's table sizes in decreasing
// order.  Between sweeps a chain *is* this record plus its concentrations and its random
// stream, which is what makes a resumed chain bit-identical.
struct SeatingRecord {
    std::vector<int32_t> rows, dishes, n_customers, n_tables, sizes;
};

// A customer who is about to leave, or none (`table` is -1): see Restaurants::lift.
struct Lifted {
    int32_t cell = -1;
    int32_t table = 0;      // his table, which leaves with him if `closes`
    int32_t n = 0;          // customers of the cell without him
    int32_t n_tables = 0;   // its tables with him
    bool closes = false;
};

template <class Base>
class Restaurants {
  public:
    using Lifted = skihmm::Lifted;
    static constexpr bool kIsRoot = false;
    static constexpr bool has_tables() { return true; }

    double alpha = 1.0;
    Base base;

    std::vector<Line> rows;                 // rows[j]: (dish, n_jk)
    std::vector<Line> columns;              // columns[k]: (row, n_jk); see set_parents
    std::vector<int32_t> row_customers;     // n_j

    // ---- set-up

    // Of a level of a tree only: the restaurant one level above in which each of the rows is a
    // customer.  With groups, that of row j n_groups + g is g, and columns[k n_groups + g] has
    // (j, n_jk) of the rows of one group.
    void set_parents(std::vector<int32_t> parents, int32_t n_groups = 1) {
        parents_ = std::move(parents);
        n_groups_ = n_groups;
    }
    void set_alpha(double value) {
        alpha = value;
        update_scale();
    }
    // The other functions down to resize are for roots.
    void set_symbols(int32_t n) {
        base.set_symbols(n);
        update_scale();
    }
    void set_concentrations(double lower, double top) {
        base.set_gamma(top);
        set_alpha(lower);
    }
    // Storage grows only between moves, so pointers into a line live through a proposal.
    void resize(int32_t n_rows, int32_t n_dishes) {
        rows.resize(n_rows);
        row_customers.resize(n_rows, 0);
        columns.resize(static_cast<size_t>(n_dishes) * n_groups_);
        if constexpr (Base::kIsRoot) base.dish_tables.resize(n_dishes, 0);
        rebuild_dense();
    }
    // Keep dense copies of the counts while rows and dishes are at most `limit`.
    void set_dense_limit(int32_t limit) {
        if (limit == dense_limit_) return;
        dense_limit_ = limit;
        rebuild_dense();
    }
    // False as well while some count is 65,535 or more.
    bool has_dense() const { return stride_ > 0 && n_wide_ == 0; }
    const uint16_t *dense_row(int32_t row) const {
        return &dense_rows_[static_cast<size_t>(row) * stride_];
    }
    const uint16_t *dense_column(int32_t dish) const {
        return &dense_columns_[static_cast<size_t>(dish) * stride_];
    }
    // Show n customers of (row, dish) in the dense counts, for the time inside a move;
    // returns what stood there.  Only while has_dense().
    int32_t show_dense(int32_t row, int32_t dish, int32_t n) {
        uint16_t &shown = dense_rows_[static_cast<size_t>(row) * stride_ + dish];
        const int32_t before = shown;
        shown = static_cast<uint16_t>(n);
        dense_columns_[static_cast<size_t>(dish) * stride_ + row] = shown;
        return before;
    }
    void clear() {
        forget();
        rebuild_dense();
    }

    // ---- predictive probabilities

    // n_j + alpha of a row; with `change` customers more.
    double total(int32_t row, int32_t change = 0) const {
        return total_weight(row_customers[row] + change, alpha);
    }
    // Under a root: a new table's weight is scale() * mass(dish) in every restaurant.
    double scale() const { return scale_; }
    double mass(int32_t dish) const { return base.mass_of(base.dish_tables[dish]); }
    // The scale if there were `change` tables more.
    double scale_after(int32_t change) const {
        return SKIHMM_LIKELY(change == 0) ? scale_ : base.scale(alpha, change);
    }
    // The weight of a new table of a dish; with `change` tables of it more.
    double new_table(int32_t dish) const { return new_table_weight(scale_, mass(dish)); }
    double new_table_after(int32_t dish, int32_t change) const {
        return new_table_weight(scale_after(change),
                                base.mass_of(base.dish_tables[dish] + change));
    }
    // The same in a restaurant of any seating.
    double new_table_in(int32_t row, int32_t dish) const {
        if constexpr (Base::kIsRoot) return new_table(dish);
        else return alpha * base.prob(parents_[row], dish);  // planted: new table of a dish
    }
    // p(dish | row): the predictive probability of the next customer's dish.
    double prob(int32_t row, int32_t dish) const {
        return dish_weight<double>(count(row, dish), new_table_in(row, dish)) / total(row);
    }
    // out[k] = prob(row, k) for every dish, O(dishes).
    void fill_probs(int32_t row, double *out) const {
        const double all = total(row);
        for (size_t k = 0; k < columns.size() / n_groups_; ++k)
            out[k] = new_table_in(row, k) / all;
        const Line &line = rows[row];
        for (int32_t i = 0; i < line.size; ++i) {
            const int32_t k = line.ids[i];
            out[k] = dish_weight<double>(line.counts[i], new_table_in(row, k)) / all;
        }
    }
    double prob(int32_t row, int32_t dish, int32_t *hint) const {
        const int32_t c = find(row, dish, hint);
        if (c < 0) return new_table_in(row, dish) / total(row);
        return dish_weight<double>(cells_[c].n_customers, new_table_at(c)) / total(row);
    }
    int32_t count(int32_t row, int32_t dish) const {
        const int32_t c = index_.find(row, dish);
        return c < 0 ? 0 : cells_[c].n_customers;
    }
    // The same of this restaurant and of those above it: counts[d] by depth, this one is `depth`.
    void count_path(int32_t depth, int32_t row, int32_t dish, int32_t *hint,
                    int32_t *counts) const {
        const int32_t c = find(row, dish, hint);
        counts[depth] = c < 0 ? 0 : cells_[c].n_customers;
        int32_t none = -1;
        base.count_path(depth - 1, parents_[row], dish, c < 0 ? &none : &links_[c].above, counts);
    }
    // count(row, dish) for a pair whose cell `hint` may remember.
    int32_t count(int32_t row, int32_t dish, int32_t hint) const {
        return is_cell(hint, row, dish) ? cells_[hint].n_customers : count(row, dish);
    }
    int32_t table_count(int32_t row, int32_t dish) const {
        const int32_t c = index_.find(row, dish);
        return c < 0 ? 0 : cells_[c].n_tables;
    }

    // ---- customers

    // Seat a customer of `row` at `dish`; returns p(dish | row) as it was before.  An
    // existing table is chosen with weight its size, a new one with new_table_in; a cell
    // without tables opens one with certainty (the paper's weight for that case is 0 when
    // m_.k = 0).  In a tree a new table is a customer one level above.
    //
    // `hint` remembers the cell for the next call about the same pair: a guess that is
    // checked, so any value is safe.
    SKIHMM_INLINE double add(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) {
        int32_t c = *hint;
        if (!is_cell(c, row, dish)) *hint = c = obtain(row, dish);
        Cell &cell = cells_[c];
        const int32_t n = cell.n_customers;
        const double weight = dish_weight<double>(n, new_table_at(c));
        const double p = weight / total(row);
        if (!base.has_tables()) {
            note(c, 0, Kind::kAdd);
            change_customers(cell, 1);
        } else if (n == 0) {
            sit_alone(c, g);
        } else {
            const double u = uniform(g) * weight;  // planted: number of a table
            if (u >= n) sit_alone(c, g);
            else join(c, static_cast<int64_t>(u));
        }
        return p;
    }
    // The same where it has been drawn already whether he opens a table (which he must if
    // the pair has none).
    SKIHMM_INLINE void add(int32_t row, int32_t dish, bool opens, bitgen_t *g,
                           int32_t *hint) {
        int32_t c = *hint;
        if (!is_cell(c, row, dish)) *hint = c = obtain(row, dish);
        if (opens) sit_alone(c, g);
        else join(c, below(g, cells_[c].n_customers));
    }

    // The same in a tree of restaurants, where it has been drawn how many tables are opened, one
    // above the other: 0, or as many as there are levels with the first one, or fewer.
    void add_at(int32_t row, int32_t dish, int32_t n_opened, bitgen_t *g, int32_t *hint) {
        if (n_opened == 0) return add(row, dish, false, g, hint);
        int32_t c = *hint;
        if (!is_cell(c, row, dish)) *hint = c = obtain(row, dish);
        note_table(c);
        base.add_at(parents_[row], dish, n_opened - 1, g, &links_[c].above);
        change_customers(cells_[c], 1);
    }

    // Take away one customer of (row, dish), who sits at a table with probability
    // proportional to its size (identities of customers are not kept; drawing them on
    // removal is exact).  Returns p(dish | row) as it is afterwards.
    SKIHMM_INLINE double remove(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) {
        Lifted lifted;
        lift(row, dish, g, hint, &lifted);
        return take_away(lifted, g);
    }
    // The same without the probability.
    SKIHMM_INLINE void take(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint) {
        Lifted lifted;
        lift(row, dish, g, hint, &lifted);
        take_from(lifted, g);
    }

    // The two halves of `remove`, and under a root its inverse for a customer that comes
    // back to the same pair.  lift chooses the customer and writes nothing; most moves put
    // him where he was, and then nothing has to be written at all.  Between lift and what
    // follows the cell must not change.
    static constexpr int32_t kNewTable = -1;

    // Written field by field: a copy of the whole waits for the stores of its parts.
    SKIHMM_INLINE void lift(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint,
                            Lifted *out) const {
        int32_t c = *hint;
        if (SKIHMM_UNLIKELY(!is_cell(c, row, dish))) *hint = c = find_to_remove(row, dish);
        const Cell &cell = cells_[c];
        const int32_t n = cell.n_customers, n_tables = cell.n_tables;
        int32_t table = 0;
        bool closes = n == 1;
        if (SKIHMM_UNLIKELY(n_tables > 1)) {
            const int32_t *sizes = pool_.at(cell.pool);
            table = table_at(sizes, below(g, n));
            closes = sizes[table] == 1;
        }
        out->cell = c;
        out->table = table;
        out->n = n - 1;
        out->n_tables = n_tables;
        out->closes = closes & base.has_tables();
    }
    // Returns p(dish | row) as it is afterwards.
    SKIHMM_INLINE double take_away(const Lifted &lifted, bitgen_t *g) {
        const Cell &cell = cells_[lifted.cell];
        take_from(lifted, g);
        return dish_weight<double>(lifted.n, new_table_at(lifted.cell)) / total(cell.row);
    }
    // The table at which he sits down again (numbered as before lift) or kNewTable, by the
    // law of `add`; `fresh` is the weight of a new table.  `bits` are 21 random bits: the
    // first ones of a uniform, of which more are drawn only if these do not decide.
    static constexpr int kChoiceBits = 21;
    SKIHMM_INLINE int32_t choose_table(const Lifted &lifted, double fresh, uint32_t bits,
                                       bitgen_t *g) const {
        if (lifted.n == 0 || !base.has_tables()) return lifted.closes ? kNewTable : 0;
        // The uniform lies in [bits, bits + 1) / 2^21: mostly at one and the same table.
        constexpr double unit = 1.0 / (1 << kChoiceBits);
        const double width = dish_weight<double>(lifted.n, fresh) * unit;
        const double least = bits * width, most = (bits + 1.0) * width;
        // planted: table by random bits
        if (SKIHMM_LIKELY(lifted.n_tables == 1 && most <= lifted.n)) return 0;
        if (least >= lifted.n) return kNewTable;
        int32_t table;
        if (SKIHMM_LIKELY(find_table(lifted, least, &table) >= most)) return table;
        const double u = (bits + uniform(g)) * width;
        if (u >= lifted.n) return kNewTable;
        find_table(lifted, u, &table);
        return table;
    }
    // Carry out lift and choose_table, for good: not in the journal.
    SKIHMM_INLINE void put_back(const Lifted &lifted, int32_t table) {
        if (table == (lifted.closes ? kNewTable : lifted.table)) return;
        change_seat(lifted, table);
    }

    // ---- moves

    // A large move begins, of at most so many customers that come or go.  If a copy of the
    // seating is much smaller than a journal of all of them, it is what a rollback restores.
    void expect(size_t n) {
        if constexpr (Base::kIsRoot) {
            const size_t n_live = cells_.size() - free_cells_.size() + count_tables();
            if (n > journal_.kMostKept && n / 8 > n_live) {
                before_ = std::make_unique<SeatingRecord>(record());
                return journal_.set_bounded(true);
            }
        }
        journal_.reserve(n);
    }
    // End of an accepted move: clear the journal.
    void commit() {
        if (SKIHMM_UNLIKELY(journal_.has_forgotten())) {
            for (const Cell &cell : cells_)
                if (stride_ && cell.row >= 0) set_dense(cell);
        } else if (stride_) {
            for (size_t i = journal_.size(); i > 0;) set_dense(cells_[entry_before(&i).cell]);
        }
        commit_same();
    }
    // The same after a move that put every customer back where it was taken from (tables
    // apart): no count has changed.
    void commit_same() {
        clear_journal();
        sweep_pending();
    }
    // Undo every operation since the last commit or rollback, newest first: afterwards
    // every table has its earlier size.  Seating the old customers anew would draw their tables
    // from the wrong distribution.
    void rollback() {
        if (SKIHMM_UNLIKELY(journal_.has_forgotten())) {
            const SeatingRecord before = std::move(*before_);
            return load(before);
        }
        for (size_t i = journal_.size(); i > 0;) {
            const auto [c, table, kind] = entry_before(&i);
            Cell &cell = cells_[c];
            switch (kind) {
                case Kind::kAdd:
                    if (cell.n_tables > 1) --pool_.at(cell.pool)[table];
                    change_customers(cell, -1);
                    if (cell.n_customers == 0) queue(c);
                    break;
                case Kind::kOpen:
                    change_customers(cell, -1);
                    close_table(cell, table);
                    change_tables(cell.dish, -1);
                    if (cell.n_customers == 0) queue(c);
                    break;
                case Kind::kRemove:
                    if (cell.n_tables > 1) ++pool_.at(cell.pool)[table];
                    change_customers(cell, 1);
                    break;
                case Kind::kClose:
                    reopen_table(cell, table);
                    change_tables(cell.dish, 1);
                    change_customers(cell, 1);
                    break;
            }
        }
        clear_journal();
        sweep_pending();
    }

    // ---- records

    SeatingRecord record() const {
        SeatingRecord out;
        std::vector<std::pair<int32_t, int32_t>> order;
        std::vector<int32_t> sizes;
        for (size_t j = 0; j < rows.size(); ++j) {
            const Line &line = rows[j];
            order.clear();
            for (int32_t i = 0; i < line.size; ++i)
                if (line.counts[i]) order.emplace_back(line.ids[i], line.cells[i]);
            std::sort(order.begin(), order.end());
            for (const auto &entry : order) {
                const Cell &cell = cells_[entry.second];
                out.rows.push_back(static_cast<int32_t>(j));
                out.dishes.push_back(cell.dish);
                out.n_customers.push_back(cell.n_customers);
                out.n_tables.push_back(cell.n_tables);
                if (cell.n_tables == 1) {
                    out.sizes.push_back(cell.n_customers);
                } else if (cell.n_tables > 1) {
                    const int32_t *first = pool_.at(cell.pool);
                    sizes.assign(first, first + cell.n_tables);
                    std::sort(sizes.begin(), sizes.end(), std::greater<int32_t>());
                    out.sizes.insert(out.sizes.end(), sizes.begin(), sizes.end());
                }
            }
        }
        return out;
    }
    // Replace everything by a record that check_record (_record.hpp) has passed, for as
    // many rows and dishes as there are.
    void load(const SeatingRecord &record) {
        clear();
        fill(record);
    }
    // The same for other numbers of rows and dishes.  Cells are cleared first, because they may
    // be outside afterwards.
    void load(const SeatingRecord &record, int32_t n_rows, int32_t n_dishes) {
        forget();
        resize(n_rows, n_dishes);
        fill(record);
    }

    // Under a root: replace everything by counted customers, seated by their law given the base
    // measure: in a restaurant every customer of a dish joins each earlier one's table with
    // weight one or opens a table with weight fresh[dish] = alpha * base(dish).  A large cell is
    // not seated one by one, so that its cost does not grow with the data: the table of its first
    // customer has 1 + Binomial(n - 1, v) of the n customers, v ~ Beta(1, fresh), and the rest of
    // them are seated likewise.
    void reseat(const PairCounts &counts, const double *fresh, bitgen_t *g) {
        SeatingRecord record;
        std::vector<int32_t> tables;
        record.rows = counts.rows;
        record.dishes = counts.dishes;
        record.n_customers = counts.counts;
        record.n_tables.assign(counts.rows.size(), 0);
        for (size_t i = 0; base.has_tables() && i < counts.rows.size(); ++i) {
            const int32_t n = counts.counts[i];
            const double a = fresh[counts.dishes[i]];
            const bool is_large = n > kCostOfTable * (1.0 + a * std::log1p(n / a));
            record.n_tables[i] = is_large ? seat_large_cell(n, a, &record.sizes, g)
                                          : seat_cell(n, a, &record.sizes, &tables, g);
        }
        load(record);
    }

    // ---- sums over the whole franchise

    // Tables of all rows.
    int64_t count_tables() const {
        if constexpr (Base::kIsRoot) return base.n_tables;
        int64_t n = 0;
        for (const Cell &cell : cells_) n += cell.row < 0 ? 0 : cell.n_tables;
        return n;
    }

    // log of the joint probability of the seating (and, of a fixed base, of the customers'
    // dishes given their rows); of a level of a tree without those above.
    double log_joint() const {
        double lp = 0.0;
        const double log_alpha = std::log(alpha);
        for (size_t j = 0; j < rows.size(); ++j) {
            if (!row_customers[j]) continue;
            lp -= log_rising(alpha, row_customers[j]);
            for (int32_t i = 0; i < rows[j].size; ++i) {
                const Cell &cell = cells_[rows[j].cells[i]];
                if (!base.has_tables()) {
                    lp += log_rising(scale_, cell.n_customers);
                    continue;
                }
                lp += cell.n_tables * log_alpha;
                if (cell.n_tables == 1) lp += std::lgamma(cell.n_customers);
                else if (cell.n_tables > 1)
                    for (int32_t table = 0; table < cell.n_tables; ++table)
                        lp += std::lgamma(pool_.at(cell.pool)[table]);
            }
        }
        if constexpr (Base::kIsRoot) base.add_log_joint(&lp);
        return lp;
    }

    size_t n_bytes() const {
        size_t bytes = index_.n_bytes() + cells_.capacity() * sizeof(Cell)
                       + journal_.n_bytes();
        for (const std::vector<Line> *lines : {&rows, &columns}) {
            bytes += lines->capacity() * sizeof(Line);
            for (const Line &line : *lines) bytes += 3 * sizeof(int32_t) * line.capacity;
        }
        bytes += 2 * (dense_rows_.capacity() + dense_columns_.capacity());
        if constexpr (Base::kIsRoot) bytes += base.dish_tables.capacity() * sizeof(int32_t);
        bytes += parents_.capacity() * sizeof(int32_t) + links_.capacity() * sizeof(Link);
        return bytes + pool_.n_bytes() + row_customers.capacity() * sizeof(int32_t);
    }

    // Every count, list and index against a recount; returns what is wrong, or nullptr.
    const char *check() const {
        std::vector<int64_t> by_row(rows.size(), 0), by_dish(columns.size(), 0);
        int64_t n_tables = 0, alive = 0;
        for (size_t c = 0; c < cells_.size(); ++c) {
            const Cell &cell = cells_[c];
            if (cell.row < 0) continue;
            ++alive;
            if (cell.n_customers <= 0) return "a cell without customers was left behind";
            if (index_.find(cell.row, cell.dish) != static_cast<int32_t>(c))
                return "the index does not find a cell";
            const Line &row = rows[cell.row], &column = columns[column_of(cell)];
            if (cell.in_row >= row.size || row.ids[cell.in_row] != cell.dish
                || row.counts[cell.in_row] != cell.n_customers
                || row.cells[cell.in_row] != static_cast<int32_t>(c))
                return "a row's list disagrees with its cell";
            if (cell.in_dish >= column.size || column.ids[cell.in_dish] != cell.row / n_groups_
                || column.counts[cell.in_dish] != cell.n_customers
                || column.cells[cell.in_dish] != static_cast<int32_t>(c))
                return "a dish's list disagrees with its cell";
            if (stride_ && cell.n_customers < kWidest
                && (dense_row(cell.row)[cell.dish] != cell.n_customers
                    || dense_column(cell.dish)[cell.row] != cell.n_customers))
                return "the dense counts disagree with a cell";
            by_row[cell.row] += cell.n_customers;
            if (!base.has_tables()) {
                if (cell.n_tables) return "tables under a fixed base";
                continue;
            }
            if (cell.n_tables < 1) return "a cell with customers but no table";
            if ((cell.n_tables > 1) != (cell.pool >= 0)) return "table sizes misplaced";
            if (cell.pool >= 0) {
                const int32_t *sizes = pool_.at(cell.pool);
                if (cell.n_tables > 1 << cell.order) return "more tables than room";
                int64_t sum = 0;
                for (int32_t table = 0; table < cell.n_tables; ++table) {
                    if (sizes[table] < 1) return "an empty table";
                    sum += sizes[table];
                }
                if (sum != cell.n_customers) return "table sizes do not add up";
            }
            by_dish[cell.dish] += cell.n_tables;
            n_tables += cell.n_tables;
        }
        int64_t in_rows = 0, in_columns = 0;
        for (const Line &line : rows) in_rows += line.size;
        for (const Line &line : columns) in_columns += line.size;
        int64_t dense = 0;
        for (uint16_t n : dense_rows_) dense += n > 0;
        if (has_dense() && dense != alive) return "the dense counts hold dead cells";
        if (in_rows != alive || in_columns != alive) return "lists hold dead cells";
        for (size_t j = 0; j < rows.size(); ++j)
            if (by_row[j] != row_customers[j]) return "row_customers is wrong";
        if (!journal_.empty() || !pending_.empty()) return "a move was left open";
        if constexpr (Base::kIsRoot) {
            for (size_t k = 0; k < columns.size(); ++k)
                if (by_dish[k] != base.dish_tables[k]) return "dish_tables is wrong";
            if (n_tables != base.n_tables) return "n_tables is wrong";
            if (scale_ != base.scale(alpha)) return "the cached scale is stale";
            return nullptr;
        } else {
            return check_flow() ? nullptr : "more tables than customers of the level above";
        }
    }

    double add(int32_t row, int32_t dish, bitgen_t *g) {
        int32_t hint = -1;
        return add(row, dish, g, &hint);
    }
    double remove(int32_t row, int32_t dish, bitgen_t *g) {
        int32_t hint = -1;
        return remove(row, dish, g, &hint);
    }

    size_t n_cells() const { return cells_.size(); }
    // Ask for the memory that add and remove will need for the pair that `hint` remembers;
    // in two rounds, as the second needs what the first has fetched.
    void prefetch_cell(int32_t hint) const {
        if (static_cast<size_t>(hint) >= cells_.size()) return;
        SKIHMM_PREFETCH(&cells_[hint]);
        if constexpr (!Base::kIsRoot) SKIHMM_PREFETCH(&links_[hint]);
    }
    void prefetch_lists(int32_t hint) const {
        if (static_cast<size_t>(hint) >= cells_.size() || cells_[hint].row < 0) return;
        const Cell &cell = cells_[hint];
        if (cell.pool >= 0) SKIHMM_PREFETCH(pool_.at(cell.pool));
        if constexpr (Base::kIsRoot) {
            SKIHMM_PREFETCH(&rows[cell.row].counts[cell.in_row]);
            SKIHMM_PREFETCH(&columns[column_of(cell)].counts[cell.in_dish]);
        } else {
            base.prefetch_cell(links_[hint].above);
        }
    }

  private:
    // No customers any more; dense copies are left to the caller.
    void forget() {
        for (Line &line : rows) line.clear();
        for (Line &line : columns) line.clear();
        std::fill(row_customers.begin(), row_customers.end(), 0);
        base.clear();
        cells_.clear();
        links_.clear();
        free_cells_.clear();
        pool_.clear();
        index_.clear();
        clear_journal();
        pending_.clear();
        update_scale();
    }
    // The cells of a record, into an empty seating.
    void fill(const SeatingRecord &record) {
        size_t at = 0;
        for (size_t i = 0; i < record.rows.size(); ++i) {
            const int32_t c = obtain(record.rows[i], record.dishes[i]);
            Cell &cell = cells_[c];
            const int32_t tables = record.n_tables[i];
            change_customers(cell, record.n_customers[i]);
            cell.n_tables = tables;
            if (tables > 1) {
                while ((1 << cell.order) < tables) ++cell.order;
                cell.pool = pool_.take(cell.order);
                std::copy_n(record.sizes.begin() + at, tables, pool_.at(cell.pool));
            }
            if (stride_) set_dense(cell);
            at += tables;
            base.change(cell.dish, tables);
        }
        pending_.clear();
        for (Cell &cell : cells_) cell.pending = 0;
        update_scale();
    }
    // Whether every table is a customer of the level above, which may have others.
    bool check_flow() const {
        std::map<std::pair<int32_t, int32_t>, int64_t> tables;
        for (const Cell &cell : cells_) {
            if (cell.row < 0) continue;
            const int32_t parent = parents_[cell.row];
            int64_t &n = tables[{parent, cell.dish}];
            if ((n += cell.n_tables) > base.count(parent, cell.dish)) return false;
        }
        return true;
    }
    // Appends the table sizes of n customers; returns their number.  table_of is scratch.
    static int32_t seat_cell(int32_t n, double fresh, std::vector<int32_t> *sizes,
                             std::vector<int32_t> *table_of, bitgen_t *g) {
        const size_t first = sizes->size();
        int32_t n_tables = 1;
        sizes->push_back(1);
        table_of->assign(1, 0);
        for (int32_t i = 1; i < n; ++i) {
            const double u = uniform(g) * dish_weight<double>(i, fresh);
            int32_t table = n_tables;
            if (u < i) {
                // He joins the table of customer u, which is stored in table_of.
                table = (*table_of)[static_cast<int32_t>(u)];
                ++(*sizes)[first + table];
            } else {
                sizes->push_back(1);
                ++n_tables;
            }
            table_of->push_back(table);
        }
        return n_tables;
    }
    // A table by seat_large_cell costs as much as this many customers by seat_cell.
    static constexpr double kCostOfTable = 30.0;
    static int32_t seat_large_cell(int32_t n, double fresh, std::vector<int32_t> *sizes,
                                   bitgen_t *g) {
        int32_t n_tables = 0;
        while (n > 0) {
            double leave;
            draw_beta(g, 1.0, fresh, &leave);
            binomial_t scratch{};
            const int32_t rest =
                static_cast<int32_t>(random_binomial(g, leave, n - 1, &scratch));
            sizes->push_back(n - rest);
            n = rest;
            ++n_tables;
        }
        return n_tables;
    }
    // Where the cell's column is, and its parent's cell as a hint.
    struct Link {
        int32_t column = 0;
        mutable int32_t above = -1;
    };
    SKIHMM_INLINE size_t column_of(const Cell &cell) const {
        if constexpr (Base::kIsRoot) return cell.dish;
        else return links_[&cell - cells_.data()].column;
    }
    double new_table_at(int32_t c) const {
        const Cell &cell = cells_[c];
        if constexpr (Base::kIsRoot) return new_table(cell.dish);
        // planted: new table of a cell
        else return alpha * base.prob(parents_[cell.row], cell.dish, &links_[c].above);
    }
    int32_t find(int32_t row, int32_t dish, int32_t *hint) const {
        if (!is_cell(*hint, row, dish)) *hint = index_.find(row, dish);
        return *hint;
    }
    bool is_cell(int32_t c, int32_t row, int32_t dish) const {
        return static_cast<size_t>(c) < cells_.size() && cells_[c].row == row
               && cells_[c].dish == dish;
    }
    enum class Kind : uint32_t { kAdd, kOpen, kRemove, kClose };
    // A journal entry is one word, as large moves have many: 20 bits of the cell, 10 of the
    // table, 2 of the kind.  Where these do not suffice two words before it have cell and table.
    struct Entry {
        int32_t cell, table;
        Kind kind;
    };
    static constexpr int32_t kLong = (1 << 20) - 1, kMostTables = 1 << 10;

    SKIHMM_INLINE void note(int32_t cell, int32_t table, Kind kind) {
        if (SKIHMM_UNLIKELY(cell >= kLong || table >= kMostTables)) {
            journal_.push(cell);
            journal_.push(table);
            cell = kLong;
            table = 0;
        }
        journal_.push(static_cast<uint32_t>(cell) | static_cast<uint32_t>(table) << 20
                      | static_cast<uint32_t>(kind) << 30);
    }
    void clear_journal() {
        journal_.clear();
        if (SKIHMM_LIKELY(!before_)) return;
        before_.reset();
        journal_.set_bounded(false);
    }
    // The entry that ends before word i, which becomes its first one.
    Entry entry_before(size_t *i) const {
        const uint32_t word = journal_[--*i];
        Entry entry{static_cast<int32_t>(word & kLong),
                    static_cast<int32_t>(word >> 20 & (kMostTables - 1)),
                    static_cast<Kind>(word >> 30)};
        if (SKIHMM_UNLIKELY(entry.cell == kLong)) {
            entry.table = static_cast<int32_t>(journal_[--*i]);
            entry.cell = static_cast<int32_t>(journal_[--*i]);
        }
        return entry;
    }

    SKIHMM_INLINE void take_from(const Lifted &lifted, bitgen_t *g) {
        take_out(cells_[lifted.cell], lifted, g);
        if (lifted.n == 0) queue(lifted.cell);
        note(lifted.cell, lifted.table, lifted.closes ? Kind::kClose : Kind::kRemove);
    }
    // One customer more: at a new table; where the pair's customer number u sits.
    SKIHMM_INLINE void note_table(int32_t c) {
        Cell &cell = cells_[c];
        if (cell.n_customers == 0) cell.n_tables = 1;
        else open_table(cell, 1);
        note(c, cell.n_tables - 1, Kind::kOpen);
    }
    SKIHMM_INLINE void sit_alone(int32_t c, bitgen_t *g) {
        Cell &cell = cells_[c];
        note_table(c);
        if constexpr (Base::kIsRoot) change_tables(cell.dish, 1);
        else base.add(parents_[cell.row], cell.dish, g, &links_[c].above);
        change_customers(cell, 1);
    }
    SKIHMM_INLINE void join(int32_t c, int64_t u) {
        Cell &cell = cells_[c];
        int32_t table = 0;
        if (cell.n_tables > 1) {
            int32_t *sizes = pool_.at(cell.pool);
            table = table_at(sizes, u);
            ++sizes[table];
        }
        note(c, table, Kind::kAdd);
        change_customers(cell, 1);
    }
    SKIHMM_INLINE void take_out(Cell &cell, const Lifted &lifted, bitgen_t *g) {
        if (cell.n_tables > 1) --pool_.at(cell.pool)[lifted.table];
        change_customers(cell, -1);
        if (!lifted.closes) return;
        close_table(cell, lifted.table);
        if constexpr (Base::kIsRoot) change_tables(cell.dish, -1);
        // planted: emptied table
        else base.take(parents_[cell.row], cell.dish, g, &links_[lifted.cell].above);
    }
    // The table at which customer number u, 0 <= u < lifted.n, sits when the lifted one has
    // gone, and the number after that of its last customer.
    SKIHMM_INLINE double find_table(const Lifted &lifted, double u, int32_t *table) const {
        *table = 0;
        if (lifted.n_tables == 1) return lifted.n;
        const int32_t *sizes = pool_.at(cells_[lifted.cell].pool);
        int32_t at = 0;
        int64_t end = sizes[0] - (lifted.table == 0);
        while (u >= end) {
            ++at;
            end += sizes[at] - (at == lifted.table);
        }
        *table = at;
        return static_cast<double>(end);
    }
    SKIHMM_NOINLINE void change_seat(const Lifted &lifted, int32_t table) {
        static_assert(Base::kIsRoot, "customers of a level above come and go at random");
        Cell &cell = cells_[lifted.cell];
        take_out(cell, lifted, nullptr);
        if (table == kNewTable) {
            open_table(cell, 1);
            change_tables(cell.dish, 1);
        } else if (cell.n_tables > 1) {
            // Where a table closed the last one has taken its number.
            ++pool_.at(cell.pool)[table == cell.n_tables ? lifted.table : table];
        }
        change_customers(cell, 1);
    }
    // The table at which the customer number u (0 .. n-1, tables in order) sits.
    static int32_t table_at(const int32_t *sizes, int64_t u) {
        int32_t table = 0;
        while ((u -= sizes[table]) >= 0) ++table;
        return table;
    }
    SKIHMM_NOINLINE int32_t find_to_remove(int32_t row, int32_t dish) const {
        const int32_t c = index_.find(row, dish);
        if (c < 0) throw std::logic_error("no such customer to remove");
        return c;
    }
    SKIHMM_NOINLINE int32_t obtain(int32_t row, int32_t dish) {
        int32_t c = index_.find(row, dish);
        if (c >= 0) return c;
        if (free_cells_.empty()) {
            c = static_cast<int32_t>(cells_.size());
            cells_.emplace_back();
        } else {
            c = free_cells_.back();
            free_cells_.pop_back();
        }
        Cell &cell = cells_[c];
        cell = Cell{};
        cell.row = row;
        cell.dish = dish;
        cell.in_row = rows[row].append(dish, c);
        if constexpr (Base::kIsRoot) {
            cell.in_dish = columns[dish].append(row, c);
        } else {
            links_.resize(cells_.size());
            links_[c] = Link{dish * n_groups_ + row % n_groups_, -1};
            cell.in_dish = columns[links_[c].column].append(row / n_groups_, c);
        }
        index_.insert(row, dish, c);
        return c;
    }
    void change_customers(Cell &cell, int32_t by) {
        cell.n_customers += by;
        row_customers[cell.row] += by;
        rows[cell.row].counts[cell.in_row] = cell.n_customers;
        columns[column_of(cell)].counts[cell.in_dish] = cell.n_customers;
    }
    static constexpr int32_t kWidest = 65535;
    void set_dense(const Cell &cell) {
        const size_t row = cell.row, dish = cell.dish;
        const uint16_t n = static_cast<uint16_t>(std::min(cell.n_customers, kWidest));
        uint16_t &shown = dense_rows_[row * stride_ + dish];
        if (shown == n) return;
        n_wide_ += (n == kWidest) - (shown == kWidest);
        shown = n;
        dense_columns_[dish * stride_ + row] = n;
    }
    void rebuild_dense() {
        const size_t n = std::max(rows.size(), columns.size());
        n_wide_ = 0;
        stride_ = 0;
        if (n == 0 || n > static_cast<size_t>(dense_limit_)) {
            dense_rows_ = WideVector<uint16_t>();
            dense_columns_ = WideVector<uint16_t>();
            return;
        }
        // Whole vectors of 32, and no power of two between rows (cache sets).
        stride_ = (n + 31) / 32 * 32;
        if (stride_ % 256 == 0) stride_ += 32;
        dense_rows_.assign(n * stride_, 0);
        dense_columns_.assign(n * stride_, 0);
        for (const Cell &cell : cells_) {
            if (cell.row >= 0) set_dense(cell);
        }
    }
    void change_tables(int32_t dish, int32_t by) {
        base.change(dish, by);
        update_scale();
    }
    // Add a table of one customer to the cell, which has a table already; n_customers is still
    // the count before.
    SKIHMM_NOINLINE void open_table(Cell &cell, int32_t size) {
        if (cell.n_tables == 1) {
            cell.order = 1;
            cell.pool = pool_.take(1);
            pool_.at(cell.pool)[0] = cell.n_customers;
        } else if (cell.n_tables == 1 << cell.order) {
            const int32_t wider = pool_.take(cell.order + 1);
            std::copy_n(pool_.at(cell.pool), cell.n_tables, pool_.at(wider));
            pool_.give_back(cell.pool, cell.order);
            cell.pool = wider;
            ++cell.order;
        }
        pool_.at(cell.pool)[cell.n_tables] = size;
        ++cell.n_tables;
    }
    // Remove table number `table`, now empty; n_customers is the count afterwards.
    void close_table(Cell &cell, int32_t table) {
        --cell.n_tables;
        if (cell.n_tables == 0) return;
        int32_t *sizes = pool_.at(cell.pool);
        sizes[table] = sizes[cell.n_tables];
        if (cell.n_tables == 1) {
            pool_.give_back(cell.pool, cell.order);
            cell.pool = -1;
        }
    }
    // Inverse of close_table: a table of one customer at place number `table`;
    // n_customers is still the count without that customer.
    void reopen_table(Cell &cell, int32_t table) {
        if (cell.n_tables == 0) {
            cell.n_tables = 1;
            return;
        }
        open_table(cell, 1);
        int32_t *sizes = pool_.at(cell.pool);
        std::swap(sizes[table], sizes[cell.n_tables - 1]);
    }
    // A cell that became empty keeps its record until the move ends: most moves put the
    // same customer back, and handles in the journal stay valid.
    void queue(int32_t c) {
        if (cells_[c].pending) return;
        cells_[c].pending = 1;
        pending_.push(c);
    }
    void sweep_pending() {
        for (size_t i = 0; i < pending_.size(); ++i) {
            const int32_t c = pending_[i];
            cells_[c].pending = 0;
            if (cells_[c].n_customers == 0) erase(c);
        }
        pending_.clear();
    }
    void erase(int32_t c) {
        Cell &cell = cells_[c];
        unlist(rows[cell.row], cell.in_row, true);
        unlist(columns[column_of(cell)], cell.in_dish, false);
        index_.erase(cell.row, cell.dish);
        cell.row = -1;
        free_cells_.push_back(c);
    }
    void unlist(Line &line, int32_t at, bool by_row) {
        const int32_t last = line.size - 1;
        if (at != last) {
            line.ids[at] = line.ids[last];
            line.counts[at] = line.counts[last];
            line.cells[at] = line.cells[last];
            Cell &moved = cells_[line.cells[at]];
            (by_row ? moved.in_row : moved.in_dish) = at;
        }
        line.drop_last();
    }
    void update_scale() {
        if constexpr (Base::kIsRoot) scale_ = base.scale(alpha);
    }

    std::vector<Cell> cells_;
    std::vector<int32_t> free_cells_;
    Arena pool_;                               // table sizes of cells with many tables
    CellIndex index_;
    Stack<uint32_t> journal_;                  // words of entries
    std::unique_ptr<SeatingRecord> before_;    // of a large move, if the journal has forgotten
    Stack<int32_t> pending_;
    int32_t dense_limit_ = 0;
    size_t stride_ = 0;          // 0: no dense copies
    int64_t n_wide_ = 0;         // cells with 65,535 customers or more
    WideVector<uint16_t> dense_rows_, dense_columns_;
    double scale_ = 1.0;                       // base.scale(alpha), under a root
    std::vector<int32_t> parents_;             // else by row: the restaurant of the base
    std::vector<Link> links_;                  // and by cell
    int32_t n_groups_ = 1;
};

using SymbolRestaurants = Restaurants<SymbolBase>;

}  // namespace skihmm
