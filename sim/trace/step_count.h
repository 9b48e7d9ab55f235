// How many steps a trace holds.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sim/trace/trace.h"

namespace memwall {

// 1 where it names none.
inline std::size_t step_count(const Trace& trace) { return std::max<std::size_t>(1, trace.steps.size()); }

}  // namespace memwall
