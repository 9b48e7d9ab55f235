// What checkpointing a unit means: which storages are dropped after their last use in forward, which
// ops are re-run, where, and what must live until then. Decides only; nothing is changed here.
//
// A storage is dropped by a unit if only the unit's ops write it, backward does no more than read it,
// and no later unit's re-run starts from it.
//
// Where the trace says what autograd keeps, ops are re-run as PyTorch re-runs them (unit_prefix.h): the beginning of
// the unit up to the last tensor kept. A result that the unit keeps for itself and hands on, too, is made a second
// time; the first one lives as long as others need it. The unit's inputs live until its backward is over; what was made
// again goes as soon as the node that kept it has run. Operators whose results are kept (selective checkpointing) are
// called again and do no work.
//
// Elsewhere, and where single operators are re-run: to have a dropped content back, every op that wrote it is
// re-run (the whole in-place chain), and so is, recursively, whatever made an input that is gone or
// was overwritten since. Inputs that are still there, or can be kept, are where it stops: the checkpoint. So it is,
// whatever `early_stop` says, of a unit that is compiled (torch.compile traces the checkpoint as tags of one graph, of
// which torch/_functorch/partitioners.py extracts what backward needs): a result to be kept that backward does not need
// is neither kept nor made again.
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
  bool as_framework = true;        // by what autograd keeps, where the trace says that; false: by what backward reads
  std::vector<OpId> kept_results;  // ops whose results stay from forward; ascending
  std::vector<OpId> cast_ends;     // where autocast gives back casts of parameters (parameter_casts.h); ascending
};

// A result that is made a second time: the first one is given back after op `last`.
struct RemadeStorage {
  StorageId storage = kNoStorage;
  OpId last = kNoOp;
};

// Lives longer than in the program: until after op `until` (`before`: until right before it).
struct KeptStorage {
  StorageId storage = kNoStorage;
  OpId until = kNoOp;
  bool before = false;
};

// What the re-run made again, or was handed, goes after op `after`, before the program would give it back.
struct ReleasedStorage {
  StorageId storage = kNoStorage;
  OpId after = kNoOp;
};

struct UnitPlan {
  std::string name;
  std::string joined;                   // RecomputeUnit::joined
  std::string refusal;                  // a sentence's end, "" = planned; then all below is empty
  std::vector<StorageId> dropped;       // freed after their last forward use
  std::vector<KeptStorage> casts;       // of those: the ones that autocast keeps for the rest of forward
  std::vector<RemadeStorage> remade;
  std::vector<ReleasedStorage> released;
  std::vector<KeptStorage> keeps;
  std::vector<OpId> rerun;              // ascending; empty if backward reads nothing that was dropped
  std::vector<OpId> called;             // ascending: called again, without work
  std::size_t kept_results = 0;         // of those: ops whose results are kept
  OpId position = kNoOp;                // the re-run stands before this op
  std::vector<RepeatedGather> gathers;  // of parameters, which the re-run repeats
  std::vector<std::string> random;      // re-run operators that draw random numbers
  std::vector<std::string> statistics;  // re-run operators that update running statistics
  bool as_framework = false;            // the trace says what autograd keeps of it
  bool compiled = false;                // its kernels are those of torch.compile
  Bytes dropped_bytes = 0;              // of storages dropped
  Bytes kept_bytes = 0;                 // of storages that live longer because the re-run starts from them
  Bytes remade_bytes = 0;               // of results made a second time
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
