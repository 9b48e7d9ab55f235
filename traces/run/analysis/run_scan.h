// What several analyses need of every op, collected in one pass. Internal to traces/run/analysis/.
//
// A long run does not fit into caches: each pass over its ops and records reads all of it from memory. `scan` therefore
// goes over them once, a block that fits at a time, and lets every collector have its loop over the block. A collector
// sees ops in order; what it gives does not depend on the blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/run/analysis/accounting.h"
#include "traces/run/analysis/critical_path.h"
#include "traces/run/analysis/device_occupancy.h"
#include "traces/run/analysis/energy.h"
#include "traces/run/analysis/interval_union.h"
#include "traces/run/analysis/memory_decisions.h"
#include "traces/run/analysis/peak.h"
#include "traces/run/analysis/step_interval.h"
#include "traces/run/analysis/top_work.h"
#include "traces/run/analysis/waits.h"
#include "traces/run/run.h"

namespace memwall {

// Calls add(first, last) of every collector for one block of ops after the other.
template <class... Collectors>
void scan(const Run& run, Collectors&... collectors) {
  constexpr std::size_t kBlock = 256;  // ops and records: 42 KB
  const std::size_t ops = run.trace->ops.size();
  for (std::size_t first = 0; first < ops; first += kBlock)
    (collectors.add(static_cast<OpId>(first), static_cast<OpId>(std::min(first + kBlock, ops))), ...);
}

// total_waits and origin_shares.
class WaitCollector {
 public:
  explicit WaitCollector(const Run& run);
  void add(OpId first, OpId last);
  const Waits& waits();  // once, after all ops

  // Of a thread or a stream, by reason.
  struct LaneTotals {
    std::array<Duration, kWaitReasons> time{};
    std::array<std::uint64_t, kWaitReasons> count{};
  };

 private:
  void add_call(OpId id);
  void add_work(OpId id);
  void add_standstill(OpId id, Time ready);
  void add_reordered_streams();

  const Run& run_;
  Waits waits_;
  std::vector<OpId> previous_;  // by thread
  std::vector<Time> ends_;      // by stream: of its last op so far; kNever before the first
  std::vector<bool> reordered_;  // by stream: an op starts before the end of one that the trace has before it
  std::vector<LaneTotals> threads_, streams_;
};

class OriginCollector {
 public:
  explicit OriginCollector(const Run& run) : run_(run) {}
  void add(OpId first, OpId last);
  const OriginShares& shares() const { return shares_; }

 private:
  const Run& run_;
  OriginShares shares_;
};

// top_work.
class WorkCollector {
 public:
  // Ops on the device by name; `time` adds up.
  struct Sum {
    std::uint64_t count = 0;
    DurationSum time;
    double flops = 0;
  };
  explicit WorkCollector(const Run& run);
  void add(OpId first, OpId last);
  TopWork top(const std::vector<PathSegment>& path, std::size_t limit = 10) const;

 private:
  void add_flops(const Op& op, double seconds);
  std::optional<FlopsUse> flops_use() const;
  double times_of(const Op& op) const;

  const Run& run_;
  std::vector<Sum> operators_, kernels_;  // by StringId
  DurationSum device_;
  Time begin_{};             // of the first step
  std::vector<double> times_;  // by rank: how often its program stands in the job; none where there is one program
  double step_seconds_ = 0;    // of all steps, each so often
  double flops_ = 0, recomputed_ = 0;
  double counted_flops_ = 0, counted_recomputed_ = 0;  // the same, each so often
  double known_seconds_ = 0, unknown_seconds_ = 0;  // of matrix products with and without FLOPs
  std::array<double, 11> by_type_{};                // FLOPs of matrix products by DataType
};

// Intervals in which at least one op of a class runs on a rank: ascending, disjoint.
struct BusyIntervals {
  std::vector<Interval> compute, recompute;
  std::vector<Interval> collective, copy;  // storage I/O is copy; they count where nothing else is pending
};
inline constexpr std::uint32_t kEveryRank = 0xffffffff;

class BusyCollector {
 public:
  // Of each rank; of one alone, where it is named: the others' stay empty.
  explicit BusyCollector(const Run& run, std::uint32_t only = kEveryRank);
  void add(OpId first, OpId last);
  std::vector<BusyIntervals> take();

 private:
  struct Unions {
    IntervalUnion compute, recompute, collective, copy;
    IntervalUnion& of(TimeClass time_class);
  };
  const Run& run_;
  const std::uint32_t only_;
  std::vector<Unions> ranks_;
};

// The accounting of a run of one rank. `path`: critical_path(run).
TimeAccounting account(const Run& run, const std::vector<PathSegment>& path, const BusyIntervals& busy);

// Per device, how long at least one op that counts as load runs within the run's steps; and what moves through tiers.
class LoadCollector {
 public:
  explicit LoadCollector(const Run& run);
  void add(OpId first, OpId last);
  double gpus() const;  // of all ranks of the job
  // Each once, after all ops. Time under load of all these GPUs; bytes that all ranks read from or write to each tier.
  double take_busy_seconds();
  std::vector<double> take_tier_bytes();

 private:
  void add_traffic(const Op& op);
  void add_bytes(int tier, Bytes moved);

  const Run& run_;
  Time begin_{}, end_{};  // of all steps
  std::vector<IntervalUnion> devices_;
  std::vector<double> tier_bytes_;
  std::vector<int> tier_of_place_;
  int hbm_, host_;
  std::vector<double> ranks_;         // of the job, by program
  std::vector<double> device_ranks_;  // by device: of its program
  double times_ = 1;                  // ranks that run the op at hand
};
StepEnergyPrice step_energy_price(const Run& run, LoadCollector& load);

// Per storage the op that made it: the first that writes it, else its alloc, else kNoOp. What lived before the first op
// was made by none.
class MakerCollector {
 public:
  explicit MakerCollector(const Run& run);
  void add(OpId first, OpId last);
  std::vector<OpId> take();

 private:
  const Run& run_;
  std::vector<OpId> writer_, alloc_;
};
std::vector<Peak> find_peaks(const Run& run, const std::vector<OpId>& made_by, std::size_t limit = 10);

// memory_decisions.
class DecisionCollector {
 public:
  explicit DecisionCollector(const Run& run) : run_(run) {}
  void add(OpId first, OpId last);
  MemoryDecisions take(const std::vector<OpId>& made_by);  // once, after all ops

 private:
  void begin();
  void add_copy(OpId id);
  void add_rerun(OpId id);
  void add_uses(OpId id);
  void use_again(StorageReturn& back, OpId id) const;
  void use_fetched(StorageReturn& back, OpId id) const;

  const Run& run_;
  std::vector<StorageId> origin_;         // by storage: the one that the program made; empty until something moves
  std::vector<std::uint32_t> return_of_;  // by storage: its return, an index into returns_
  std::vector<StorageDeparture> departures_;
  std::vector<StorageReturn> returns_;
  std::vector<OpId> reruns_;
};

// Where storages hold data on the device's clock: device_residency, device_peaks. Empty unless has_device_clock(run).
class LifetimeCollector {
 public:
  explicit LifetimeCollector(const Run& run);
  void add(OpId first, OpId last);
  std::vector<Residency> take();  // once, after all ops; in no order
  // No op names it, and it was first in a tier of a device. After take().
  bool is_unnamed(StorageId storage) const { return unnamed_[storage]; }

 private:
  struct Held {
    Time allocated{}, freed = kNever;  // on the host; kNever: it is not freed
    // Of ops that name it the first write's start and the last end. While none does: of what its stream ran between its
    // allocation and its free.
    Time begin = kNever, end{};
    bool named = false, by_host = false;  // by_host: the host writes it
  };
  struct StreamState {
    Time last_end{};                   // of its last op so far
    std::vector<StorageId> allocated;  // since that
  };
  void allocate(StorageId storage, Time time);
  void free(StorageId storage, Time time);
  void run_on_stream(const Op& op, const OpRecord& record);
  void use_on_host(const Op& op, const OpRecord& record);
  Held& name(StorageId storage);
  Residency lifetime_of(StorageId storage) const;

  const Run& run_;
  std::vector<std::uint16_t> first_tier_;  // by storage
  std::vector<Held> storages_;  // gone after take()
  std::vector<bool> unnamed_;
  std::vector<StreamState> streams_;
};
std::vector<DevicePeak> device_peaks(const Run& run, LifetimeCollector& lifetimes);

// Figures of RunSummary.
class OpCounter {
 public:
  explicit OpCounter(const Run& run) : run_(run) {}
  void add(OpId first, OpId last);
  const std::array<std::uint64_t, kOpKinds>& by_kind() const { return by_kind_; }
  std::uint64_t on_device() const { return on_device_; }

 private:
  const Run& run_;
  std::array<std::uint64_t, kOpKinds> by_kind_{};
  std::uint64_t on_device_ = 0;
};

// What the walk along the critical path and its interval ask of all ops.
class PathSurvey {
 public:
  explicit PathSurvey(const Run& run) : run_(run) {}
  void add(OpId first, OpId last);

  bool has_host_work() const { return has_host_work_; }
  // Is every op on a device modelled, and is there one?
  bool all_modelled() const { return has_device_op_ && !has_other_origin_; }
  JobKind job() const;
  // The first op whose work ends with the run; else the last whose call does.
  OpId last_work() const { return last_work_; }
  OpId last_call() const { return last_call_; }
  // Of the run, how long the busiest host thread is in calls or between two (HostShare::thread).
  double busiest_thread() const;

 private:
  void add_busy_time(const Op& op, const OpRecord& record);

  struct Thread {
    Time end{};
    Duration busy{};
  };

  const Run& run_;
  bool has_host_work_ = false, has_device_op_ = false, has_other_origin_ = false;
  bool meets_ = false, gathers_ = false, deepspeed_ = false, host_updates_ = false, is_divided_ = false;
  OpId last_work_ = kNoOp, last_call_ = kNoOp;
  std::vector<Thread> threads_;
};

std::vector<PathSegment> critical_path(const Run& run, const PathSurvey& survey);
std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time,
                                          const PathSurvey& survey);
// Of a run whose path was put together from several: of which kind, and PathSurvey::busiest_thread(), are known.
std::optional<StepInterval> step_interval(const Run& run, const std::vector<PathSegment>& path, Duration step_time,
                                          std::optional<JobKind> job, double busiest_thread);

}  // namespace memwall
