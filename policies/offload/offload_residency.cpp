#include "policies/offload/offload_residency.h"

#include <algorithm>
#include <set>

#include "policies/offload/offload_transfer_schedule.h"
#include "sim/error.h"

namespace memwall {
namespace {

// What every part needs to know about the trace.
struct StepAnalysis {
  explicit StepAnalysis(const Trace& t) : trace(t), histories(storage_histories(t)), runs(phase_runs(t)) {}

  const Trace& trace;
  std::vector<StorageHistory> histories;
  PhaseRuns runs;

  RunKind kind_of(OpId op) const { return runs.runs[runs.run_of[op]].kind; }
  bool on_device(StorageId id) const { return trace.places[trace.storages[id].place] == "hbm"; }
  bool touched_by_device_only(StorageId id) const {
    return std::all_of(histories[id].touches.begin(), histories[id].touches.end(),
                       [this](const Touch& t) { return runs_on_device(trace.ops[t.op].kind); });
  }
};

// A part's candidates and what it refuses with when there are none.
struct Candidates {
  std::vector<TransferSchedule> schedules;
  std::size_t small = 0;

  void add(const StepAnalysis& analysis, TransferSchedule schedule, Bytes min_bytes) {
    if (analysis.trace.storages[schedule.storage].bytes < min_bytes) {
      ++small;
    } else {
      schedules.push_back(std::move(schedule));
    }
  }
};

[[noreturn]] void refuse(const StepAnalysis& analysis, const OffloadSettings& settings, const Candidates& candidates,
                         const std::string& what, const std::string& expected) {
  const std::string head = "Policy 'offload': trace '" + analysis.trace.name + "' has no " + what;
  if (candidates.small > 0)
    throw UsageError(head + " of at least min_bytes=" + std::to_string(settings.min_bytes) + "; it has " +
                     std::to_string(candidates.small) + " smaller ones.");
  throw UsageError(head + ". Expected " + expected + ".");
}

// The first `fraction` of the bytes, in the order of first touch.
void take_fraction(const StepAnalysis& analysis, std::vector<TransferSchedule>& schedules, double fraction) {
  std::stable_sort(schedules.begin(), schedules.end(), [&](const TransferSchedule& a, const TransferSchedule& b) {
    return analysis.histories[a.storage].touches.front().op < analysis.histories[b.storage].touches.front().op;
  });
  double total = 0, sum = 0;
  const auto bytes = [&](const TransferSchedule& j) {
    return static_cast<double>(analysis.trace.storages[j.storage].bytes);
  };
  for (const TransferSchedule& j : schedules) total += bytes(j);
  std::size_t count = 0;
  while (count < schedules.size() && sum + bytes(schedules[count]) <= fraction * total)
    sum += bytes(schedules[count++]);
  schedules.resize(count);
}

// Device memory that the trace says was reserved at the start shrinks by what now starts elsewhere.
void give_back_reserved(Trace& t, const Trace& base) {
  if (t.reserved_at_start == 0) return;
  for (std::size_t i = 0; i < base.storages.size(); ++i) {
    const bool was = base.storages[i].preexisting && base.places[base.storages[i].place] == "hbm";
    const bool is = t.storages[i].preexisting && t.places[t.storages[i].place] == "hbm";
    if (was && !is) t.reserved_at_start = std::max<Bytes>(0, t.reserved_at_start - base.storages[i].bytes);
  }
}

OffloadedStep finish(TraceEdit&& edit, const Trace& base, const TransferSummary& summary, const std::string& what,
                     const OffloadSettings& settings) {
  OffloadedStep result{std::move(edit).apply(), summary.storages};
  give_back_reserved(result.trace, base);
  result.trace.notes.push_back(summary.sentence(what, settings.to));
  return result;
}

// The intervals of a storage whose touches are cut where the run changes.
std::vector<ResidencyInterval> intervals_by_run(const StepAnalysis& analysis, const std::vector<Touch>& touches) {
  std::vector<ResidencyInterval> intervals;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    if (i == 0 || analysis.runs.run_of[touches[i].op] != analysis.runs.run_of[touches[i - 1].op])
      intervals.push_back({i, i, i > 0 && touches[i].writes && !touches[i].reads});
    intervals.back().last = i;
  }
  return intervals;
}

// The copy with which an optimizer off the GPU brings a new parameter to the device from `tier`: its source, or
// kNoStorage.
StorageId update_source(const Trace& t, const Touch& touch, StorageId parameter, const std::string& tier) {
  const Op& op = t.ops[touch.op];
  if (op.kind != OpKind::copy || !op.added || !touch.writes || t.places[op.from] != tier) return kNoStorage;
  for (const Use& use : t.uses_of(op))
    if (use.access == Access::read && t.storages[use.storage].bytes == t.storages[parameter].bytes) return use.storage;
  return kNoStorage;
}

// Cuts the touches of every schedule into intervals: at `breaks` (op ids that are no part of a interval),
// and where more than `distance` other schedules' storages are touched in between.
class WindowCutter {
 public:
  WindowCutter(const StepAnalysis& analysis, const std::vector<TransferSchedule>& schedules, std::uint32_t distance)
      : analysis_(analysis), distance_(distance) {
    for (const TransferSchedule& j : schedules)
      for (const Touch& t : analysis.histories[j.storage].touches) sequence_.emplace_back(t.op, j.storage);
    std::sort(sequence_.begin(), sequence_.end());
  }

  std::vector<ResidencyInterval> cut(StorageId storage, const std::set<OpId>& breaks) const {
    const std::vector<Touch>& touches = analysis_.histories[storage].touches;
    std::vector<ResidencyInterval> intervals;
    bool open = false;
    for (std::size_t i = 0; i < touches.size(); ++i) {
      if (breaks.contains(touches[i].op)) {
        open = false;
        continue;
      }
      if (!open || far_apart(touches[i - 1].op, touches[i].op)) intervals.push_back({i, i, false});
      intervals.back().last = i;
      open = true;
    }
    return intervals;
  }

 private:
  bool far_apart(OpId a, OpId b) const {
    std::set<StorageId> others;
    auto at = std::upper_bound(sequence_.begin(), sequence_.end(), std::pair(a, kNoStorage));
    for (; at != sequence_.end() && at->first < b; ++at)
      if (others.insert(at->second).second && others.size() > distance_) return true;
    return false;
  }

  const StepAnalysis& analysis_;
  std::uint32_t distance_;
  std::vector<std::pair<OpId, StorageId>> sequence_;
};

// Behind a stage the new content there is written on; else the parameter simply lives where the optimizer updates it.
void adopt_update(TraceEdit& edit, const StepAnalysis& analysis, const OffloadSettings& settings,
                  TransferSchedule& schedule, OpId copy, StorageId source, bool first) {
  edit.remove(copy);
  if (!settings.through.empty()) {
    schedule.refreshes.push_back({copy, source});
    return;
  }
  if (!first) return;
  for (const Touch& touch : analysis.histories[source].touches) edit.repoint(touch.op, source, schedule.storage);
  edit.tables().storages[source].preexisting = false;
}

void cut_into_intervals(TraceEdit& edit, const StepAnalysis& analysis, const OffloadSettings& settings,
                        std::vector<TransferSchedule>& schedules) {
  const WindowCutter cutter(analysis, schedules, settings.prefetch);
  for (TransferSchedule& schedule : schedules) {
    std::set<OpId> updates;
    for (const Touch& touch : analysis.histories[schedule.storage].touches) {
      const StorageId source = update_source(analysis.trace, touch, schedule.storage,
                                             settings.through.empty() ? settings.to : settings.through);
      if (source == kNoStorage) continue;
      adopt_update(edit, analysis, settings, schedule, touch.op, source, updates.empty());
      updates.insert(touch.op);
    }
    schedule.intervals = cutter.cut(schedule.storage, updates);
    if (!analysis.trace.storages[schedule.storage].preexisting && !schedule.intervals.empty())
      schedule.intervals.front().fresh = true;
  }
  std::erase_if(schedules, [](const TransferSchedule& j) { return j.intervals.empty(); });
}

// Storages of a kind that live far and are lent to the device.
OffloadedStep lend(const Trace& trace, const Machine& machine, const Pricer& pricer, const OffloadSettings& settings,
                   StorageKind kind, const std::string& what, Bytes min_bytes) {
  const StepAnalysis analysis(trace);
  Candidates candidates;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const StorageHistory& history = analysis.histories[id];
    if (trace.storages[id].kind != kind || !analysis.on_device(id) || history.touches.empty()) continue;
    if (!analysis.touched_by_device_only(id)) continue;
    if (history.alloc != kNoOp && trace.ops[history.alloc].added) continue;  // a policy's own copy on the device
    candidates.add(analysis, {id, Home::far, {}, {}}, min_bytes);
  }
  if (candidates.schedules.empty())
    refuse(analysis, settings, candidates, what, "storages of that kind that kernels touch");
  take_fraction(analysis, candidates.schedules, settings.fraction);
  TraceEdit edit(trace, machine.host);
  cut_into_intervals(edit, analysis, settings, candidates.schedules);
  const TransferSummary summary = insert_transfers(edit, pricer, settings, analysis.histories, analysis.runs,
                                                   std::move(candidates.schedules), false);
  return finish(std::move(edit), trace, summary, what, settings);
}

// The last touch of the run in which the storage is made, or nothing if no backward pass follows.
bool crosses_to_backward(const StepAnalysis& analysis, const std::vector<Touch>& touches, std::size_t& last_forward) {
  if (touches.empty() || !touches.front().writes || analysis.kind_of(touches.front().op) != RunKind::forward)
    return false;
  const std::uint32_t run = analysis.runs.run_of[touches.front().op];
  last_forward = 0;
  while (last_forward + 1 < touches.size() && analysis.runs.run_of[touches[last_forward + 1].op] == run) ++last_forward;
  return last_forward + 1 < touches.size() && analysis.kind_of(touches[last_forward + 1].op) == RunKind::backward;
}

bool copied_away(const StepAnalysis& analysis, const std::vector<Touch>& touches) {
  return std::any_of(touches.begin(), touches.end(), [&](const Touch& t) {
    const Op& op = analysis.trace.ops[t.op];
    return op.kind == OpKind::copy && op.added && t.reads && analysis.trace.places[op.to] != "hbm";
  });
}

}  // namespace

OffloadedStep offload_activations(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                  const OffloadSettings& settings) {
  const StepAnalysis analysis(trace);
  Candidates candidates;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const Storage& s = trace.storages[id];
    const StorageHistory& history = analysis.histories[id];
    const bool wanted = s.kind == StorageKind::activation || (settings.inputs && s.kind == StorageKind::input);
    std::size_t last_forward = 0;
    if (!wanted || !analysis.on_device(id) || history.alloc == kNoOp || !analysis.touched_by_device_only(id)) continue;
    if (!crosses_to_backward(analysis, history.touches, last_forward)) continue;
    candidates.add(
        analysis,
        {id, Home::device, {{0, last_forward, false}, {last_forward + 1, history.touches.size() - 1, false}}, {}},
        settings.min_bytes);
  }
  if (candidates.schedules.empty())
    refuse(analysis, settings, candidates, "activations",
           "storages of kind activation that forward makes and backward reads");
  take_fraction(analysis, candidates.schedules, settings.fraction);
  TraceEdit edit(trace, machine.host);
  const TransferSummary summary = insert_transfers(edit, pricer, settings, analysis.histories, analysis.runs,
                                                   std::move(candidates.schedules), true);
  return finish(std::move(edit), trace, summary, "activations", settings);
}

OffloadedStep offload_gradients(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                const OffloadSettings& settings) {
  const StepAnalysis analysis(trace);
  Candidates candidates;
  bool gone = false;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const StorageHistory& history = analysis.histories[id];
    if (trace.storages[id].kind != StorageKind::gradient || !analysis.on_device(id) || history.alloc == kNoOp) continue;
    if (history.touches.empty() || !analysis.touched_by_device_only(id)) continue;
    std::vector<ResidencyInterval> intervals = intervals_by_run(analysis, history.touches);
    const bool taken = copied_away(analysis, history.touches);
    if (!taken && intervals.size() == 1) continue;  // nobody reads it again in this trace
    gone = gone || taken;
    candidates.add(analysis, {id, taken ? Home::gone : Home::device, std::move(intervals), {}}, settings.min_bytes);
  }
  if (candidates.schedules.empty())
    refuse(analysis, settings, candidates, "gradients",
           "gradients that backward allocates (zero_grad(set_to_none=True)) and an optimizer reads");
  take_fraction(analysis, candidates.schedules, settings.fraction);
  TraceEdit edit(trace, machine.host);
  const TransferSummary summary = insert_transfers(edit, pricer, settings, analysis.histories, analysis.runs,
                                                   std::move(candidates.schedules), false);
  for (StorageId id = 0; gone && id < trace.storages.size(); ++id) {  // what the step before would have left behind
    const Storage& s = trace.storages[id];
    if (s.kind != StorageKind::gradient || !s.preexisting || !analysis.histories[id].touches.empty()) continue;
    edit.tables().storages[id].preexisting = false;
    if (analysis.histories[id].free != kNoOp) edit.remove(analysis.histories[id].free);
  }
  return finish(std::move(edit), trace, summary, "gradients", settings);
}

OffloadedStep offload_parameters(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                 const OffloadSettings& settings) {
  return lend(trace, machine, pricer, settings, StorageKind::parameter, "parameters", settings.min_bytes);
}

OffloadedStep stream_optimizer_states(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                      const OffloadSettings& settings) {
  return lend(trace, machine, pricer, settings, StorageKind::optimizer_state, "optimizer states", 0);
}

bool moved_before(const Trace& trace, StorageKind kind) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [&](const Op& op) {
    const auto uses = trace.uses_of(op);
    return op.added && (op.kind == OpKind::copy || op.kind == OpKind::storage_io) &&
           std::any_of(uses.begin(), uses.end(), [&](const Use& u) { return trace.storages[u.storage].kind == kind; });
  });
}

}  // namespace memwall
