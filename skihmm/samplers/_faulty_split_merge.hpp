// Split-merge trials with one planted error each, or without the early stop of merges.  Only
// tests use this.
#pragma once
#include "_split_merge.hpp"

namespace skihmm {

enum class SplitMergeBug : int {
    kNone,
    kNoReverse,     // the reverse probability of a merge is left out
    kNoValue,       // the observation of t2 is left out of the ratio
    kEarlyScore,    // a merge's q_old is computed before the fragment is removed
    kReseat,        // on rejection the old customers are seated anew instead of restored
    kPrintedStop,   // merges stop with observations still to come: wrong for densities
    kNoStop,        // no error: merges go on to the end
};

template <class Emission>
class FaultySplitMerge : public SplitMerge<Emission> {
    using Base = SplitMerge<Emission>;
    using Fragment = typename Base::Fragment;
    using Base::ratio_;

  public:
    SplitMergeBug bug = SplitMergeBug::kNone;
    int64_t n_merges = 0, n_stopped = 0, n_draws = 0, n_spared = 0;

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
    bool seat_merged(const Chain &chain, const Emission &emission) override {
        bool goes_on = true;
        if (bug == SplitMergeBug::kPrintedStop) {
            std::fill(this->path_.begin(), this->path_.end(), this->a_);
            size_t &n = this->n_seated_;
            for (n = 0; n < this->fragments_.size(); ++n) {
                if (!(goes_on = this->is_accepted())) break;
                this->seat_values(chain, emission, this->fragments_[n]);
                this->seat_draws(chain, this->fragments_[n]);
            }
        } else if (bug == SplitMergeBug::kNoStop) {
            std::fill(this->path_.begin(), this->path_.end(), this->a_);
            for (const Fragment &f : this->fragments_)
                this->seat_values(chain, emission, f);
            for (const Fragment &f : this->fragments_) this->seat_draws(chain, f);
            this->n_seated_ = this->fragments_.size();
        } else {
            goes_on = Base::seat_merged(chain, emission);
        }
        count(chain, goes_on);
        return goes_on;
    }
    void restore(const Chain &chain, const Emission &emission) override {
        if (bug != SplitMergeBug::kReseat) {
            Base::restore(chain, emission);
            return;
        }
        for (size_t i = this->fragments_.size(); i-- > 0;) {
            const Fragment &f = this->fragments_[i];
            if (i < this->n_seated_)
                ratio_.remove_block(chain, emission, f.start, f.stop,
                                    this->new_before(chain, f.start), this->path_of(f),
                                    this->new_after(chain, f.stop - 1));
            else
                for (int64_t t = f.stop - 1; t >= f.start; --t)
                    emission.remove(t, this->a_, chain.bits, &ratio_.r_old);
        }
        this->take_second(chain, emission, this->new_);
        this->seat_second(chain, emission, this->old_);
        for (const Fragment &f : this->fragments_)
            ratio_.add_block(chain, emission, f.start, f.stop, chain.previous(f.start),
                             chain.states + f.start, chain.successor(f.stop - 1));
        ratio_.keep(chain, emission);
    }

  private:
    // What the early stop saves.
    void count(const Chain &chain, bool goes_on) {
        ++n_merges;
        n_stopped += !goes_on;
        for (size_t i = 0; i < this->fragments_.size(); ++i) {
            const Fragment &f = this->fragments_[i];
            const int64_t n = f.stop - f.start + (this->new_after(chain, f.stop - 1) >= 0);
            n_draws += n;
            if (i >= this->n_seated_) n_spared += n;
        }
    }
};

}  // namespace skihmm
