// Sweeps of a kernel, each followed by trials.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>

#include "_random.hpp"
#include "_rcd.hpp"

namespace skihmm {

// A number of trials with the given mean: the fraction is the probability of a further trial.
inline int64_t draw_number(bitgen_t *g, double rate) {
    const int64_t least = static_cast<int64_t>(std::floor(rate));
    const double rest = rate - least;
    return least + (rest > 0.0 && uniform(g) < rest);
}

// Sweeps of any kernel, each followed by trials, or of trials only: ergodic, but slow to mix.
class TrialSweeps : public Kernel {
  public:
    // Takes ownership of `local`; null: trials only.  The fraction of a non-integer rate is the
    // probability of a further trial.
    TrialSweeps(Kernel *local, double rate) : local_(local), rate_(rate) {}
    SweepCounts sweep(Chain &chain) final {
        SweepCounts counts;
        if (local_) counts = local_->sweep(chain);
        run_trials(chain, draw_number(chain.bits, rate_), &counts);
        return counts;
    }
    size_t n_bytes() const final { return local_ ? local_->n_bytes() : 0; }

  private:
    virtual void run_trials(Chain &chain, int64_t n, SweepCounts *counts) = 0;

    std::unique_ptr<Kernel> local_;
    const double rate_;
};

}  // namespace skihmm
