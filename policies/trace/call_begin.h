// Where the program's call of an operator begins.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// The first of the allocations that stand right before the op and are of what it writes; the op itself where there is
// none.
OpId call_begin(const Trace& trace, OpId op);

}  // namespace memwall
