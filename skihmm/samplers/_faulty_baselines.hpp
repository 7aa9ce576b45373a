// The baselines with one planted error each.  Only tests use this.
#pragma once
#include "_direct_assignment.hpp"
#include "_stick_breaking.hpp"

namespace skihmm {

enum class BaselineBug : int {
    kNone,
    kNoIndicators,      // the transition into a step does not count for the one out of it
    kBlindBirths,       // a newborn state's parameters ignore what it has done
    kNoStart,           // the start restaurant's row is drawn without its transitions
    kKeepRest,          // a birth takes nothing from the rests
    kTruncated,         // the beam breaks no sticks
};

template <class Emission>
class FaultyDirectAssignment : public DirectAssignment<Emission> {
  public:
    void plant(BaselineBug bug) {
        this->made_ = bug == BaselineBug::kNoIndicators ? 0.0 : 1.0;
    }
};

class FaultySteps : public StickBreakingSteps {
  public:
    void plant(BaselineBug bug) {
        seen_ = bug == BaselineBug::kBlindBirths ? 0.0 : 1.0;
        start_counts_ = bug == BaselineBug::kNoStart ? 0.0 : 1.0;
        breaks_rest_ = bug != BaselineBug::kKeepRest;
    }
};

class FaultyPaths : public StickBreakingPaths {
  public:
    void plant(BaselineBug bug) {
        start_counts_ = bug == BaselineBug::kNoStart ? 0.0 : 1.0;
        limit_ = bug == BaselineBug::kTruncated ? 0 : SIZE_MAX;
    }
};

}  // namespace skihmm
