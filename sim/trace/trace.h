// A trace: a training step as the program that the host ran.
//
// It holds no start times. The simulator derives them from durations, host gaps,
// program order and edges; that is what makes a replay under another policy or
// on another machine mean something.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/trace/interned.h"
#include "sim/trace/op.h"
#include "sim/trace/pipeline_chunk.h"
#include "sim/trace/process_group.h"
#include "sim/trace/shape.h"
#include "sim/trace/storage.h"

namespace memwall {

// Number 0 is always "".
class StringTable {
 public:
  StringId intern(std::string_view text) { return strings_.intern(std::string(text)); }
  const std::string& operator[](StringId id) const { return strings_[id]; }
  std::size_t size() const { return strings_.size(); }

 private:
  Interned<std::string, std::unordered_map<std::string, StringId>> strings_;
};

// What a trace knows. A policy declares what it needs and is refused otherwise.
struct Knowledge {
  bool timing = false;       // durations and host gaps
  bool allocations = false;  // alloc and free ops
  bool dataflow = false;     // uses, with versions and kinds
  bool modules = false;      // module paths
  bool shapes = false;       // FLOPs and bytes
};

enum class StreamRole : std::uint8_t { compute, copy, communication, storage };
std::string_view to_string(StreamRole role);

struct Stream {
  std::string name;          // as the capture called it, or the policy that made it
  std::uint16_t device = 0;  // counted over all ranks of the trace
  StreamRole role = StreamRole::compute;
  std::uint16_t rank = 0;  // index into Trace::rank_table, 0 where that is empty
};

struct HostThread {
  std::string name;
  std::uint16_t rank = 0;  // index into Trace::rank_table, 0 where that is empty
};

// One training step within the trace: the host program from op `first` (inclusive)
// to `last` (exclusive). Both boundaries are ops; `first` is a mark. Where a trace holds several
// ranks, a step is one rank's: that of the thread of `first`.
struct Step {
  std::string name;
  OpId first = 0, last = 0;
};

// Constants of the machine as this capture shows them; generated traces take
// them from the machine file.
enum class LaunchKind : std::uint8_t { kernel, copy, memset };
inline constexpr int kLaunchKinds = 3;
// Collective counts as kernel, storage_io as copy.
constexpr LaunchKind launch_kind(OpKind kind) {
  if (kind == OpKind::copy || kind == OpKind::storage_io) return LaunchKind::copy;
  return kind == OpKind::memset ? LaunchKind::memset : LaunchKind::kernel;
}

struct ReplayConstants {
  Duration launch_latency[kLaunchKinds] = {};            // end of the call to earliest start; may be negative
  Duration stream_gap[kLaunchKinds][kLaunchKinds] = {};  // end of predecessor (first index) to start, both queued
  Duration graph_gap{};                                  // between nodes of one CUDA graph
  Duration event_latency = nanoseconds(1500);            // end of producer to start of the waiting op
  std::uint32_t launch_queue_depth = 1020;               // submitted and not yet started per stream; 0 = unlimited
};

// One of several ranks of a job whose programs stand in one trace (sim/trace/ranks.h).
struct Rank {
  std::uint32_t number = 0;   // in the job
  ReplayConstants constants;  // instead of Trace::constants
  // As of Trace, which holds the sums.
  Bytes untracked_bytes = 0;
  Bytes reserved_at_start = 0;
  double samples_per_step = 0, tokens_per_step = 0;
  std::uint32_t ranks = 1;  // as of Trace, of this program alone
  // Numbers in the job of the further ranks that this program stands for, ascending: with the same program in an equal
  // place, so with the same times and the same memory. They count on every link and in every memory that they share
  // with others, and on none that they don't (sim/machine/rank_machine.h).
  std::vector<std::uint32_t> stands_for;
  std::vector<PipelineChunk> chunks;  // of a divided model those that it holds, ascending by stage; empty: not known
};

// How far what a capture records explains its own times.
enum class Completeness : std::uint8_t {
  complete,        // all that runs was launched in it, and starts when it can
  gaps,            // records are missing, or late starts have no cause in it: its step time may be wrong
  not_a_replay,    // most of what ran is not in it: its step time means nothing
  gaps_over_limit  // gaps, of which so much is known that a step time is given only to who asks for it
};
std::string_view to_string(Completeness completeness);  // "complete", "gaps" (both), "not a replay"
// Is a step time given only to who asks for it (--accept-gaps)?
constexpr bool asks_first(Completeness of) {
  return of == Completeness::gaps_over_limit || of == Completeness::not_a_replay;
}
constexpr bool is_worse(Completeness one, Completeness other) {
  const auto rank = [](Completeness of) {
    return of == Completeness::not_a_replay ? 3 : of == Completeness::gaps_over_limit ? 2 : static_cast<int>(of);
  };
  return rank(one) > rank(other);
}

// One thing that is known of how the step is trained: "precision", "pure bf16", "precision=bf16".
struct RecipeItem {
  std::string what, value;
  std::string setting{};  // of `memwall generate`: assumed, and can be said otherwise; "" = the capture shows it
  bool operator==(const RecipeItem&) const = default;
};

// A storage that begins with the content of another one: a copy that the step before has left for this one.
struct HeldCopy {
  StorageId copy = kNoStorage, of = kNoStorage;  // both are there from the start
  bool operator==(const HeldCopy&) const = default;
};

// What a policy was to keep to, and whether it could.
struct MemoryBudget {
  std::string policy;  // its name
  Bytes bytes = 0;     // of device memory that the step's storages may take at once
  Bytes over = 0;      // that they take beyond it; 0 = it is kept to
  bool operator==(const MemoryBudget&) const = default;
};

struct Trace {
  std::string name;
  std::string machine;  // file name of the machine on which the durations were measured, "" if none
  StringTable strings;
  ShapeTable shapes;
  std::vector<HostThread> threads;
  std::vector<Stream> streams;
  std::vector<std::string> places;  // tier names: "hbm", "host", "nvme", "peer_hbm"
  std::vector<Storage> storages;
  std::vector<Op> ops;  // host issue order, all threads merged
  std::vector<Use> uses;
  std::vector<Step> steps;
  ReplayConstants constants;
  Knowledge knowledge;
  std::uint32_t event_count = 0;
  std::uint32_t ranks = 1;           // data-parallel ranks that run this same program (folded)
  std::vector<Rank> rank_table;      // of a trace that holds several ranks' programs; empty: one program
  std::uint32_t job_ranks = 0;       // ranks of the job that was captured, those absent from the trace too; 0 = unknown
  std::vector<ProcessGroup> groups;  // by Op::group; shorter than that where groups are unknown
  double samples_per_step = 0;       // 0 = unknown
  double tokens_per_step = 0;        // 0 = unknown
  Bytes untracked_bytes = 0;         // on the device at the start, not visible as storages
  Bytes reserved_at_start = 0;       // what the caching allocator held at the start, 0 = unknown
  Bytes reuse_distance = 0;          // a gathered parameter (sharding) is kept if less than this of others is read
                                     // until it is needed again
  // As policies leave them; a trace's file has none of them.
  std::vector<HeldCopy> held_copies;
  std::vector<MemoryBudget> budgets;
  Completeness completeness = Completeness::complete;  // of the capture; complete where nothing was captured
  std::string completeness_reason;                     // a sentence; "" where it is complete
  std::vector<std::string> notes;    // joins, defaults, inferences: lines of the summary
  std::vector<RecipeItem> recipe;    // most important first; empty = nothing is known

  // Do policies keep to all of their budgets?
  bool keeps_to_budgets() const {
    return std::none_of(budgets.begin(), budgets.end(), [](const MemoryBudget& b) { return b.over > 0; });
  }
  std::span<const Use> uses_of(const Op& op) const { return {uses.data() + op.first_use, op.use_count}; }
  // Index of a place by name; adds it if absent.
  std::uint8_t place(std::string_view name);
};

}  // namespace memwall
