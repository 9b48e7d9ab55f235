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

#include "sim/trace/storage.h"
#include "sim/units.h"

namespace memwall {

// An operator right in a module: "aten::gelu" in "h.0".
struct NamedOperator {
  std::string module, name;
  // Which of its ops there in one forward, counted from 0 in the order of the host; empty: all of them.
  std::vector<std::uint32_t> calls{};

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

struct PlanRealization {
  std::uint32_t forwards = 0;  // in the trace
  std::vector<ModuleRecompute> recompute{};
  std::vector<OperatorRecompute> lazy_operators{};
  std::vector<NamedOffload> offload{};
  std::vector<NamedHome> homes{};
  std::vector<UnnamedDecisions> unnamed{};  // empty: a program can execute all of the plan

  bool operator==(const PlanRealization&) const = default;
};

}  // namespace memwall
