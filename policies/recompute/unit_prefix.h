// What PyTorch's checkpoint of a unit runs again, where the trace says what autograd keeps (Use::saved).
//
// torch/utils/checkpoint.py, non-reentrant: the re-run repeats the host program of the unit from its beginning,
// whatever of it backward needs. With early stop it ends where the last tensor is kept: behind the op whose result that
// is, or before the op that keeps only what it reads, since autograd keeps inputs before it calls the operator.
#pragma once

#include <cstddef>

#include "policies/trace/segments.h"
#include "sim/trace/trace.h"

namespace memwall {

struct UnitPrefix {
  bool known = false;          // false: of no op of the unit does the trace say that it keeps something
  std::size_t ops = 0;         // of the unit's, from the first on
  bool stops_in_call = false;  // the next one is called, and goes no further than keeping its inputs
};

UnitPrefix unit_prefix(const Trace& trace, const RecomputeUnit& unit, bool early_stop);

}  // namespace memwall
