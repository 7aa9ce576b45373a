// The restricted collapsed draw: the only code with the Metropolis-Hastings ratio.
//
// MH-RCD, arXiv 1106.0474.  A move takes a block's draws (transitions into its steps, the
// transition into the step after it, its observations) out of the restaurants, newest
// first, collecting r_old; lets a proposal name new labels at the remaining seating s_0;
// seats them in the order of time, collecting r_new; and accepts with probability
//     min(1, (r_new / r_old) * (q(old) / q(new))),
// or else restores every table.  The paper's pseudo-code prints r_old * r_new in the blocked
// sampler; the derivation gives r_new / r_old.
//
// One template over chains, emissions and proposals: calls known at compile time are inlined; the
// rest goes through the virtual functions of Emission and Proposal.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "_chain_state.hpp"
#include "_emission.hpp"
#include "_product.hpp"
#include "_random.hpp"
#include "_slots.hpp"

namespace skihmm {

// ---- one move ----------------------------------------------------------------------------

// s_0 for the symbol of one removed step, whose label is x.
struct SymbolView {
    bool exists = false;                // with it:
    SymbolColumn column;                // of y[t]; entries of x may still count y[t]
    int32_t e_in = 0, e_x = 0;          // observations of x: equal to y[t], all
};

// In the place of an emission: draws only.
struct NoValues {
    static constexpr bool kIsSeating = true;
    void add(int64_t, int32_t, bitgen_t *, Product *) const {}
    void remove(int64_t, int32_t, bitgen_t *, Product *) const {}
};

// Removed customers and those added in their place, for every move of the restricted collapsed
// draw.  The only code that decides on a ratio.
template <class Emission>
class Exchange {
  public:
    Product r_old, r_new, r_observed;

    // The draw of k after label j, made for step t.
    // planted: removal of a draw
    SKIHMM_INLINE void remove_draw(Chain &chain, int32_t j, int32_t k, int64_t t) {
        // planted: factor of a removed draw
        r_old.multiply(
            chain.transitions->remove_draw(t, j, k, chain.bits, &chain.hints[t]));
    }
    SKIHMM_INLINE void add_draw(Chain &chain, int32_t j, int32_t k, int64_t t) {
        // planted: factor of an added draw
        r_new.multiply(chain.transitions->add_draw(t, j, k, chain.bits, &chain.hints[t]));
    }
    // Steps [start, stop) of one sequence with the given labels, the first one after label
    // j: their draws, their observations, and the draw of `follower` (-1: none).  (Values: an
    // emission, or NoValues.)
    // Draws leave in the reverse of the order in which they come.  r_observed: the observations'
    // part of r_old, unless observations are seated.
    template <class Values>
    SKIHMM_INLINE void remove_block(Chain &chain, Values &emission,
                                    int64_t start, int64_t stop, int32_t j,
                                    const int32_t *labels, int32_t follower) {
        bool is_apart = false;          // without tables: all observations together
        if constexpr (!Values::kIsSeating) {
            r_observed.reset();
            is_apart = !emission.has_tables();
            if (is_apart) emission.remove_block(start, stop, labels, &r_observed);
        }
        // planted: removed draw of the follower
        if (SKIHMM_LIKELY(follower >= 0))
            remove_draw(chain, labels[stop - 1 - start], follower, stop);
        for (int64_t t = stop - 1; t >= start; --t) {
            const int32_t k = labels[t - start];
            if (!is_apart)
                emission.remove(t, k, chain.bits, Values::kIsSeating ? &r_old : &r_observed);
            // planted: removed draw of a block
            remove_draw(chain, t > start ? labels[t - 1 - start] : j, k, t);
        }
        if constexpr (!Values::kIsSeating) r_old.multiply(r_observed);
    }
    // Every factor is computed just before its own customer is seated, given all earlier customers,
    // not at s_0.
    template <class Values>
    SKIHMM_INLINE void add_block(Chain &chain, Values &emission,
                                 int64_t start, int64_t stop, int32_t j,
                                 const int32_t *labels, int32_t follower) {
        for (int64_t t = start; t < stop; ++t) {
            const int32_t k = labels[t - start];
            add_draw(chain, j, k, t);  // planted: added draw of a block
            emission.add(t, k, chain.bits, &r_new);
            j = k;
        }
        // planted: added draw of the follower
        if (SKIHMM_LIKELY(follower >= 0)) add_draw(chain, j, follower, stop);
    }
    // Accept with probability min(1, R), R = (r_new / r_old) * (q_old / q_new).  R >= 1
    // needs no random number; a NaN (which no correct kernel makes) rejects.  A proposal of the
    // old path mostly has R = 1 up to rounding, which differs between processors and libraries:
    // it must not decide whether a number is drawn, and with it on all of the chain that follows.
    SKIHMM_INLINE bool is_accepted(Chain &chain, const Product &q_old,
                                   const Product &q_new) const {
        const Sides sides = weigh(q_old, q_new);
        if (sides.new_side >= (1.0 - kRounding) * sides.old_side) return true;
        return uniform(chain.bits) * sides.old_side < sides.new_side;
    }
    // Decide by a uniform number u that was drawn before: is u < R?
    // planted: decision by a drawn number
    bool is_accepted(double u, const Product &q_old, const Product &q_new) const {
        const Sides sides = weigh(q_old, q_new);
        return u * sides.old_side < sides.new_side;
    }
    // Restore the old seating table by table.  Adding the old customers again would draw their
    // tables anew, from the wrong distribution.
    void restore(Chain &chain, Emission &emission) const {
        chain.transitions->rollback();
        emission.rollback();
    }
    void keep(Chain &chain, Emission &emission) const {
        chain.transitions->commit();
        emission.commit();
    }

  private:
    struct Sides {  // planted: sides of the ratio
        double old_side, new_side;      // R is the second over the first
    };
    // At least the relative rounding error of R: a thousand factors have about 1e-13.
    static constexpr double kRounding = 1e-10;

    SKIHMM_INLINE Sides weigh(const Product &q_old, const Product &q_new) const {
        Sides sides{r_old.value * q_new.value, r_new.value * q_old.value};  // planted: the ratio
        const double scale = (r_new.log_scale + q_old.log_scale)
                             - (r_old.log_scale + q_new.log_scale);
        if (SKIHMM_UNLIKELY(scale != 0.0)) weigh_scaled(scale, &sides);
        return sides;
    }
    // Many factors: the two sides may differ by more than a double can.
    static SKIHMM_NOINLINE void weigh_scaled(double scale, Sides *sides) {
        const double log_ratio = std::log(sides->new_side) - std::log(sides->old_side) + scale;
        sides->new_side = std::exp(std::min(log_ratio, 0.0));
        sides->old_side = 1.0;
    }
};

// A move on one block: open, seat the proposed path, decide.
template <class Emission>
class Move : public Exchange<Emission> {
  public:
    using Exchange<Emission>::r_old;
    using Exchange<Emission>::r_new;
    using Exchange<Emission>::r_observed;
    using Transitions = HCRPTransitions;
    int64_t start = 0, stop = 0;
    typename Transitions::Step view;    // s_0 of a block of one step: see fill_views
    SymbolView symbol;

    // s_L -> s_0: the draws leave in the reverse of the order in which they came.
    SKIHMM_INLINE void open(Chain &chain, Emission &emission, int64_t first,
                            int64_t end) {
        is_lifted_ = false;
        start = first;
        stop = end;
        r_old.reset();
        this->remove_block(chain, emission, start, stop, chain.previous(start),
                           &chain.states[start], chain.successor(stop - 1));
    }
    // Fill `view` and `symbol` from an open move of one step.
    void fill_views(Chain &chain, Emission &emission) {
        view.i = chain.previous(start);
        view.x = chain.states[start];
        view.o = chain.successor(start);
        chain.transitions->fill_view(chain.hints[start], view.o >= 0 ? chain.hints[stop] : -1,
                                     &view);
        symbol.exists = false;
        if constexpr (Emission::kIsSeating) {
            double offset;
            symbol.exists = emission.column(start, &symbol.column);
            if (!symbol.exists) return;
            symbol.e_x = emission.totals(&offset)[view.x];
            const SymbolColumn &column = symbol.column;
            symbol.e_in = 0;
            for (int32_t at = 0; at < column.size; ++at)
                if (column.ids[at] == view.x) symbol.e_in = column.counts[at];
        }
    }

    // open and fill_views for one step between two others, without writing: most step-wise
    // proposals repeat the old label, and most repeats change no table.  (On the words of Alice
    // with 350 states a sweep went from 190 to 164 ns per step.)
    // False, and nothing done, for a step that must be opened: at an edge, unobserved, or next to
    // its own label (then its customers share rows, dishes or cells), or if the law of the
    // transitions cannot lift.
    SKIHMM_INLINE bool lift(Chain &chain, Emission &emission, int64_t t) {
        if constexpr (!kLifts) {
            return false;
        } else {
            const Transitions &s = *chain.transitions;
            if (!s.is_plain() || !can_lift(chain, emission, t)) return false;
            s.lift_out(chain.bits, &chain.hints[t + 1], &view);
            lift_value(chain, emission, t);
            s.lift_in(chain.bits, &chain.hints[t], &view);
            fill_symbol(emission, t);
            return true;
        }
    }

    // Remove the lifted customers, as open would have done.
    SKIHMM_NOINLINE void take_away(Chain &chain, Emission &emission) {
        if constexpr (kLifts) {
            Transitions &s = *chain.transitions;
            is_lifted_ = false;
            r_old.reset();
            r_old.multiply(s.take_away(view.out, chain.bits));
            r_old.multiply(emission.seating->take_away(value_, chain.bits));
            r_old.multiply(s.take_away(view.in, chain.bits));
        }
    }

    // s_0 -> s*_L.
    SKIHMM_INLINE void seat(Chain &chain, Emission &emission,
                            const int32_t *path) {
        if (is_lifted_) {
            if (SKIHMM_LIKELY(path[0] == view.x)) {
                seat_lifted<false>(chain, emission, false);
                return;
            }
            take_away(chain, emission);
        }
        seat_path(chain, emission, path);
    }
    // Accept or reject; returns whether accepted.
    SKIHMM_INLINE bool decide(Chain &chain, Emission &emission,
                              const int32_t *path, const Product &q_old,
                              const Product &q_new) {
        // planted: decision on a block
        const bool accepted = this->is_accepted(chain, q_old, q_new);
        if (is_lifted_) {
            if (SKIHMM_LIKELY(accepted)) put_back(chain, emission);
            return accepted;
        }
        if (SKIHMM_UNLIKELY(!accepted)) {
            this->restore(chain, emission);  // planted: rejected block
            return false;
        }
        if (std::equal(path, path + (stop - start), &chain.states[start])) {
            chain.transitions->commit_same();
            emission.commit_same();
            return true;
        }
        this->keep(chain, emission);
        for (int64_t t = start; t < stop; ++t) chain.assign(t, path[t - start]);
        return true;
    }
    // An open move of one step ends with the label k, whose draw opens a table or not: both were
    // drawn from their conditional law given s_0, with the successor's probability *after* that
    // draw.  So nothing is left to decide, and further seating needs no factors.
    SKIHMM_INLINE void complete(Chain &chain, Emission &emission, int32_t k,
                                bool opens) {
        if (is_lifted_) {
            if (SKIHMM_LIKELY(k == view.x)) {
                seat_lifted<true>(chain, emission, opens);
                put_back(chain, emission);
                return;
            }
            take_away(chain, emission);
        }
        complete_open(chain, emission, k, opens);
    }
    // For kernels that cache per-state values and find stale ones by chain.touched: every slot
    // whose counts this block's old labels or `path` may have changed; once the old labels are
    // noted, only labels of `path` that differ.
    void touch(Chain &chain, const int32_t *path) const {
        chain.touched.push(chain.previous(start));
        for (int64_t t = start; t < stop; ++t) chain.touched.push(path[t - start]);
        const int32_t follower = chain.successor(stop - 1);
        if (follower >= 0) chain.touched.push(follower);
    }
    void touch_changed(Chain &chain, const int32_t *path) const {
        for (int64_t t = start; t < stop; ++t)
            if (path[t - start] != chain.states[t]) chain.touched.push(path[t - start]);
    }

  private:
    // Notes the labels of a step that can be lifted.
    SKIHMM_INLINE bool can_lift(Chain &chain, Emission &emission, int64_t t) {
        if (SKIHMM_UNLIKELY(chain.first[t] || chain.is_last(t) || emission.codes[t] < 0))
            return false;
        const int32_t i = chain.states[t - 1], x = chain.states[t], o = chain.states[t + 1];
        if (i == x || o == x) return false;
        is_lifted_ = true;
        start = t;
        stop = t + 1;
        view.i = i;
        view.x = x;
        view.o = o;
        return true;
    }
    SKIHMM_INLINE void lift_value(Chain &chain, Emission &emission, int64_t t) {
        emission.seating->lift(view.x, emission.codes[t], chain.bits, emission.hints + t,
                               &value_);
    }
    SKIHMM_INLINE void fill_symbol(const Emission &emission, int64_t t) {
        const SymbolRestaurants &e = *emission.seating;
        const int32_t code = emission.codes[t];
        const Line &line = e.columns[code];
        symbol.exists = true;
        symbol.column.ids = line.ids;
        symbol.column.counts = line.counts;
        symbol.column.size = line.size;
        symbol.column.smooth = e.new_table_after(code, -value_.closes);
        symbol.e_in = value_.n;
        symbol.e_x = e.row_customers[view.x] - 1;
    }
    SKIHMM_NOINLINE void seat_path(Chain &chain, Emission &emission,
                                   const int32_t *path) {
        r_new.reset();
        const int32_t j = chain.previous(start), o = chain.successor(stop - 1);
        if constexpr (!Emission::kIsSeating) {
            if (put_observations_back(chain, emission, path)) {
                NoValues none;
                this->add_block(chain, none, start, stop, j, path, o);
                r_new.multiply(r_observed);
                return;
            }
        }
        this->add_block(chain, emission, start, stop, j, path, o);
    }
    // If `path` is the old path, restore an emission without tables: cheaper than additions, and
    // exact.  Returns whether it did.
    SKIHMM_INLINE bool put_observations_back(const Chain &chain, Emission &emission,
                                             const int32_t *path) const {
        if (Emission::kIsSeating || emission.has_tables()
            || !std::equal(path, path + (stop - start), &chain.states[start]))
            return false;
        emission.rollback();
        return true;
    }
    SKIHMM_NOINLINE void complete_open(Chain &chain, Emission &emission,
                                       int32_t k, bool opens) {
        const bool is_same = k == chain.states[start];
        r_new.reset();
        const int32_t follower = chain.successor(start);
        chain.transitions->add_draw(start, chain.previous(start), k, opens, follower, chain.bits,
                                    &chain.hints[start]);
        if (!put_observations_back(chain, emission, &k))
            emission.add(start, k, chain.bits, &r_new);
        if (follower >= 0) this->add_draw(chain, k, follower, stop);
        if (is_same) {
            chain.transitions->commit_same();
            emission.commit_same();
        } else {
            this->keep(chain, emission);
            chain.assign(start, k);
        }
    }
    // The lifted customers choose tables for the old label again; kKnown: whether the transition
    // into the step opens a table is known.  Factors that r_old and r_new share, such as the
    // observation's, are left out.
    template <bool kKnown>
    SKIHMM_INLINE void seat_lifted(Chain &chain, Emission &emission, bool opens) {
        if constexpr (kLifts) {
            const Transitions &s = *chain.transitions;
            bitgen_t *g = chain.bits;
            const uint64_t bits = g->next_uint64(g->state);
            r_old.reset();
            r_new.reset();
            if constexpr (kKnown) s.choose_in(opens, bits & kChoice, g, &view);
            else opens = s.choose_in(bits & kChoice, g, &view);
            table_value_ = emission.seating->choose_table(value_, symbol.column.smooth,
                                                          bits >> 21 & kChoice, g);
            s.choose_out(opens, bits >> 42 & kChoice, g, &view, &r_old, &r_new);
        }
    }
    SKIHMM_INLINE void put_back(Chain &chain, Emission &emission) {
        if constexpr (kLifts) {
            chain.transitions->put_back(view);
            emission.seating->put_back(value_, table_value_);
        }
    }

    static constexpr bool kLifts = Emission::kIsSeating;
    static constexpr uint32_t kChoice = (1u << SymbolRestaurants::kChoiceBits) - 1;

    bool is_lifted_ = false;
    SymbolRestaurants::Lifted value_;
    int32_t table_value_ = 0;
};

// ---- a sweep -----------------------------------------------------------------------------

// Blocks of steps [start(b), stop(b)), b < n, in the order of their moves.
struct Blocks {
    const int32_t *starts, *stops;      // no stops: one step each
    int64_t n;

    int64_t start(int64_t b) const { return starts[b]; }
    int64_t stop(int64_t b) const { return stops ? stops[b] : starts[b] + 1; }
};

// Blocks of consecutive steps, in random order.  Per sequence the first block's length is uniform
// on 1 .. block_size, further blocks have block_size steps, and the last one the rest: boundaries
// never depend on the labels.  `stops` is for a block_size above one.
inline void cut_blocks(const Chain &chain, int64_t block_size, std::vector<int32_t> *starts,
                std::vector<int32_t> *stops = nullptr) {
    starts->clear();
    starts->reserve(block_size > 1 ? 0 : chain.n_steps);
    for (int64_t t = 0; t < chain.n_steps;) {
        int64_t length = block_size;
        if (block_size > 1 && chain.first[t]) length = 1 + below(chain.bits, block_size);
        starts->push_back(static_cast<int32_t>(t));
        while (length > 1 && !chain.is_last(t)) {
            ++t;
            --length;
        }
        ++t;
        if (block_size > 1) stops->push_back(static_cast<int32_t>(t));
    }
    const int64_t n = static_cast<int64_t>(starts->size());
    for (int64_t i = n - 1; i > 0; --i) {
        const int64_t j = below(chain.bits, i + 1);
        std::swap((*starts)[i], (*starts)[j]);
        if (block_size > 1) std::swap((*stops)[i], (*stops)[j]);
    }
}

// Number of blocks ahead for prefetching.  The order of a sweep is random, which hardware cannot
// predict: first the step's own entries, then their cells, then the data of the cells.  These
// are only hints: labels may change before the block's turn.
enum { kPrefetchSteps = 12, kPrefetchCells = 6, kPrefetchLists = 3 };
// A cache look-up costs a tenth of a move: not worth it for fewer steps or cells.
enum { kCachedSteps = 8192, kCachedCells = 16384 };

template <class Emission>
SKIHMM_INLINE void prefetch_steps(Chain &chain, Emission &emission, int64_t t) {
    SKIHMM_PREFETCH(&chain.states[t]);
    SKIHMM_PREFETCH(&chain.hints[t]);
    SKIHMM_PREFETCH(&chain.first[t]);
    emission.prefetch_step(t);
}
template <class Emission>
SKIHMM_INLINE void prefetch_cells(Chain &chain, Emission &emission,
                                  int64_t start, int64_t stop) {
    for (int64_t t = start; t < stop; ++t) {
        chain.transitions->prefetch_cell(chain.hints[t]);
        emission.prefetch_cell(t);
    }
    if (!chain.is_last(stop - 1)) chain.transitions->prefetch_cell(chain.hints[stop]);
}
template <class Emission>
SKIHMM_INLINE void prefetch_lists(Chain &chain, Emission &emission,
                                  int64_t start, int64_t stop) {
    for (int64_t t = start; t < stop; ++t) {
        chain.transitions->prefetch_lists(chain.hints[t]);
        emission.prefetch_lists(t);
    }
    if (!chain.is_last(stop - 1)) chain.transitions->prefetch_lists(chain.hints[stop]);
}

// A proposal with kReadsView takes blocks of one step and reads s_0 from move.view, move.symbol and
// counts that the removal does not touch; other proposals find s_0 in the seating.  With
// kMayBeExact besides, a proposal may be exact: it draws the label together with the opening of a
// table, from their conditional law, and there is no ratio.

// Moves over blocks; `path` has room for the longest.  Returns the number of accepted moves.
template <class Emission, class Proposal>
int64_t rcd_run(Chain &chain, Emission &emission, Proposal &proposal, const Blocks &blocks,
                int32_t *path) {
    Move<Emission> move;
    Product q_old, q_new;
    int64_t n_accepted = 0;
    // Else all of them are in the caches.
    const bool has_many_steps = chain.n_steps > kCachedSteps;
    const bool has_many_cells = chain.transitions->n_cells() > kCachedCells;
    chain.touched.clear();
    proposal.attach(chain, emission);
    for (int64_t b = 0; b < blocks.n; ++b) {  // planted: blocks of a sweep
        if (has_many_steps && b + kPrefetchSteps < blocks.n)
            prefetch_steps(chain, emission, blocks.start(b + kPrefetchSteps));
        if (has_many_cells && b + kPrefetchCells < blocks.n) {
            prefetch_cells(chain, emission, blocks.start(b + kPrefetchCells),
                           blocks.stop(b + kPrefetchCells));
            prefetch_lists(chain, emission, blocks.start(b + kPrefetchLists),
                           blocks.stop(b + kPrefetchLists));
            proposal.prefetch(chain, blocks.start(b + kPrefetchLists),
                              blocks.stop(b + kPrefetchLists));
        }
        const int64_t start = blocks.start(b), stop = blocks.stop(b);
        if (chain.reserve(stop - start + 1)) proposal.attach(chain, emission);
        q_old.reset();
        q_new.reset();
        if (!Proposal::kReadsView || !move.lift(chain, emission, start)) {
            move.open(chain, emission, start, stop);
            if (Proposal::kReadsView) move.fill_views(chain, emission);
        }
        if (Proposal::kReadsTouched) move.touch(chain, &chain.states[start]);
        proposal.prepare(chain, emission, move);
        if constexpr (Proposal::kMayBeExact) {
            if (proposal.is_exact()) {
                bool opens;
                proposal.draw(chain, path, &opens);
                move.complete(chain, emission, *path, opens);
                proposal.end_move(chain, emission, start, stop, true);
                ++n_accepted;
                continue;
            }
        }
        if (Proposal::kReadsTouched) {
            // The next move starts from slots that this move may yet touch: the old labels' (their
            // customers come back) and the new ones'.
            chain.touched.clear();
            move.touch(chain, &chain.states[start]);
        }
        proposal.score(chain, start, stop, &q_old);
        proposal.propose(chain, start, stop, path, &q_new);
        move.seat(chain, emission, path);
        if (Proposal::kReadsTouched) move.touch_changed(chain, path);
        const bool accepted = move.decide(chain, emission, path, q_old, q_new);
        proposal.end_move(chain, emission, start, stop, accepted);
        n_accepted += accepted;
    }
    return n_accepted;
}
// ---- proposals -----------------------------------------------------------------------------

// How to propose the labels of steps [start, stop).  Everything is evaluated at s_0: the
// seating without the block.  chain.states of the block still hold the old labels.
//
// The order of calls in a move is prepare, score, propose, end_move.  A proposal may be poor
// but not wrong: q(old) and q(new) must be the same function of the path.
class Proposal {
  public:
    static constexpr bool kReadsTouched = true, kReadsView = false, kMayBeExact = false;

    virtual ~Proposal() = default;
    // Start of a sweep, or storage for more slots: (re)build caches.
    virtual void attach(Chain &, Emission &) {}
    // Look at s_0.  Must absorb chain.touched if the proposal caches per-state values.
    virtual void prepare(Chain &, Emission &, int64_t, int64_t) {}
    // q *= probability of proposing the old path (up to a constant of s_0).
    virtual void score(Chain &chain, int64_t start, int64_t stop, Product *q) = 0;
    // Draw a path; q *= its probability (up to the same constant).  New states take
    // chain.free_slot(0), chain.free_slot(1), ...  (q = infinity: no free slot, reject.)
    virtual void propose(Chain &chain, int64_t start, int64_t stop, int32_t *path,
                         Product *q) = 0;
    // The move has been decided; the seating and chain.states are final.
    virtual void end_move(Chain &, Emission &, int64_t, int64_t, bool) {}
    // All moves of a sweep; see rcd_run.
    virtual int64_t run(Chain &chain, Emission &emission, const Blocks &blocks,
                        int32_t *path) {
        return rcd_run(chain, emission, *this, blocks, path);
    }

    void prepare(Chain &chain, Emission &emission, const Move<Emission> &move) {
        prepare(chain, emission, move.start, move.stop);
    }
    void prefetch(const Chain &, int64_t, int64_t) const {}
};

// Cache of a kernel for the emission that it is compiled for.
template <class E>
using Kept = std::conditional_t<E::kIsSeating, E, E &>;

// A proposal class that is known when this is compiled: rcd_run inlines all of it.
template <class E, class P>
class InlinedProposal final : public Proposal {
  public:
    template <class... Args>
    InlinedProposal(E &emission, Args... args) : emission_(emission), proposal_(args...) {}

    void attach(Chain &chain, Emission &) override { proposal_.attach(chain, emission_); }
    void prepare(Chain &chain, Emission &, int64_t start, int64_t stop) override {
        opened_.start = start;
        opened_.stop = stop;
        if (P::kReadsView) opened_.fill_views(chain, emission_);
        proposal_.prepare(chain, emission_, opened_);
    }
    void score(Chain &chain, int64_t start, int64_t stop, Product *q) override {
        proposal_.score(chain, start, stop, q);
    }
    void propose(Chain &chain, int64_t start, int64_t stop, int32_t *path,
                 Product *q) override {
        proposal_.propose(chain, start, stop, path, q);
    }
    void end_move(Chain &chain, Emission &, int64_t start, int64_t stop,
                bool accepted) override {
        proposal_.end_move(chain, emission_, start, stop, accepted);
    }
    int64_t run(Chain &chain, Emission &, const Blocks &blocks, int32_t *path) override {
        return rcd_run(chain, emission_, proposal_, blocks, path);
    }

  private:
    Kept<E> emission_;
    P proposal_;
    Move<E> opened_;         // of a caller that goes through a move step by step
};

// The proposal P<emission> for the emission of a chain.
template <template <class> class P, class... Args>
Proposal *make_proposal(Chain &chain, Args... args) {
    return with_compiled(*chain.emission, [&](auto &emission) -> Proposal * {
        using E = std::remove_reference_t<decltype(emission)>;
        return new InlinedProposal<E, P<E>>(emission, args...);
    });
}

// ---- kernels -------------------------------------------------------------------------------

struct SweepCounts {
    int64_t n_proposed = 0, n_accepted = 0;
    std::map<std::string, std::pair<int64_t, int64_t>> trials = {};     // tried, accepted
};

// Makes sweeps; compiled for one kind of emission and built for one chain's.
class Kernel {
  public:
    virtual ~Kernel() = default;
    virtual SweepCounts sweep(Chain &chain) = 0;
    virtual size_t n_bytes() const { return 0; }
};

// Moves over blocks in random order.
class BlockKernel final : public Kernel {
  public:
    // Takes ownership of the proposal.
    BlockKernel(Proposal *proposal, int64_t block_size)
        : proposal_(proposal), block_size_(block_size), path_(block_size) {}

    SweepCounts sweep(Chain &chain) override {
        SweepCounts counts;
        run(chain, cut(chain), &counts);
        return counts;
    }
    // The blocks of a sweep, in its order: how many there are; and moves over the next n of
    // them.  Those that are done are dropped, as their memory is of use elsewhere.
    int64_t cut(const Chain &chain) {
        n_done_ = 0;
        stops_.clear();
        cut_blocks(chain, block_size_, &starts_, &stops_);
        return static_cast<int64_t>(starts_.size());
    }
    void run(Chain &chain, int64_t n, SweepCounts *counts) {
        const Blocks blocks{starts_.data() + n_done_,
                            stops_.empty() ? nullptr : stops_.data() + n_done_, n};
        counts->n_proposed += blocks.n;
        counts->n_accepted += proposal_->run(chain, *chain.emission, blocks, path_.data());
        n_done_ += n;
        // At least half of them at a time, as there may be thousands of trials in between.
        if (2 * n_done_ < static_cast<int64_t>(starts_.size())) return;
        starts_ = {starts_.begin() + n_done_, starts_.end()};
        if (!stops_.empty()) stops_ = {stops_.begin() + n_done_, stops_.end()};
        n_done_ = 0;
    }

  private:
    std::unique_ptr<Proposal> proposal_;
    const int64_t block_size_;
    std::vector<int32_t> starts_, stops_;
    int64_t n_done_ = 0;                // of these
    std::vector<int32_t> path_;
};

// The kernel K<emission> for the emission of a chain.
template <template <class> class K, class... Args>
Kernel *make_kernel(Chain &chain, Args... args) {
    return with_compiled(*chain.emission, [&](auto &emission) -> Kernel * {
        using E = std::remove_reference_t<decltype(emission)>;
        return new K<E>(emission, args...);
    });
}

}  // namespace skihmm
