// How much time the operators of an imported table may take together. Internal to the importers of tables.
#pragma once

#include "sim/units.h"

namespace memwall {

inline constexpr Duration kLongestStep = microseconds(864'000'000'000);  // ten days: sums must fit 63 bits

}  // namespace memwall
