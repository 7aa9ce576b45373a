// Allocation of steps to two states by restricted scans (Jain and Neal 2004).
//
// The steps are cut into blocks of consecutive steps.  In a random order every block is allocated
// given the blocks before it, by a filter over the two states; then, in several scans, every block
// again, given all other blocks.  The probability q of an allocation is the last scan's, given its
// start: in a merge the earlier scans are made as well, and the last scan is made to draw the old
// labels.  That start is a function of labels, of observations and of random numbers that do not
// depend on the labels to be drawn, so that a split and the reverse merge share it (Jain and Neal's
// launch state).
//
// For this no table may have a part in it, as tables are different on both sides of a move.  So
// observations come and go in the emission, which has no tables and is restored afterwards, and
// transitions have a law of their own, by counts of labels.  (In a proposal any positive function
// would do.)
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_pair_filter.hpp"
#include "_product.hpp"
#include "_random.hpp"
#include "_slots.hpp"

namespace skihmm {

// Probabilities of draws from and into two states by their counts, for PairFilter.
class LabelCounts {
  public:
    void clear(const int32_t *two, int32_t n_slots) {
        std::copy_n(two, 2, two_);
        for (int u = 0; u < 2; ++u) {
            into_[u].assign(n_slots, kEach);
            from_[u].assign(n_slots, kEach);
            total_[u] = kAll;
        }
    }
    // n draws of k after label j; j or k is in two.
    void add(int32_t j, int32_t k, double n) {
        const int u = place(j);
        if (u < 2) {
            from_[u][k] += n;
            total_[u] += n;
        } else {
            into_[place(k)][j] += n;
        }
    }
    // p(k | j), if j is another state up to a factor.
    double prob(int64_t, int32_t j, int32_t k) const {
        const int u = place(j);
        return u < 2 ? from_[u][k] / total_[u] : into_[place(k)][j];
    }
    bool varies_by_step() const { return false; }

  private:
    // Before any draw.
    static constexpr double kEach = 0.3, kAll = 1.5;

    int place(int32_t k) const { return k == two_[0] ? 0 : k == two_[1] ? 1 : 2; }

    int32_t two_[2] = {};
    double total_[2] = {};
    std::vector<double> into_[2], from_[2];     // by slot of the other label
};

class ScannedAllocation {
  public:
    // Whether scans of so many steps are possible (the emission's journal would be too long for
    // more) and of use (states with a probability of their own to stay last).
    static bool allows(const Chain &chain, size_t n_steps) {
        return n_steps <= kMost && chain.emission->allows_scans()
               && !chain.transitions->coins().exist();
    }
    // `steps`, in the order of time, are all steps of at most two states, their labels in `path`.
    // Draw new labels into it, or, unless it `draws`, keep it and set two[0] to the label of the
    // first step of the first block, as such a draw would.  Returns log q of the labels in `path`.
    double run(Chain &chain, const std::vector<int64_t> &steps, bool draws, int32_t *two,
               std::vector<int32_t> *path) {
        Emission &emission = *chain.emission;
        steps_ = steps.data();
        n_ = static_cast<int64_t>(steps.size());
        cut(chain);
        if (!draws && (*path)[blocks_[0].at] != two[0]) std::swap(two[0], two[1]);
        counts_.clear(two, chain.n_slots);
        Product q, ignored;
        for (int64_t i = n_; i-- > 0;) emission.remove(steps_[i], (*path)[i], chain.bits, &ignored);
        now_.assign(n_, -1);
        for (int scan = 0; scan < kScans; ++scan) {
            const bool is_last = scan == kScans - 1;  // planted: scan that counts
            for (const Block &block : blocks_) {
                int32_t *labels = &now_[block.at];
                const int64_t start = steps_[block.at];
                if (scan > 0) move(chain, block, -1.0);
                filter_.run(chain, counts_, emission, start, start + block.size,
                            label_before(chain, block), label_after(chain, block), two[0], two[1],
                            block.at == blocks_[0].at);  // planted: first block of a scan
                if (draws || !is_last) {  // planted: drawn scans
                    filter_.draw(chain.bits, labels, is_last ? &q : &ignored);
                } else {
                    std::copy_n(&(*path)[block.at], block.size, labels);
                    filter_.read(labels, &q);
                }
                move(chain, block, 1.0);
            }
        }
        emission.rollback();
        path->swap(now_);
        return q.log();  // planted: factor of scans
    }

  private:
    struct Block {
        int32_t at, size;       // place of its first step, and steps
    };
    static constexpr size_t kMost = 100'000;
    static constexpr int32_t kLongest = 10;
    static constexpr int kScans = 5;    // including the first scan, from nothing

    // Blocks in random order.
    void cut(Chain &chain) {
        blocks_.clear();
        for (int32_t i = 0; i < n_; ++i) {
            const bool goes_on = i > 0 && steps_[i] == steps_[i - 1] + 1
                                 && !chain.first[steps_[i]];
            // planted: longest block of a scan
            if (goes_on && blocks_.back().size < kLongest) ++blocks_.back().size;
            else blocks_.push_back({i, 1});
        }
        for (int64_t i = static_cast<int64_t>(blocks_.size()) - 1; i > 0; --i)
            std::swap(blocks_[i], blocks_[below(chain.bits, i + 1)]);
    }
    // Labels of the neighbours of a block; -1: none, or none yet.
    int32_t label_before(const Chain &chain, const Block &block) const {
        const int64_t t = steps_[block.at];
        if (chain.first[t]) return kStart;
        const bool is_moved = block.at > 0 && steps_[block.at - 1] == t - 1;
        return is_moved ? now_[block.at - 1] : chain.states[t - 1];
    }
    int32_t label_after(const Chain &chain, const Block &block) const {
        const int32_t next = block.at + block.size;
        const int64_t t = steps_[next - 1];
        if (chain.is_last(t)) return -1;
        return next < n_ && steps_[next] == t + 1 ? now_[next] : chain.states[t + 1];
    }
    // Add a block with its labels, or remove it.
    void move(Chain &chain, const Block &block, double sign) {
        Product ignored;
        int32_t j = label_before(chain, block);
        for (int32_t i = block.at; i < block.at + block.size; ++i) {
            const int32_t k = now_[i];
            if (j >= 0) counts_.add(j, k, sign);
            if (sign > 0.0) chain.emission->add(steps_[i], k, chain.bits, &ignored);
            else chain.emission->remove(steps_[i], k, chain.bits, &ignored);
            j = k;
        }
        const int32_t o = label_after(chain, block);
        if (o >= 0) counts_.add(j, o, sign);
        if (sign < 0.0) std::fill_n(&now_[block.at], block.size, -1);
    }

    LabelCounts counts_;
    PairFilter filter_;
    const int64_t *steps_ = nullptr;
    int64_t n_ = 0;
    std::vector<int32_t> now_;          // labels of the steps; -1: none
    std::vector<Block> blocks_;         // in the order of allocation
};

}  // namespace skihmm
