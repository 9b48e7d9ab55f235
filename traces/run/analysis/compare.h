// What changed from one run to another, op by op.
//
// Ops are aligned per thread: by lineage where both runs come from one trace
// (same name, operator, module, kind and ordinal), else by the longest common subsequence
// of their names. Positive differences mean: the other run has more.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/run/analysis/accounting.h"
#include "traces/run/analysis/energy.h"
#include "traces/run/run.h"

namespace memwall {

enum class OpChange : std::uint8_t { changed, added, removed };
std::string_view to_string(OpChange change);

// All ops of one name, operator and phase that were added, removed or changed in time or bytes.
struct OpDifference {
  OpChange change = OpChange::changed;
  std::string name, operator_name;
  OpKind kind = OpKind::kernel;
  Phase phase = Phase::unknown;
  std::uint64_t count = 0;
  Duration base_time{}, other_time{};  // device time, or host time for ops that stay on the host
  Bytes base_bytes = 0, other_bytes = 0;
  Duration difference() const { return other_time - base_time; }
};

struct TierDifference {
  std::string name;
  bool in_base = false, in_other = false;         // tiers are matched by name
  Bytes base_allocated = 0, other_allocated = 0;  // peaks
  Bytes base_reserved = 0, other_reserved = 0;
  bool on_device = true;                          // GPU memory
  Bytes base_missing = 0, other_missing = 0;      // 0 = it fits
  std::array<Bytes, kStorageKinds> by_kind{};  // at the peaks: other less base
};

struct LinkDifference {
  std::string name;
  bool in_base = false, in_other = false;
  Bytes base_bytes = 0, other_bytes = 0;
  Duration base_busy{}, other_busy{};
};

// How far the other run lags behind at the instant `time` of the base run (negative: it leads).
struct LagPoint {
  Time time{};
  Duration lag{};
  OpId base = kNoOp;  // the op of base that ends then
};

struct Comparison {
  std::string base_trace, other_trace;
  std::string base_machine, other_machine;
  std::vector<std::string> base_policies, other_policies;
  std::vector<std::string> base_overrides, other_overrides;  // as RunChanges::overrides
  std::vector<std::string> base_settings, other_settings;    // as settings_text()
  std::string base_bound_by, other_bound_by;                 // as Verdict::bound_by
  bool base_fits = true, other_fits = true;
  bool base_memory_recorded = true, other_memory_recorded = true;  // else the tiers' figures say nothing
  bool base_lives_recorded = true, other_lives_recorded = true;    // else they are lower bounds
  bool same_lineage = false;                              // else ops are matched by thread, kind, name and order alone
  StepEnergyPrice base_energy_price, other_energy_price;  // of one step
  Duration base_time{}, other_time{};       // all steps of all ranks together; without steps, the whole run
  std::uint64_t base_steps = 1, other_steps = 1;  // that these are of, those of all ranks
  ClassTimes base_classes, other_classes;
  // The waterfall: other_classes less base_classes. Adds up to other_time - base_time exactly.
  ClassTimes waterfall;
  std::vector<TierDifference> tiers;
  std::vector<LinkDifference> links;
  std::uint64_t ops_equal = 0, ops_changed = 0, ops_added = 0, ops_removed = 0;
  std::vector<OpDifference> ops;  // by size of difference, largest first, then by name
  std::vector<LagPoint> lag;      // at the ends of aligned device ops, at most `kLagPoints`
};
inline constexpr std::size_t kLagPoints = 1000;

Comparison compare(const Run& base, const Run& other);

// What an op takes: time on the device, or on the host if it stays there; bytes that it moves, allocates or frees.
struct OpCost {
  Duration time{};
  Bytes bytes = 0;
  bool operator==(const OpCost&) const = default;
};
OpCost cost_of(const Run& run, OpId id);
// The op's name as in OpDifference: where it has none, its kind.
std::string_view name_of(const Run& run, OpId id);

// Do both come from one trace? Equal hashes of their inputs, or equal names of their traces.
bool same_lineage(const Run& base, const Run& other);

// (op of base, op of other) pairs in order of base; what stands in no pair was removed or added.
struct OpPair {
  OpId base = kNoOp, other = kNoOp;
};
std::vector<OpPair> align(const Run& base, const Run& other);

// At the ends of all aligned device ops, ascending in time of base. `pairs` as from align().
std::vector<LagPoint> lag_points(const Run& base, const Run& other, const std::vector<OpPair>& pairs);

// The same as compare(base, other), but for bound_by of both, for whoever has these at hand: what align() gives, the
// classes of all steps together (RunSummary::times), and what lag_points() gives.
Comparison compare(const Run& base, const Run& other, const std::vector<OpPair>& pairs, const ClassTimes& base_classes,
                   const ClassTimes& other_classes, const std::vector<LagPoint>& lag);

// How much longer a step of the other run takes in the mean and which classes of time make that, what its peak is
// instead, in the GPU memory that lacks most or else is fullest, which kinds of storages make that, and which of the
// two fit. In words; every figure stands in the comparison.
std::vector<std::string> verdict_of(const Comparison& comparison);

std::string to_json(const Comparison& comparison);

}  // namespace memwall
