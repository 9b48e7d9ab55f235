// Which gathers of parameters a re-run repeats (sharding).
//
// Forward has given a unit's parameters back, and backward gathers them again. A re-run reads backward's own gather
// where that has come before it, or would come without another gathered parameter in between: FSDP2 and DeepSpeed
// gather before a unit's backward begins, hence before its re-run, and both share the gather. What lies further away
// (a re-run of several units, which ends with the last of them) is gathered for the re-run and once more for backward,
// unless less than Trace::reuse_distance of other parameters is read in between.
#pragma once

#include <set>
#include <vector>

#include "policies/trace/parameter_gathers.h"
#include "sim/trace/trace.h"

namespace memwall {

struct RepeatedGather {
  OpId gather = kNoOp;
  // The reuse distance from which on backward's gather would do for the re-run too; 0: backward has none.
  Bytes distance = 0;
};

// Ascending. `rerun`: ops that run again before op `position`.
std::vector<RepeatedGather> gathers_to_repeat(const Trace& trace, const ParameterGathers& gathers,
                                              const std::set<OpId>& rerun, OpId position);

}  // namespace memwall
