// Sweeps of two kernels in turn, at random.
#pragma once
#include <memory>

#include "_random.hpp"
#include "_rcd.hpp"

namespace skihmm {

// Every sweep is a sweep of `other` with probability `share`, else of `usual`.  The choice does not
// depend on the state, so the mixture leaves invariant what both leave invariant, and nothing is
// kept between sweeps.
class MixedSweeps final : public Kernel {
  public:
    // Takes ownership of both.
    MixedSweeps(Kernel *usual, Kernel *other, double share)
        : usual_(usual), other_(other), share_(share) {}
    SweepCounts sweep(Chain &chain) override {
        // planted: choice of a sweep
        return (uniform(chain.bits) < share_ ? other_ : usual_)->sweep(chain);
    }
    size_t n_bytes() const override { return usual_->n_bytes() + other_->n_bytes(); }

  private:
    std::unique_ptr<Kernel> usual_, other_;
    const double share_;
};

}  // namespace skihmm
