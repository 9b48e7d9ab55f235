// What checkpointing a unit means: which storages are dropped after their last use in forward, which
// ops are re-run, where, and what must live until then. Decides only; nothing is changed here.
//
// A storage is dropped by a unit if only the unit's ops write it, backward does no more than read it,
// and no later unit's re-run starts from it. To have its content back, every op that wrote it is
// re-run (the whole in-place chain), and so is, recursively, whatever made an input that is gone or
// was overwritten since. Inputs that are still there, or can be kept, are where it stops: the checkpoint.
#pragma once

#include <string>
#include <vector>

#include "policies/recompute/rerun_gathers.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/rerun_rules.h"
#include "policies/trace/segments.h"
#include "sim/trace/trace.h"

namespace memwall {

struct RecomputeRules {
  bool early_stop = true;          // re-run only what is needed; false: every op of the unit
  bool drop_outputs = false;       // also what later forward ops outside of the unit read
  bool allow_collectives = false;  // communicate again
};

struct UnitPlan {
  std::string name;
  std::string refusal;                  // a sentence's end, "" = planned; then all below is empty
  std::vector<StorageId> dropped;       // freed after their last forward use
  std::vector<OpId> rerun;              // ascending; empty if backward reads nothing that was dropped
  OpId position = kNoOp;                // the re-run stands before this op
  std::vector<RepeatedGather> gathers;  // of parameters, which the re-run repeats
  std::vector<std::string> random;      // re-run operators that draw random numbers
  std::vector<std::string> statistics;  // re-run operators that update running statistics
  Bytes dropped_bytes = 0;              // of storages dropped
  Bytes kept_bytes = 0;                 // of storages that live longer because the re-run starts from them
};

struct RecomputePlan {
  std::vector<UnitPlan> units;
  // Per storage: the op until which some re-run needs it, 0 = none does. A free before is put off until then.
  std::vector<OpId> kept_until;
};

// Adds one plan per unit, in their order. REQUIRES: units are disjoint and ascending; `plan.kept_until`
// has an entry per storage.
void plan_recompute(const Trace& trace, const Dataflow& flow, const Pass& pass, const std::vector<RecomputeUnit>& units,
                    const RecomputeRules& rules, RecomputePlan& plan);

}  // namespace memwall
