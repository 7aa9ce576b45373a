// The restaurants of a Chinese restaurant franchise and who sits where, with exact undo.
//
// A `Restaurants` is all the customers of one level of a franchise: restaurants j (rows), dishes
// k, n_jk customers of (j, k) at m_jk tables.  Its base says where the dish of a new table
// comes from: a root or, in a tree (_tree.hpp), the level above, in which every table is a
// customer.  Transitions (restaurant = previous state, dish = next state) have an InfiniteRoot,
// emissions (restaurant = state, dish = symbol) a SymbolBase, which is fixed for Dirichlet
// emissions.  _law.hpp has the predictive probability.
//
// Notation of arXiv 1106.0474 beside the names here (docs/notation.md has the table):
//   n_jk  cell.n_customers      m_jk  cell.n_tables       alpha_0  alpha
//   n_j   row_customers[j]      m_.k  dish_tables[k]      gamma    gamma
//   m_..  n_tables              getProb  prob             addCustomer  add
// (dish_tables, n_tables and gamma belong to the root.)
// The paper prints m_.k + gamma as the denominator of the base measure; the joint that it
// is derived from has m_.. + gamma, and only that sums to one.  The code uses the latter.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "_cells.hpp"
#include "_dense_counts.hpp"
#include "_journal.hpp"
#include "_law.hpp"
#include "_math.hpp"
#include "_random.hpp"
#include "_record.hpp"
#include "_roots.hpp"
#include "_seat_counts.hpp"
#include "_table_sizes.hpp"

namespace skihmm {

// A customer who is about to leave, or none (`table` is -1): see Restaurants::lift.
struct Lifted {
    int32_t cell = -1;
    int32_t table = 0;      // his table, which leaves with him if `closes`
    int32_t n = 0;          // customers of the cell without him
    int32_t n_tables = 0;   // its tables with him
    bool closes = false;
};

template <class Base>
class Restaurants : public Cells<Base::kIsRoot> {
    using Listed = Cells<Base::kIsRoot>;

  public:
    using Listed::columns, Listed::count, Listed::row_customers, Listed::rows;
    using Lifted = skihmm::Lifted;
    static constexpr bool kIsRoot = false;
    static constexpr bool has_tables() { return true; }

    double alpha = 1.0;
    Base base;
    DenseCounts dense;                      // while rows and dishes are not too many

    // ---- set-up

    // Only in a level of a tree: the restaurant one level above in which each row is a customer.
    // With groups, row j n_groups + g has the parent g; see Cells::set_groups.
    void set_parents(std::vector<int32_t> parents, int32_t n_groups = 1) {
        parents_ = std::move(parents);
        this->set_groups(n_groups);
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
    void resize(int32_t n_rows, int32_t n_dishes) {
        this->resize_lists(n_rows, n_dishes);
        if constexpr (Base::kIsRoot) base.dish_tables.resize(n_dishes, 0);
        rebuild_dense();
    }
    // Keep dense copies of the counts while rows and dishes are at most `limit`.
    void set_dense_limit(int32_t limit) {
        if (limit == dense_limit_) return;
        dense_limit_ = limit;
        rebuild_dense();
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
    // new_table in a restaurant of any seating.
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
        for (int32_t k = 0; k < this->n_dishes(); ++k) out[k] = new_table_in(row, k) / all;
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
    // The counts in this restaurant and its ancestors: counts[d] by depth, up to `depth`, its own.
    void count_path(int32_t depth, int32_t row, int32_t dish, int32_t *hint,
                    int32_t *counts) const {
        const int32_t c = find(row, dish, hint);
        counts[depth] = c < 0 ? 0 : cells_[c].n_customers;
        int32_t none = -1;
        base.count_path(depth - 1, parents_[row], dish, c < 0 ? &none : &links_[c].above, counts);
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
            journal_.note(c, 0, Kind::kAdd);
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
    // add where it has been drawn already whether the customer opens a table (certain if the pair
    // has none).
    SKIHMM_INLINE void add(int32_t row, int32_t dish, bool opens, bitgen_t *g,
                           int32_t *hint) {
        int32_t c = *hint;
        if (!is_cell(c, row, dish)) *hint = c = obtain(row, dish);
        if (opens) sit_alone(c, g);
        else join(c, below(g, cells_[c].n_customers));
    }

    // add in a tree of restaurants, where the number of opened tables, one above the other, has
    // been drawn: 0, or as many as there are levels with the first table, or fewer.
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
    // remove without the probability.
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
        if (SKIHMM_UNLIKELY(!is_cell(c, row, dish))) *hint = c = this->find_to_remove(row, dish);
        const Cell &cell = cells_[c];
        const int32_t n = cell.n_customers, n_tables = cell.n_tables;
        int32_t table = 0;
        bool closes = n == 1;
        if (SKIHMM_UNLIKELY(n_tables > 1)) {
            table = sizes_.table_at(cell, below(g, n));
            closes = sizes_.of(cell)[table] == 1;
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
    // The table at which the customer sits down again (numbered as before lift) or kNewTable, by
    // the law of `add`; `fresh` is the weight of a new table.  `bits` are the first 21 bits of a
    // uniform; more are drawn only if these do not decide.
    static constexpr int kChoiceBits = 21;
    SKIHMM_INLINE int32_t choose_table(const Lifted &lifted, double fresh, uint32_t bits,
                                       bitgen_t *g) const {
        if (lifted.n == 0 || !base.has_tables()) return lifted.closes ? kNewTable : 0;
        // The uniform lies in [bits, bits + 1) / 2^21: mostly at a single table.
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

    // A large move begins, of at most so many customers that come or go.
    void expect(size_t n) {
        if constexpr (Base::kIsRoot)
            if (Journal::prefers_copy(n, this->n_live() + count_tables()))
                return journal_.keep_copy(record());
        journal_.reserve(n);
    }
    // End of an accepted move: clear the journal.
    void commit() {
        if (SKIHMM_UNLIKELY(journal_.has_forgotten())) {
            fill_dense();
        } else if (dense.exist()) {
            journal_.for_newest_first([&](const Journal::Entry &entry) {
                const Cell &cell = cells_[entry.cell];
                dense.set(cell.row, cell.dish, cell.n_customers);
            });
        }
        commit_same();
    }
    // commit after a move that put every customer back into its place (tables apart): no count has
    // changed.
    void commit_same() {
        journal_.clear();
        this->sweep_pending();
    }
    // Undo every operation since the last commit or rollback, newest first: afterwards
    // every table has its earlier size.  Seating the old customers anew would draw their tables
    // from the wrong distribution.
    void rollback() {
        if (SKIHMM_UNLIKELY(journal_.has_forgotten())) {
            const SeatingRecord before = journal_.take_copy();
            return load(before);
        }
        journal_.for_newest_first([&](const Journal::Entry &entry) { undo(entry); });
        journal_.clear();
        this->sweep_pending();
    }

    // ---- records

    SeatingRecord record() const {
        SeatingRecord out;
        std::vector<std::pair<int32_t, int32_t>> order;
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
                sizes_.record(cell, &out.sizes);
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
    // load for other numbers of rows and dishes.  Cells are cleared first, because they may be
    // outside afterwards.
    void load(const SeatingRecord &record, int32_t n_rows, int32_t n_dishes) {
        forget();
        resize(n_rows, n_dishes);
        fill(record);
    }

    // Under a root: replace everything by counted customers, seated by their law; see seat_counts.
    void reseat(const PairCounts &counts, const double *fresh, bitgen_t *g) {
        load(seat_counts(counts, fresh, base.has_tables(), g));
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
                sizes_.add_log_orders(cell, &lp);
            }
        }
        if constexpr (Base::kIsRoot) base.add_log_joint(&lp);
        return lp;
    }

    size_t n_bytes() const {
        size_t bytes = this->n_bytes_of_cells() + sizes_.n_bytes() + journal_.n_bytes()
                       + dense.n_bytes() + parents_.capacity() * sizeof(int32_t);
        if constexpr (Base::kIsRoot) bytes += base.dish_tables.capacity() * sizeof(int32_t);
        return bytes;
    }

    // Check every count, list and index against a recount; returns the fault, or nullptr.
    const char *check() const {
        if (const char *wrong = this->check_cells()) return wrong;
        std::vector<int64_t> by_dish(columns.size(), 0);
        int64_t n_tables = 0;
        for (const Cell &cell : cells_) {
            if (cell.row < 0) continue;
            if (dense.exist() && !dense.shows(cell.row, cell.dish, cell.n_customers))
                return "the dense counts disagree with a cell";
            if (!base.has_tables()) {
                if (cell.n_tables) return "tables under a fixed base";
                continue;
            }
            if (const char *wrong = sizes_.check(cell)) return wrong;
            by_dish[cell.dish] += cell.n_tables;
            n_tables += cell.n_tables;
        }
        if (dense.are_complete() && dense.count_positive() != static_cast<int64_t>(this->n_live()))
            return "the dense counts hold dead cells";
        if (!journal_.empty()) return "a move was left open";
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

    // Prefetch the memory of the lists of the pair that `hint` remembers.
    void prefetch_lists(int32_t hint) const {
        if (static_cast<size_t>(hint) >= cells_.size() || cells_[hint].row < 0) return;
        const Cell &cell = cells_[hint];
        sizes_.prefetch(cell);
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
        this->clear_cells();
        sizes_.clear();
        base.clear();
        journal_.clear();
        update_scale();
    }
    // The cells of a record, into an empty seating.
    void fill(const SeatingRecord &record) {
        const int32_t *sizes = record.sizes.data();
        for (size_t i = 0; i < record.rows.size(); ++i) {
            Cell &cell = cells_[obtain(record.rows[i], record.dishes[i])];
            change_customers(cell, record.n_customers[i]);
            sizes_.load(cell, record.n_tables[i], sizes);
            sizes += cell.n_tables;
            base.change(cell.dish, cell.n_tables);
        }
        fill_dense();
        update_scale();
    }
    // Whether every table is a customer of the level above, which may have further customers.
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
    double new_table_at(int32_t c) const {
        const Cell &cell = cells_[c];
        if constexpr (Base::kIsRoot) return new_table(cell.dish);
        // planted: new table of a cell
        else return alpha * base.prob(parents_[cell.row], cell.dish, &links_[c].above);
    }
    void undo(const Journal::Entry &entry) {
        const auto [c, table, kind] = entry;
        Cell &cell = cells_[c];
        switch (kind) {
            case Kind::kAdd:
                sizes_.change(cell, table, -1);
                change_customers(cell, -1);
                if (cell.n_customers == 0) this->queue(c);
                break;
            case Kind::kOpen:
                change_customers(cell, -1);
                sizes_.close(cell, table);
                change_tables(cell.dish, -1);
                if (cell.n_customers == 0) this->queue(c);
                break;
            case Kind::kRemove:
                sizes_.change(cell, table, 1);
                change_customers(cell, 1);
                break;
            case Kind::kClose:
                sizes_.reopen(cell, table);
                change_tables(cell.dish, 1);
                change_customers(cell, 1);
                break;
        }
    }

    SKIHMM_INLINE void take_from(const Lifted &lifted, bitgen_t *g) {
        take_out(cells_[lifted.cell], lifted, g);
        if (lifted.n == 0) this->queue(lifted.cell);
        journal_.note(lifted.cell, lifted.table, lifted.closes ? Kind::kClose : Kind::kRemove);
    }
    // One customer more: at a new table; where the pair's customer number u sits.
    SKIHMM_INLINE void note_table(int32_t c) {
        Cell &cell = cells_[c];
        sizes_.open(cell);
        journal_.note(c, cell.n_tables - 1, Kind::kOpen);
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
        const int32_t table = cell.n_tables > 1 ? sizes_.table_at(cell, u) : 0;
        sizes_.change(cell, table, 1);
        journal_.note(c, table, Kind::kAdd);
        change_customers(cell, 1);
    }
    SKIHMM_INLINE void take_out(Cell &cell, const Lifted &lifted, bitgen_t *g) {
        sizes_.change(cell, lifted.table, -1);
        change_customers(cell, -1);
        if (!lifted.closes) return;
        sizes_.close(cell, lifted.table);
        if constexpr (Base::kIsRoot) change_tables(cell.dish, -1);
        // planted: emptied table
        else base.take(parents_[cell.row], cell.dish, g, &links_[lifted.cell].above);
    }
    // The table at which customer number u, 0 <= u < lifted.n, sits when the lifted customer has
    // gone, and the number after the table's last customer.
    SKIHMM_INLINE double find_table(const Lifted &lifted, double u, int32_t *table) const {
        *table = 0;
        if (lifted.n_tables == 1) return lifted.n;
        const int32_t *sizes = sizes_.of(cells_[lifted.cell]);
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
            sizes_.open(cell);
            change_tables(cell.dish, 1);
        } else {
            // A closed table's number has gone to the last table.
            sizes_.change(cell, table == cell.n_tables ? lifted.table : table, 1);
        }
        change_customers(cell, 1);
    }
    void fill_dense() {
        if (!dense.exist()) return;
        for (const Cell &cell : cells_)
            if (cell.row >= 0) dense.set(cell.row, cell.dish, cell.n_customers);
    }
    void rebuild_dense() {
        dense.resize(std::max(rows.size(), columns.size()), dense_limit_);
        fill_dense();
    }
    void change_tables(int32_t dish, int32_t by) {
        base.change(dish, by);
        update_scale();
    }
    void update_scale() {
        if constexpr (Base::kIsRoot) scale_ = base.scale(alpha);
    }

    using Kind = Journal::Kind;
    using Listed::cells_, Listed::change_customers, Listed::column_of, Listed::find,
        Listed::is_cell, Listed::links_, Listed::obtain;

    TableSizes sizes_;
    Journal journal_;
    int32_t dense_limit_ = 0;
    double scale_ = 1.0;                       // base.scale(alpha), under a root
    std::vector<int32_t> parents_;             // else by row: the restaurant of the base
};

using SymbolRestaurants = Restaurants<SymbolBase>;

}  // namespace skihmm
