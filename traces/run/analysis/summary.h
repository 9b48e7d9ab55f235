// The summary: every figure that `memwall run` prints, as plain numbers.
//
// What each includes is said beside it; the table, JSON, CSV and Markdown forms
// print these and compute nothing themselves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/run/analysis/accounting.h"
#include "traces/run/analysis/device_memory.h"
#include "traces/run/analysis/device_occupancy.h"
#include "traces/run/analysis/drive_writes.h"
#include "traces/run/analysis/energy.h"
#include "traces/run/analysis/gpu_memory_peaks.h"
#include "traces/run/analysis/host_use.h"
#include "traces/run/analysis/job_totals.h"
#include "traces/run/analysis/memory_decisions.h"
#include "traces/run/analysis/peak.h"
#include "traces/run/analysis/pipeline_summary.h"
#include "traces/run/analysis/rank_summary.h"
#include "traces/run/analysis/step_interval.h"
#include "traces/run/analysis/step_periods.h"
#include "traces/run/analysis/top_work.h"
#include "traces/run/analysis/training_cost.h"
#include "traces/run/analysis/verdict.h"
#include "traces/run/analysis/waits.h"
#include "traces/run/run.h"

namespace memwall {

struct StepSummary {
  std::string name;
  Duration step_time{};  // host: this boundary to the next, or to the end of everything
  Duration gpu_span{};   // first start to last end on the GPU of what the step launched
  ClassTimes times;      // add up to step_time
  // Whose step it is, by number in the job; nothing where the trace holds one rank.
  std::optional<std::uint32_t> rank;
};

// What a tier's allocator holds at one instant. In a simulation no freed block waits for other streams: what is active
// is what is allocated.
struct AllocatorState {
  Usage usage;
  Time time{};
  Bytes internal() const { return usage.allocated - usage.requested; }  // fragmentation within blocks
  Bytes external() const { return usage.reserved - usage.allocated; }   // between them: cached, not in use
};

struct AllocatorSummary {
  Bytes peak_allocated = 0, peak_reserved = 0, missing = 0;  // as in TierSummary
  AllocatorState at_peak_allocated;
  std::optional<AllocatorState>
      at_peak_reserved;  // the fullest instant of it; absent where a measured run does not tell it
  AllocatorEvents events;
  std::uint64_t ooms = 0;  // requests that found no memory, every try counted
};

// What `missing` of a tier is counted from.
enum class MissingCause : std::uint8_t {
  nothing,      // it fits
  in_use,       // the peak in use less what is usable
  reserved,     // the peak reserved less what is usable: an allocator that reserves a whole arena
  in_one_piece  // a request: as many bytes were free, but not together (fragmentation)
};
std::string_view to_string(MissingCause cause);
MissingCause cause_of_missing(const TierResult& result, Bytes usable);

struct TierSummary {
  std::string name;
  TierClass tier_class = TierClass::device;
  Bytes capacity = 0;        // of the machine; of what folded ranks share, the part of one
  Bytes shared = 0;          // what they share; 0 = it is this rank's alone
  Bytes usable = 0;          // less context, driver, operating system; times the compression: bytes of tensors that fit
  Bytes peak_allocated = 0;  // blocks in use, rounding included
  Bytes peak_reserved = 0;   // obtained from the device, cached blocks included
  Bytes missing = 0;         // beyond what is usable, at worst; 0 = fits
  MissingCause missing_cause = MissingCause::nothing;
  // Free when the first request found no memory, in pieces or reserved for others; absent where the run does not tell.
  std::optional<Bytes> free_at_refusal;
  AllocatorEvents allocator;
  Peak peak;  // at the instant of peak_allocated, with the ten largest storages
  AllocatorSummary memory;
  std::optional<AllocatorSummary> unchanged;  // of the step before policies and without a pager, where there are any
  double compression = 1;                     // bytes of tensors per byte stored
  std::optional<double> peak_price{};         // dollars to buy what is stored at the peak; absent without a figure
  // By the device's clock; all else here is by the allocator's, the host's. Absent unless has_device_clock(run).
  std::optional<DevicePeak> device_peak{};
  std::optional<DriveWrites> writes{};  // to drives; absent where nothing is written
};

struct LinkSummary {
  std::string name;
  Bytes bytes = 0;         // carried, folded ranks included
  Duration busy{};         // time with at least one flow
  double utilization = 0;  // bytes / (bandwidth x whole run); 0 for a run without duration
  double bandwidth = 0;    // bytes per second
};

// A way from tier to tier that something in the run took.
struct RouteSummary {
  std::string name, from, to;      // "h2d", "host", "hbm"
  std::vector<std::string> links;  // in the order of the machine's file
  std::string bound_by;            // what makes it no faster, as RouteBound has it: "pcie_uplink_h2d"
  double bandwidth = 0;            // bytes per second of one transfer alone, as far as that allows
  Bytes bytes = 0;                 // that ops and a pager moved over it, of one of the folded ranks
};

struct RunSummary {
  Verdict verdict;
  std::string trace, machine, gpu, pager, allocator;
  std::string allocator_settings;  // "" = default
  RunChanges changes;
  std::vector<RecipeItem> recipe;
  Completeness completeness = Completeness::complete;  // of the capture, and why not
  std::string completeness_reason;
  std::vector<std::string> policies, notes;
  std::vector<MemoryBudget> budgets;  // as Trace::budgets
  std::size_t warnings = 0;           // the first of the notes: what the user changed and nothing comes of
  bool fits = true;
  // Does the run tell what memory holds? Else peaks, what is missing and `fits` say nothing.
  bool memory_recorded = true;
  bool lives_recorded = true;  // else peaks are lower bounds (sim/trace/derived_lives.h)
  // Does the only step stand for all of a capture that marks none?
  bool is_window() const {
    return steps.size() == 1 && steps.front().name.starts_with("window") &&
           !steps.front().name.ends_with(" one iteration");
  }
  // False: it fits as far as the capture shows, and may not.
  bool knows_fit() const { return !fits || (memory_recorded && lives_recorded); }
  // Means over the steps where there are several. The last step ends with the last work.
  Duration step_time{};
  Duration unchanged_step_time{};             // of the step before policies and without a pager; 0 where there are none
  Duration steady_step_time{};                // as Run::steady_step; 0 = no drive that falls off
  Duration alone_step_time{};                 // as Run::alone_step; 0 = no other rank, or nobody asked
  ContendedSteps contended_steps;             // as Run::contended_steps
  Duration first_step_time{};                 // as Run::first_step; 0 = no memory is page-locked in a step
  std::vector<TriedChange> tried;             // as Run::tried
  std::vector<Speedup> speedups;              // as Run::speedups
  std::optional<StepInterval> step_interval;  // of step_time, where part of it is modelled
  Duration gpu_span{};                        // of the whole run: first GPU start to last GPU end
  Duration total{};                           // 0 to the end of everything
  Duration behind{};                          // of the GPU when the capture begins, which is no step's (StepWindow)
  StepPeriods periods;                        // of the host and of the GPU
  ClassTimes times;                           // of all steps together; divide by step_count
  std::uint32_t step_count = 1;
  StepEnergyPrice energy_price;                          // of one step, all GPUs together
  std::optional<TrainingCost> training;                  // where somebody asked (training_cost)
  double samples_per_second = 0, tokens_per_second = 0;  // 0 = unknown; all ranks of the group together
  std::uint32_t ranks = 1;           // that run: those of the trace, times those that are folded into each
  std::uint32_t job_ranks = 0;       // of the job that was captured; 0 = unknown
  std::optional<JobTotals> job;      // of all ranks together; absent for one, and where they run several programs
  std::vector<RankSummary> by_rank;  // none where the trace holds one
  std::optional<PipelineSummary> pipeline;  // of a model that is divided; absent where the trace says nothing of stages
  std::vector<StepSummary> steps;    // of several ranks: each rank's, in the order of the trace
  std::vector<TierSummary> tiers;    // as Machine::tiers
  std::optional<GpuMemoryPeaks> gpu_memory;   // of the fullest GPU; absent where the run does not tell
  std::optional<DeviceMemory> device_memory;  // absent where the run does not tell what memory holds
  std::vector<HostUse> hosts;        // those in whose memory something lives
  std::vector<LinkSummary> links;    // as Machine::links
  std::vector<RouteSummary> routes;  // of those between different tiers that carried anything, as Machine::routes
  ClassTimes path;                   // what the critical path is made of, 0 to the end
  TopWork top;
  MemoryDecisions decisions;
  Waits waits;
  OriginShares origin;  // of device time
  std::uint64_t ops = 0, events = 0, device_ops = 0, moves = 0;
  std::array<std::uint64_t, kOpKinds> ops_by_kind{};
  std::vector<InputFile> inputs;
  std::optional<Provenance> provenance;
};

RunSummary summarize(const Run& run);
// The same for whoever has these at hand: critical_path(run) and account(run).
RunSummary summarize(const Run& run, const std::vector<PathSegment>& path, const TimeAccounting& accounting);

// One JSON object, indented, keys in a fixed order, seconds and bytes as plain numbers (shortest
// form that reads back to the same double). Byte-equal for equal summaries. The fields are
// described in docs/run_json.md: `schema` is raised when one changes its meaning or goes.
std::string to_json(const RunSummary& summary);

}  // namespace memwall
