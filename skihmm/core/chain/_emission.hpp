// Emissions: the sufficient statistics of all states' observations, for one chain.
//
// States are slots (_slots.hpp); kNew never has observations.  Every kernel works on an Emission;
// optional interfaces, queried once, serve some of them: one franchise over symbols (symbols),
// parameters during a sweep (parameters), and what only conjugate families do (family_part).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "_archive.hpp"
#include "_family_part.hpp"
#include "_math.hpp"
#include "_product.hpp"
#include "_restaurants.hpp"
#include "_slots.hpp"
#include "_workers.hpp"

namespace skihmm {

// Floor the product, not each factor: otherwise a state that two factors rule out would weigh as
// much as one that a single factor rules out.

// Emission::fill_probs from log probabilities.
inline double fill_floored(int32_t n, const double *logs, double *out) {
    const double largest = *std::max_element(logs, logs + n);
    if (largest == -INFINITY) {
        // Inside a move that will be rejected: any proposal will do.
        std::fill_n(out, n, 1.0);
        return 0.0;
    }
    fill_exp(n, logs, largest, kLeastLog, out);
    return largest;
}

// Emission::fill_pair from log probabilities.
inline void fill_floored_pair(const double *logs, double *out) {
    const double largest = std::max(logs[0], logs[1]);
    for (int i = 0; i < 2; ++i)
        out[i] = largest == -INFINITY ? 1.0 : std::exp(std::max(logs[i] - largest, kLeastLog));
}

// Floor EmissionParameters::likelihoods in place; a likelihood may be zero.
inline void floor_likelihoods(int32_t n_slots, const int32_t *occupancy, double *row) {
    const auto counts = [&](int32_t k) { return k == kNew || occupancy[k] > 0; };
    double largest = -INFINITY;
    for (int32_t k = 0; k < n_slots; ++k)
        if (counts(k)) largest = std::max(largest, row[k]);
    for (int32_t k = 0; k < n_slots; ++k) {
        const bool is_possible = counts(k) && row[k] > -INFINITY;
        row[k] = is_possible ? std::exp(std::max(row[k] - largest, kLeastLog)) : 0.0;
    }
}

// Replace p[k] by log(p[k]) + log_scale; zero becomes -infinity.
SKIHMM_CLONES static void take_logs(int32_t n, double log_scale, double *p) {
    for (int32_t k = 0; k < n; ++k)
        p[k] = p[k] > 0.0 ? log_of(std::max(p[k], 1e-300)) + log_scale : -INFINITY;
}

// One symbol's probability under every state, sparse plus smooth:
//     p(y | k) = (count_k + smooth) / (totals[k] + offset),
// count_k > 0 only for the listed states.  Lists are padded like a Line.
struct SymbolColumn {
    const int32_t *ids = nullptr;       // a count of 0 is possible inside a move
    const int32_t *counts = nullptr;
    int32_t size = 0;
    double smooth = 1.0;
};

// An emission that is one franchise over the symbols of one column; codes -1: missing.
// Kernels that are compiled for it have everything inlined.
struct SeatingEmission {
    static constexpr bool kIsSeating = true;
    SymbolRestaurants *seating = nullptr;
    const int32_t *codes = nullptr;
    int32_t *hints = nullptr;           // cell of every step (Restaurants::add)

    SKIHMM_INLINE void add(int64_t t, int32_t k, bitgen_t *g, Product *r) const {
        if (SKIHMM_LIKELY(codes[t] >= 0))
            r->multiply(seating->add(k, codes[t], g, hints + t));
    }
    SKIHMM_INLINE void remove(int64_t t, int32_t k, bitgen_t *g, Product *r) const {
        if (SKIHMM_LIKELY(codes[t] >= 0))
            r->multiply(seating->remove(k, codes[t], g, hints + t));
    }
    bool has_tables() const { return true; }
    void commit() const { seating->commit(); }
    void commit_same() const { seating->commit_same(); }
    void rollback() const { seating->rollback(); }
    void look_ahead(int64_t, int64_t) const {}
    // False if y[t] is missing: p = 1 for all states.
    bool column(int64_t t, SymbolColumn *out) const {
        const int32_t symbol = codes[t];
        if (SKIHMM_UNLIKELY(symbol < 0)) return false;
        const Line &line = seating->columns[symbol];
        out->ids = line.ids;
        out->counts = line.counts;
        out->size = line.size;
        out->smooth = seating->new_table(symbol);
        return true;
    }
    const int32_t *totals(double *offset) const {
        *offset = seating->alpha;
        return seating->row_customers.data();
    }
    // out[i] = p(y[t] | state k[i]) up to a factor that is common to the two.
    void fill_pair(int64_t t, const int32_t *k, double *out) const {
        const int32_t symbol = codes[t];
        for (int i = 0; i < 2; ++i) out[i] = symbol < 0 ? 1.0 : seating->prob(k[i], symbol);
    }
    void prefetch_step(int64_t t) const {
        SKIHMM_PREFETCH(codes + t);
        SKIHMM_PREFETCH(hints + t);
    }
    void prefetch_cell(int64_t t) const { seating->prefetch_cell(hints[t]); }
    void prefetch_lists(int64_t t) const {
        seating->prefetch_lists(hints[t]);
        if (codes[t] < 0) return;
        const Line &line = seating->columns[codes[t]];
        SKIHMM_PREFETCH(line.ids);
        SKIHMM_PREFETCH(line.counts);
    }
};

// Emissions whose parameters can be drawn.  From draw_parameters to reseat the statistics
// stay as they are, whatever becomes of the labels; only Emission::resize may come between.
class EmissionParameters {
  public:
    virtual ~EmissionParameters() = default;
    // Draw all parameters given the statistics: parameters that states share, and parameters of the
    // listed slots, occupied or not (a state that has emitted nothing).
    virtual void draw_parameters(const std::vector<int32_t> &slots, const Workers &workers,
                                 bitgen_t *g) = 0;
    // Parameters of a state that has emitted y[t] and nothing else.
    virtual void draw_newborn(int32_t k, int64_t t, bitgen_t *g) = 0;
    // p(y[t] | k) side by side for all slots, up to a common factor; slot kNew has the probability
    // of a new state, its parameters integrated out.  Slots with occupancy[k] = 0 hold anything
    // finite.  Valid until the next call.
    virtual const double *likelihoods(int64_t t, const int32_t *occupancy) = 0;
    // Log likelihoods of row t, not scaled; free slots hold anything.
    virtual void fill_log_row(int64_t t, const int32_t *occupancy, double *out) = 0;
    // out[i] = log p(y[t] | slots[i]) of slots that are drawn.
    virtual void fill_log_likelihoods(int64_t t, const int32_t *slots, int32_t n,
                                      double *out) const = 0;
    // Whether threads may do that at the same time.
    virtual bool is_concurrent() const { return true; }
    // Whether likelihoods are a table, with p(y[t] | k) of all slots side by side in a row,
    // nullptr if y[t] is missing.
    virtual bool is_table() const { return false; }
    virtual const double *table_row(int64_t) const { return nullptr; }
    // Seat the statistics of states[t] = the slot of every step, given the parameters that states
    // share; other parameters are integrated out.
    virtual void reseat(const int32_t *states, const Workers &workers, bitgen_t *g) = 0;
};

// A column of the data in predictions.
struct PredictedColumn {
    int32_t n_symbols = 0;      // 0: a column of numbers
    bool is_angle = false;
    // Numbers of the predictive distribution of a state: the probabilities of all symbols, or the
    // mean; of an angle the mean of exp(i angle), cosine before sine.
    int32_t n_numbers() const { return n_symbols > 0 ? n_symbols : 1 + is_angle; }
};

class ParticleCounts;

class Emission {
  public:
    static constexpr bool kIsSeating = false;
    int64_t n_steps = 0;
    int32_t n_slots = 0;
    bool is_closed = false;     // whether p may be zero in every new state
    FamilyPart *family_part = nullptr;      // of a conjugate family
    std::vector<std::shared_ptr<Emission>> parts;   // of a product

    virtual ~Emission() = default;
    // Add y[t] to state k.  Multiplies into r the predictive probability (density) of y[t]
    // under state k as it was before; a missing y[t] is a no-op with factor one.
    virtual void add(int64_t t, int32_t k, bitgen_t *g, Product *r) = 0;
    // Remove y[t] from state k.  Multiplies into r the predictive probability afterwards.
    virtual void remove(int64_t t, int32_t k, bitgen_t *g, Product *r) = 0;
    // out[k] = p(y[t] | k) / exp(returned value), for every slot; O(K).  No value may be zero: a
    // negligible one is kept at a tiny positive number.
    virtual double fill_probs(int64_t t, double *out) = 0;
    // out[k] = log p(y[t] | k) as it is, however small, -infinity if that is zero.
    virtual void fill_logs(int64_t t, double *out) {
        const double log_scale = fill_probs(t, out);
        take_logs(n_slots, log_scale, out);
    }
    // out[i] = p(y[t] | states[i]) for i = 0, 1, up to a factor common to the two.
    virtual void fill_pair(int64_t t, const int32_t *states, double *out) = 0;
    // Log probabilities of row t under two states, not scaled.
    virtual void fill_log_pair(int64_t t, const int32_t *states, double *out) {
        fill_pair(t, states, out);
        take_logs(2, 0.0, out);
    }
    // out[i] = log p(the first i + 1 observations of steps [start, stop) | observations of state
    // k), one after the other, from the last step on if `backwards`; up to a factor common to all
    // states.  For proposals, which need no exact values: sharing between states may be ignored.
    virtual void fill_prefixes(int64_t start, int64_t stop, int32_t k, bool backwards,
                               double *out) = 0;
    // Whether customers are seated at tables.  If not, statistics depend on the labels alone.
    virtual bool has_tables() const { return true; }
    // End of a move: keep it, or undo it exactly.
    virtual void commit() = 0;
    virtual void rollback() = 0;
    // Storage for n slots; only between moves.
    virtual void resize(int32_t n) = 0;
    // log p(y, seating | states), nats.
    virtual double log_joint() const = 0;
    // Draw the hyperparameters, and the weights of rows, which families draw given the same
    // parameters of the states.  FamilyPart::draw_hidden draws other numbers.
    virtual void draw_hyperparameters(bitgen_t *g) = 0;
    // Recompute statistics with rounding errors from states[t] = the slot of every step, when a
    // record is made or loaded.
    virtual void recount(const int32_t *) {}
    virtual size_t n_bytes() const = 0;

    // ---- records: the statistics of states 0, 1, ..., and the parameters that states share

    // Write slot k as state labels[k]; kStart has the last label.
    virtual void write(const Archive &archive, const std::vector<int32_t> &labels) = 0;
    // Refuse, without any change, a record of other observations or states.
    virtual void check_record(const Archive &archive, const std::vector<int32_t> &labels) = 0;
    // Load a record over n states, with state k in slot kFirst + k.  The data of a posterior draw are
    // unknown: all that can be checked without them is checked here.
    virtual void load(const Archive &archive, int32_t n_states) = 0;
    // Load only the parameters that states share.
    virtual void load_shared(const Archive &) {}
    // The difference from a recount of the observations in these slots; empty without any.
    virtual std::string check(const std::vector<int32_t> &slots) = 0;

    // Inputs of a step.
    virtual int32_t n_inputs() const { return 0; }
    // Re-read observations that the caller has changed in place.  False if copies depend on them.
    virtual bool reread() { return false; }
    // Numbers of tables of all columns, by depth of their restaurants.
    virtual std::vector<int64_t> table_counts() const { return {}; }
    // For particle filters: add all columns with the emissions of the first n_states states.
    virtual void add_to(ParticleCounts *, int32_t) const {}

    // ---- predictions of a part, column by column

    virtual std::vector<PredictedColumn> columns() const { return {}; }
    // Predictive distributions of the states in n slots: of every column those of slots[0],
    // slots[1], ...  `inputs` are those of each, one after the other; NULL: of the first step of a
    // sequence.
    virtual void fill_predictives(const int32_t *, int64_t, const double *, double *) {}
    // Draw from them, of symbols in column c one of the first n_known[c]: the n values of every
    // column.
    virtual void draw_values(const int32_t *, int64_t, const double *, const int32_t *, double *,
                             bitgen_t *) {}

    // ---- capabilities, null without

    virtual SeatingEmission *symbols() { return nullptr; }
    virtual EmissionParameters *parameters() { return nullptr; }

    // ---- what a family does in its own way, a product part by part, and others step by step

    // The parts of a product; another emission is its own part.
    void list_parts(std::vector<Emission *> *out) {
        if (parts.empty()) out->push_back(this);
        for (const auto &part : parts) part->list_parts(out);
    }
    // From now on rows are only evaluated, under fixed statistics: then observed entries of a row
    // count even if the row could not be added.
    void only_evaluate() {
        if (family_part) family_part->only_evaluate();
        for (const auto &part : parts) part->only_evaluate();
    }
    // A hint: kernels will call fill_probs for most of the steps [start, stop) before the
    // statistics change.
    void look_ahead(int64_t start, int64_t stop) {
        if (family_part) family_part->look_ahead(start, stop);
        for (const auto &part : parts) part->look_ahead(start, stop);
    }
    // fill_pair of steps [start, stop), one after the other.
    void fill_pairs(int64_t start, int64_t stop, const int32_t *states, double *out) {
        if (family_part && family_part->fill_pairs(start, stop, states, out)) return;
        for (int64_t t = start; t < stop; ++t, out += 2) fill_pair(t, states, out);
    }
    // The last prefix for two states, the states of remove_steps if that was called.
    void fill_whole(int64_t start, int64_t stop, const int32_t *states, double *out) {
        if (family_part && family_part->fill_whole(start, stop, states, out)) return;
        if (!parts.empty()) {
            double logs[2];
            out[0] = out[1] = 0.0;
            for (const auto &part : parts) {
                part->fill_whole(start, stop, states, logs);
                for (int i = 0; i < 2; ++i) out[i] += logs[i];
            }
            return;
        }
        std::vector<double> prefixes(stop - start);
        for (int i = 0; i < 2; ++i) {
            fill_prefixes(start, stop, states[i], false, prefixes.data());
            out[i] = prefixes.back();
        }
    }
    // Whether restricted scans may allocate observations, which needs statistics without tables, and
    // are of use.
    bool allows_scans() const {
        if (parts.empty()) return family_part && family_part->allows_scans();
        return std::all_of(parts.begin(), parts.end(),
                           [](const auto &part) { return part->allows_scans(); });
    }
    // Remove steps [start, stop) of an emission without tables.
    void remove_block(int64_t start, int64_t stop, const int32_t *labels, Product *r) {
        if (family_part) return family_part->remove_block(start, stop, labels, r);
        for (const auto &part : parts) part->remove_block(start, stop, labels, r);
        for (int64_t t = stop; parts.empty() && t-- > start;)
            remove(t, labels[t - start], nullptr, r);
    }
    // Without tables: remove n steps, which are all of the states two[0] and two[1], or add steps
    // to these after that.  Returns by how much log p of the observations falls or grows.
    double remove_steps(const int32_t *two, const int64_t *steps, size_t n,
                        const int32_t *labels) {
        if (family_part) return family_part->remove_steps(two);
        if (!parts.empty())
            return total([&](Emission &part) { return part.remove_steps(two, steps, n, labels); });
        Product r;
        for (size_t i = n; i-- > 0;) remove(steps[i], labels[i], nullptr, &r);
        return r.log();
    }
    double add_steps(const int32_t *two, const int64_t *steps, size_t n, const int32_t *labels) {
        if (family_part) return family_part->add_steps(two, steps, n, labels);
        if (!parts.empty())
            return total([&](Emission &part) { return part.add_steps(two, steps, n, labels); });
        Product r;
        for (size_t i = 0; i < n; ++i) add(steps[i], labels[i], nullptr, &r);
        return r.log();
    }
    // log_joint with row weights integrated out.  Compare state paths by it: drawn weights add more
    // noise than paths differ by.
    double log_joint_without_weights() const {
        if (family_part) return family_part->log_joint_without_weights();
        if (parts.empty()) return log_joint();
        return total([](const Emission &part) { return part.log_joint_without_weights(); });
    }

    // A new table may serve the successor's state, if that has lost its only table: propose it also
    // where no state may be new.
    void allow_table(int32_t state, double *probs) const {
        if (is_closed) probs[kNew] = std::max(probs[kNew], probs[state]);
    }

    void commit_same() { commit(); }
    void prefetch_step(int64_t) const {}
    void prefetch_cell(int64_t) const {}
    void prefetch_lists(int64_t) const {}

  protected:
    // The sum of a number of every part.
    template <class Number> double total(Number number) const {
        double sum = 0.0;
        for (const auto &part : parts) sum += number(*part);
        return sum;
    }
};

// The only place that chooses between the two kinds of compiled kernel: make(emission), of a
// SeatingEmission or of an Emission.
template <class Make>
auto with_compiled(Emission &emission, Make make) {
    // planted: kernels for symbols
    if (SeatingEmission *symbols = emission.symbols()) return make(*symbols);
    return make(emission);
}

}  // namespace skihmm
