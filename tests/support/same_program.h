// Are two traces one and the same program? Numbers of names, shapes, places, events and groups may differ; what they
// stand for may not. For traces that were taken apart and put together again.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace memwall {

// "" if so, else where they differ first.
std::string program_difference(const Trace& a, const Trace& b);

}  // namespace memwall
