// What a program can execute of a memory plan: its decisions by the names of modules and operators, where a plan itself
// (memory_plan.h) has numbers of storages and ops, which mean something for one trace only.
//
// Data only, of one forward pass and its backward; a program does the same in each. realization_of
// (policies/plan/plan_realization.h) derives it from a plan and its trace. Nothing is a pattern: every module and
// operator is listed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/policy/model_parameters.h"
#include "sim/trace/storage.h"
#include "sim/units.h"

namespace memwall {

// An operator right in a module: "aten::gelu" in "h.0".
struct NamedOperator {
  std::string module, name;
  // Which of its ops there in one forward, counted from 0 in the order of the host; empty: all of them.
  std::vector<std::uint32_t> calls{};
  // Of an operator that is run again: which of its results stay from the first time, counted from 0 in the order in
  // which it returns them.
  std::vector<std::uint32_t> keeps{};

  bool operator==(const NamedOperator&) const = default;
};

// Modules whose forwards are run again whole, up to the last op that backward needs (early_stop) or to the end: what
// torch.utils.checkpoint does.
struct ModuleRecompute {
  std::vector<std::vector<std::string>> units;  // each of one module, or of several in a row that are re-run as one
  bool early_stop = true;
  bool preserve_rng = false;                  // an op that is run again draws random numbers
  std::vector<std::string> save_operators{};  // whose results in the units stay or travel: selective checkpointing

  bool operator==(const ModuleRecompute&) const = default;
};

// Single operators that are run again, in this order, when backward first needs what they made; their inputs stay.
struct OperatorRecompute {
  std::vector<NamedOperator> operators;
  bool preserve_rng = false;

  bool operator==(const OperatorRecompute&) const = default;
};

// What an operator made and backward needs.
struct NamedStorages {
  NamedOperator made_by;
  std::uint64_t storages = 0;
  Bytes bytes = 0;

  bool operator==(const NamedStorages&) const = default;
};

// One storage that travels, as a pair of saved-tensor hooks tells it: by the number of storages that they were shown
// before it in this forward. Those are counted, each when it is shown first, that forward makes on the device, of at
// least NamedOffload::count_min_bytes; what is saved inside of a unit that is run again is not shown, but the unit's
// inputs are; nor is counted what a lazy operator made. It is copied out when it is shown first.
struct HookMove {
  static constexpr std::int64_t kEnd = -1;

  std::uint64_t number = 0;  // from 0
  Bytes bytes = 0;
  NamedOperator made_by{};  // for people and for checks; with one call
  // Right behind the first showing of this number the compute stream waits for the copy, and the device memory is given
  // up; not before the program itself has used it for the last time in forward. kEnd: behind the last op of forward.
  std::int64_t give_back = kEnd;
  // The copy back is issued when the node of backward begins that is the first to ask for this number, its own at the
  // latest. kEnd: when backward first asks for anything that autograd has saved.
  std::int64_t fetch = kEnd;

  bool operator==(const HookMove&) const = default;
};

// What autograd saves for backward and the plan sends to a tier meanwhile.
struct NamedOffload {
  std::uint8_t tier = 0;  // index into MemoryPlan::tiers
  std::uint64_t storages = 0;
  Bytes bytes = 0, min_bytes = 0;  // min_bytes: of the smallest
  // Of those of at least min_bytes that backward reads, so many travel: the first that autograd saves, or, where the
  // trace does not say what it saves, the first in the order of their last use in forward. Absent: which of them travel
  // is no such rule, but `saved` alone.
  std::optional<std::uint64_t> first{};
  std::uint32_t buffers = 0;           // at most so many are copied out and not yet given back
  std::uint32_t ahead = 0;             // at most so many are fetched and not yet used
  std::vector<NamedStorages> saved{};  // by operator, in the order of forward
  // Where the trace says what autograd saves: those of the storages whose copies, drops and fetches stand where hooks
  // run, ascending by number; the others are under PlanRealization::unnamed.
  std::vector<HookMove> moves{};
  std::vector<std::uint64_t> fetch_order{};  // the numbers of `moves` as their copies back are issued
  Bytes count_min_bytes = 0;

  bool operator==(const NamedOffload&) const = default;
};

// Parameters, gradients or optimizer states that a tier holds while they rest.
struct NamedHome {
  std::uint8_t tier = 0;  // index into MemoryPlan::tiers
  StorageKind kind = StorageKind::unknown;
  bool lives_there = false;          // from the start; false: it lives on the device and leaves for a while
  bool all = false;                  // every storage of the kind; then `names` are empty
  std::vector<std::string> names{};  // as the trace labels them
  std::uint64_t storages = 0;
  Bytes bytes = 0;

  bool operator==(const NamedHome&) const = default;
};

// Decisions that have no name a program could act on.
struct UnnamedDecisions {
  std::string what;    // "recompute", "offload", "drop"
  std::string reason;  // a sentence
  std::uint64_t storages = 0;
  Bytes bytes = 0;

  bool operator==(const UnnamedDecisions&) const = default;
};

// What a re-run launches on the device, collectives among it, in order.
struct NamedRerunOps {
  // One of: the number of its unit among all units of PlanRealization::recompute, in their order; the index of its
  // OperatorRecompute; neither, where it has no name.
  std::optional<std::uint64_t> unit{}, lazy{};
  std::vector<NamedOperator> operators{};  // without calls; one per op

  bool operator==(const NamedRerunOps&) const = default;
};

// An optimizer's step whose states lie off the device, as policy `offload` simulates it.
struct NamedOptimizer {
  std::string place{}, through{};  // tiers: of the states, and in which copies are staged; "" = none
  std::string implementation{};    // "cpu_adam": it runs where gradients go; "streamed": on the device
  bool pinned = true, side_streams = true;
  bool near_memory = false;            // cpu_adam in the tier itself, which computes
  bool pipeline = false;               // sub-groups: reads and writes of others beside the step of one
  std::uint64_t group_parameters = 0;  // of a sub-group, from storage; 0 = all at once
  std::uint32_t prefetch = 0, buffers = 0, staging = 0;

  bool operator==(const NamedOptimizer&) const = default;
};

struct PlanRealization {
  std::uint32_t forwards = 0;                // in the trace
  std::vector<NamedParameter> parameters{};  // of the model, as the trace knows them; ascending by name
  std::vector<ModuleRecompute> recompute{};
  std::vector<OperatorRecompute> lazy_operators{};
  std::vector<NamedRerunOps> runs_again{};  // in the order of backward
  std::vector<NamedOffload> offload{};
  std::vector<NamedHome> homes{};
  std::optional<NamedOptimizer> optimizer{};
  std::vector<UnnamedDecisions> unnamed{};  // empty: a program can execute all of the plan

  bool operator==(const PlanRealization&) const = default;
};

}  // namespace memwall
