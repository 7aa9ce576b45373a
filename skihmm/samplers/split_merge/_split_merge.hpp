// Split-merge trials by sequential allocation over fragments (arXiv 1106.0474, Section 6).
//
// Two steps t1 and t2 are chosen at random.  If they are in the same state a, a new state c is
// proposed for t2, and a or c for every other step of a; otherwise a = x[t1] is proposed for all
// steps of t2's state c.  The other steps M of a and c are divided into fragments, maximal runs
// of consecutive steps between t1 and t2.  In a random order
// each fragment is allocated as a whole: its labels in {a, c} are drawn by forward filtering
// and backward sampling at the seating with t2 and all earlier fragments.
//
// Removal is in the reverse order, and a merge evaluates meanwhile the probability that its
// reverse split draws fragment i's old labels, at the seating *without* fragment i.  The paper
// prints the transitions of the seating before its removal, with the emissions after it; the
// same seating for both is right.  The ratio contains t2's observation, which the paper leaves
// out.
//
// A merge that can only be rejected stops early.  Its labels are known beforehand, so that all
// observations come first and then the transitions, fragment by fragment: the remaining factors
// of R are probabilities of transitions, and R can only fall.  In the paper observations remain
// too; with densities above one R may rise again.  Observations and transitions belong to different
// restaurants, in each of which customers come in the reverse order of their removal.
//
// The choice of the pair, the fragments and the order does not depend on the labels a and c of
// the steps, so that a move and its reverse are proposed with the same probability.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "_pair_filter.hpp"
#include "_rcd.hpp"
#include "_trial_sweeps.hpp"

namespace skihmm {

// Trials.  They look for the steps of their two states among all steps: at a fraction of a
// nanosecond each that costs less than lists, which every local move would have to update.
template <class Emission>
class SplitMerge {
  public:
    using Transitions = HCRPTransitions;

    // One trial, if there is a pair of steps.
    void run(Chain &chain, Emission &emission, SweepCounts *counts) {
        if (chain.n_steps < 2) return;
        auto &[n, n_accepted] = counts->trials["split_merge"];
        ++n;
        n_accepted += run(chain, emission);  // planted: result of a trial
        // Between trials their memory is of use elsewhere.
        fragments_ = {};
        moves_ = {};
    }
    // One trial; returns whether it was accepted.
    bool run(Chain &chain, Emission &emission) {
        chain.reserve(1);
        choose(chain);
        ratio_.r_old.reset();
        ratio_.r_new.reset();
        q_old_.reset();
        q_new_.reset();
        // Every step's observation and, at most, two draws go and come again.
        chain.transitions->expect(4 * n_in_play(chain));
        if constexpr (Emission::kIsSeating) emission.seating->expect(2 * n_in_play(chain));
        for (size_t i = fragments_.size(); i-- > 0;) take(chain, emission, fragment(chain, i));
        take_second(chain, emission, old_);
        seat_second(chain, emission, new_);
        bool may_pass = true;
        if (is_split_) seat_split(chain, emission);
        else may_pass = seat_merged(chain, emission);
        const bool accepted = may_pass && is_accepted();
        if (accepted) keep(chain, emission);
        else ratio_.restore(chain, emission);  // planted: rejected trial
        return accepted;
    }

  private:
    struct Fragment {
        int32_t start, stop;            // steps [start, stop)
    };

    // The labels before and after step t in the proposed state, for neighbours of fragments.  Among
    // these only t2 changes: a neighbour is t1, t2, another state or an end of a sequence, never
    // another fragment.
    int32_t new_before(Chain &chain, int64_t t) const {
        return !chain.first[t] && t == t2_ + 1 ? new_ : chain.previous(t);
    }
    int32_t new_after(Chain &chain, int64_t t) const {
        return !chain.is_last(t) && t + 1 == t2_ ? new_ : chain.successor(t);
    }

    // Remove fragment f.
    void take(Chain &chain, Emission &emission, const Fragment &f) {
        remove(chain, emission, f);  // planted: removed fragment
        if (!is_split_) score(chain, emission, f);  // planted: score of a merge
    }
    void remove(Chain &chain, Emission &emission, const Fragment &f) {
        ratio_.remove_block(chain, emission, f.start, f.stop, chain.previous(f.start),
                            &chain.states[f.start], chain.successor(f.stop - 1));
    }
    // q_old *= the probability that the reverse split of this merge draws f's old labels.
    void score(Chain &chain, Emission &emission, const Fragment &f) {
        filter(chain, emission, f, chain.previous(f.start), chain.successor(f.stop - 1));
        filter_.read(&chain.states[f.start], &q_old_);
    }
    // t2's observation in state k, and its draws as far as no fragment has them.
    void take_second(Chain &chain, Emission &emission, int32_t k) {
        const int64_t t = t2_;
        if (owns_draw_in_) ratio_.remove_draw(chain, chain.previous(t), k, t);
        if (owns_draw_out_) ratio_.remove_draw(chain, k, chain.successor(t), t + 1);
        emission.remove(t, k, chain.bits, &ratio_.r_old);  // planted: removed observation
    }
    void seat_second(Chain &chain, Emission &emission, int32_t k) {
        const int64_t t = t2_;
        emission.add(t, k, chain.bits, &ratio_.r_new);  // planted: added observation
        if (owns_draw_out_) ratio_.add_draw(chain, k, chain.successor(t), t + 1);
        if (owns_draw_in_) ratio_.add_draw(chain, chain.previous(t), k, t);
    }
    // Add the fragments, each with drawn labels a and c.  Here R may rise, so there is no early
    // stop.
    void seat_split(Chain &chain, Emission &emission) {
        moves_.clear();
        for (size_t i = 0; i < fragments_.size(); ++i) {
            const Fragment f = fragment(chain, i);
            const int32_t j = new_before(chain, f.start), o = new_after(chain, f.stop - 1);
            filter(chain, emission, f, j, o);  // planted: label before a fragment
            path_.resize(f.stop - f.start);
            filter_.draw(chain.bits, path_.data(), &q_new_);
            ratio_.add_block(chain, emission, f.start, f.stop, j, path_.data(), o);
            for (const int32_t k : path_) moves_.push_back(k == c_);
        }
    }
    // Add the fragments to a.  False as soon as the merge is certainly rejected.
    bool seat_merged(Chain &chain, Emission &emission) {
        for (size_t i = 0; i < fragments_.size(); ++i)
            seat_values(chain, emission, fragment(chain, i));  // planted: observations of a merge
        for (n_seated_ = 0; n_seated_ < fragments_.size(); ++n_seated_) {
            if (!is_accepted()) return false;  // planted: early stop
            seat_draws(chain, fragment(chain, n_seated_));  // planted: draws of a merge
        }
        return true;
    }
    void seat_values(Chain &chain, Emission &emission, const Fragment &f) {
        for (int64_t t = f.start; t < f.stop; ++t)
            emission.add(t, a_, chain.bits, &ratio_.r_new);
    }
    void seat_draws(Chain &chain, const Fragment &f) {
        int32_t j = new_before(chain, f.start);
        for (int64_t t = f.start; t < f.stop; ++t, j = a_)
            ratio_.add_draw(chain, j, a_, t);
        const int32_t o = new_after(chain, f.stop - 1);
        if (o >= 0) ratio_.add_draw(chain, a_, o, f.stop);
    }
    bool is_accepted() const { return ratio_.is_accepted(threshold_, q_old_, q_new_); }
    void keep(Chain &chain, Emission &emission) {
        ratio_.keep(chain, emission);
        size_t n = 0;
        for (size_t i = 0; i < fragments_.size(); ++i) {
            const Fragment f = fragment(chain, i);
            for (int64_t t = f.start; t < f.stop; ++t)
                chain.assign(t, is_split_ && moves_[n++] ? c_ : a_);
        }
        chain.assign(t2_, new_);
    }

    Exchange<Emission> ratio_;
    Product q_old_, q_new_;
    // planted: number of a trial
    double threshold_ = 0.0;            // accept if it is below R
    int64_t t1_ = 0, t2_ = 0;
    bool is_split_ = false;
    bool owns_draw_in_ = false, owns_draw_out_ = false;
    int32_t old_ = 0, new_ = 0;         // label of t2
    int32_t a_ = 0, c_ = 0;             // label of t1; the other label in play
    std::vector<uint32_t> fragments_;   // where they start, in the order of allocation
    std::vector<bool> moves_;           // of a split: whether the steps of M get c, as allocated
    std::vector<int32_t> path_;         // proposed labels of one fragment
    size_t n_seated_ = 0;               // fragments whose draws a merge has put back

    // ---- the pair and the fragments of a trial

    void choose(Chain &chain) {
        bitgen_t *g = chain.bits;
        threshold_ = uniform(g);
        t1_ = below(g, chain.n_steps);
        t2_ = below(g, chain.n_steps - 1);
        t2_ += t2_ >= t1_;
        a_ = chain.states[t1_];
        old_ = chain.states[t2_];
        is_split_ = a_ == old_;
        new_ = is_split_ ? chain.free_slot(0) : a_;
        c_ = is_split_ ? new_ : old_;
        owns_draw_in_ = chain.first[t2_] || !is_allocated(chain, t2_ - 1);
        owns_draw_out_ = !chain.is_last(t2_) && !is_allocated(chain, t2_ + 1);
        gather(chain);
        for (int64_t i = static_cast<int64_t>(fragments_.size()) - 1; i > 0; --i)
            std::swap(fragments_[i], fragments_[below(g, i + 1)]);
    }
    // Whether t is in M.
    bool is_allocated(Chain &chain, int64_t t) const {
        return t != t1_ && (chain.states[t] == a_ || chain.states[t] == old_);
    }
    // The fragments in the order of time.
    void gather(const Chain &chain) {
        fragments_.clear();
        fragments_.reserve(n_in_play(chain));
        const int32_t *states = chain.states.data(), a = a_, c = old_;
        int64_t next = -1;              // after the last step of a fragment
        for (int64_t begin = 0; begin < chain.n_steps; begin += kStretch) {
            const int64_t end = std::min(begin + kStretch, chain.n_steps);
            // Most stretches have no step of two states among many: this loop is vectorised.
            int32_t has_steps = 0;
            for (int64_t t = begin; t < end; ++t)
                has_steps |= (states[t] == a) | (states[t] == c);
            if (!has_steps) continue;
            for (int64_t t = begin; t < end; ++t) {
                if (!is_in_fragment(chain, t)) continue;
                if (t == next && !chain.first[t]) fragments_.back() |= kLonger;
                else fragments_.push_back(static_cast<uint32_t>(t));
                next = t + 1;
            }
        }
    }
    bool is_in_fragment(const Chain &chain, int64_t t) const {
        const int32_t k = chain.states[t];
        return (k == a_ || k == old_) && t != t1_ && t != t2_;
    }
    // Fragment number i.  The end of a longer fragment is looked up and not kept: the memory of a
    // trial for each step of two states determines the peak of a fit.  (Labels change at its end.)
    Fragment fragment(const Chain &chain, size_t i) const {
        const int32_t start = static_cast<int32_t>(fragments_[i] & ~kLonger);
        Fragment f{start, start + 1};
        if (!(fragments_[i] & kLonger)) return f;
        while (!chain.first[f.stop] && is_in_fragment(chain, f.stop)) ++f.stop;
        return f;
    }
    // The steps of the two states.
    size_t n_in_play(const Chain &chain) const {
        return chain.occupancy[a_] + (is_split_ ? 0 : chain.occupancy[old_]);
    }

    // Filter at the current seating.  If a, c or o has lost its last table, it has the mass of one
    // new state, which is enough for a proposal.
    void filter(Chain &chain, Emission &emission, const Fragment &f, int32_t j, int32_t o) {
        filter_.run(chain, emission, f.start, f.stop, j, o, a_, c_);
    }

    static constexpr int64_t kStretch = 64;
    static constexpr uint32_t kLonger = 1u << 31;       // than one step

    PairFilter filter_;
};

// Trials between the moves of a kernel of blocks.  The schedule is fixed: a sweep's blocks are
// divided into as many parts as there are trials, equal to within one block, and a trial follows
// each.  It never depends on the labels.
template <class Emission>
class InterleavedSweeps final : public Kernel {
  public:
    // Takes ownership of `local`.  The fraction of a non-integer rate is the probability of a
    // further trial.
    InterleavedSweeps(Emission &emission, BlockKernel *local, double rate)
        : local_(local), emission_(emission), rate_(rate) {}
    SweepCounts sweep(Chain &chain) override {
        SweepCounts counts;
        const int64_t n_trials = draw_number(chain.bits, rate_);
        const int64_t n = local_->cut(chain);
        if (n_trials == 0) local_->run(chain, n, &counts);
        for (int64_t i = 0, begin = 0; i < n_trials; ++i) {
            const int64_t end = n * (i + 1) / n_trials;
            // Every part rebuilds the caches of the local moves, which a trial invalidates.
            if (end > begin) local_->run(chain, end - begin, &counts);
            begin = end;
            trials_.run(chain, emission_, &counts);
        }
        return counts;
    }

  private:
    std::unique_ptr<BlockKernel> local_;
    Kept<Emission> emission_;
    SplitMerge<Emission> trials_;
    const double rate_;
};

// Sweeps of any kernel, or none, each followed by trials.
template <class Emission>
class FollowedSweeps final : public TrialSweeps {
  public:
    FollowedSweeps(Emission &emission, Kernel *local, double rate)
        : TrialSweeps(local, rate), emission_(emission) {}

  private:
    void run_trials(Chain &chain, int64_t n, SweepCounts *counts) override {
        for (int64_t i = 0; i < n; ++i) trials_.run(chain, emission_, counts);
    }

    Kept<Emission> emission_;
    SplitMerge<Emission> trials_;
};

}  // namespace skihmm
