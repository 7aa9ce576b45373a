// The one numbering of labels: a label is a slot.
#pragma once
#include <cstdint>

namespace skihmm {

// Slot kNew stands for a new state: its row and column are always empty and its base mass is
// gamma, so p(new | j), p(k | new) and the emission of a new state need no special case.  Slot
// kStart is the start restaurant `*`: a row like any other, never a dish.  States have the
// slots from kFirst on; a free slot has an empty row and column.
static constexpr int32_t kNew = 0, kStart = 1, kFirst = 2;

}  // namespace skihmm
