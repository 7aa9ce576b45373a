// Split-merge trials with one planted error each.  Only tests use this.
#pragma once
#include "_split_merge.hpp"

namespace skihmm {

enum class SplitMergeBug : int {
    kNone,
    kNoReverse,     // the reverse probability of a merge is left out
    kNoValue,       // the observation of t2 is left out of the ratio
    kEarlyScore,    // a merge's q_old is computed before the fragment is removed
    kReseat,        // on rejection the old customers are seated anew instead of restored
};

template <class Emission>
class FaultySplitMerge : public SplitMerge<Emission> {
    using Base = SplitMerge<Emission>;
    using Fragment = typename Base::Fragment;
    using Base::ratio_;

  public:
    SplitMergeBug bug = SplitMergeBug::kNone;

  protected:
    void take(const Chain &chain, const Emission &emission, const Fragment &f) override {
        if (bug != SplitMergeBug::kEarlyScore) {
            Base::take(chain, emission, f);
            return;
        }
        if (!this->is_split_) this->score(chain, emission, f);
        this->remove(chain, emission, f);
    }
    void score(const Chain &chain, const Emission &emission, const Fragment &f) override {
        if (bug != SplitMergeBug::kNoReverse) Base::score(chain, emission, f);
    }
    void remove_value(const Chain &chain, const Emission &emission, int32_t k) override {
        Product ignored;
        emission.remove(this->t2_, k, chain.bits,
                        bug == SplitMergeBug::kNoValue ? &ignored : &ratio_.r_old);
    }
    void add_value(const Chain &chain, const Emission &emission, int32_t k) override {
        Product ignored;
        emission.add(this->t2_, k, chain.bits,
                     bug == SplitMergeBug::kNoValue ? &ignored : &ratio_.r_new);
    }
    void restore(const Chain &chain, const Emission &emission) override {
        if (bug != SplitMergeBug::kReseat) {
            Base::restore(chain, emission);
            return;
        }
        for (size_t i = this->n_seated_; i-- > 0;) {
            const Fragment &f = this->fragments_[i];
            ratio_.remove_block(chain, emission, f.start, f.stop,
                                this->new_before(chain, f.start), this->path_of(f),
                                this->new_after(chain, f.stop - 1));
        }
        this->take_second(chain, emission, this->new_);
        this->seat_second(chain, emission, this->old_);
        for (const Fragment &f : this->fragments_)
            ratio_.add_block(chain, emission, f.start, f.stop, chain.previous(f.start),
                             chain.states + f.start, chain.successor(f.stop - 1));
        ratio_.keep(chain, emission);
    }
};

}  // namespace skihmm
