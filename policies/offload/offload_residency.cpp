#include "policies/offload/offload_residency.h"

#include <algorithm>
#include <functional>
#include <set>

#include "policies/offload/offload_transfer_schedule.h"
#include "policies/plan/staging_copies.h"
#include "policies/profile/hidden_units.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

// What every part needs to know about the trace.
struct StepAnalysis {
  StepAnalysis(const Trace& t, const Machine& m, const Pricer& p, const OffloadSettings& s)
      : trace(t), machine(m), pricer(p), settings(s), flow(t) {}

  const Trace& trace;
  const Machine& machine;
  const Pricer& pricer;
  const OffloadSettings& settings;
  Dataflow flow;

  RunKind kind_of(OpId op) const { return flow.phases().kind(op); }
  bool on_device(StorageId id) const { return trace.places[trace.storages[id].place] == "hbm"; }
  bool touched_by_device_only(StorageId id) const {
    const auto touches = flow.touches(id);
    return std::all_of(touches.begin(), touches.end(),
                       [this](const Touch& t) { return runs_on_device(trace.ops[t.op].kind); });
  }
};

// A part's candidates and what it refuses with when there are none.
struct Candidates {
  std::vector<TransferSchedule> schedules;
  const SavedStorages* saved = nullptr;  // where the trace says what autograd saves of them
  std::size_t small = 0;
  Bytes largest_small = 0;

  void add(const StepAnalysis& analysis, TransferSchedule schedule, Bytes min_bytes) {
    const Bytes bytes = analysis.trace.storages[schedule.storage].bytes;
    if (bytes < min_bytes) {
      ++small;
      largest_small = std::max(largest_small, bytes);
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
                     counted_text(candidates.small, "smaller one") + " of up to " +
                     human_bytes(candidates.largest_small) + ". Give min_bytes=0 to move these too.");
  throw UsageError(head + ". Expected " + expected + ".");
}

// In the order of first touch.
void sort_schedules(const StepAnalysis& analysis, std::vector<TransferSchedule>& schedules) {
  std::stable_sort(schedules.begin(), schedules.end(), [&](const TransferSchedule& a, const TransferSchedule& b) {
    return analysis.flow.touches(a.storage).front().op < analysis.flow.touches(b.storage).front().op;
  });
}

// The first `fraction` of the bytes. REQUIRES: the schedules are sorted.
void take_fraction(const StepAnalysis& analysis, std::vector<TransferSchedule>& schedules, double fraction) {
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

// As their copies leave: who leaves at the same op goes in the order in which that saves.
void sort_by_saves(const StepAnalysis& analysis, std::vector<TransferSchedule>& schedules) {
  const auto leaves = [&](const TransferSchedule& j) {
    return j.saved.value_or(SavePoint{{analysis.flow.touches(j.storage)[j.intervals.front().last].op, true}});
  };
  std::stable_sort(schedules.begin(), schedules.end(),
                   [&](const TransferSchedule& a, const TransferSchedule& b) { return leaves(a) < leaves(b); });
}

// The first schedules, as many as leave the step no longer; says what was found. REQUIRES: the schedules are sorted.
std::string take_hidden(const StepAnalysis& analysis, Candidates& candidates, bool keep_last) {
  std::vector<TransferSchedule>& schedules = candidates.schedules;
  const StepProfile profile(analysis.trace, analysis.machine);
  const TraceEdit edit(analysis.trace, analysis.machine.host);
  const auto plan_of = [&](std::size_t units) {
    std::vector<TransferSchedule> first(schedules.begin(), schedules.begin() + static_cast<std::ptrdiff_t>(units));
    if (candidates.saved != nullptr) sort_by_saves(analysis, first);
    return transfer_plan(edit, analysis.settings, analysis.flow, first, keep_last, candidates.saved);
  };
  HiddenUnits hidden = hidden_units(profile, analysis.pricer, schedules.size(), plan_of);
  if (plan_of(hidden.units).storages.empty()) hidden.units = 0;  // the last ones stay: these are all
  schedules.resize(hidden.units);
  return "offload: " + hidden.sentence("activation", "activations") + ".";
}

// The trace with the transfers of the candidates that are taken. `prepare` goes first.
OffloadedStep transfer(const StepAnalysis& analysis, Candidates candidates, const std::string& what,
                       const std::string& expected, bool keep_last,
                       const std::function<void(TraceEdit&, std::vector<TransferSchedule>&)>& prepare = {}) {
  const OffloadSettings& settings = analysis.settings;
  if (candidates.schedules.empty()) refuse(analysis, settings, candidates, what, expected);
  sort_schedules(analysis, candidates.schedules);
  TraceEdit edit(analysis.trace, analysis.machine.host);
  if (settings.hides)
    edit.tables().notes.push_back(take_hidden(analysis, candidates, keep_last));
  else
    take_fraction(analysis, candidates.schedules, settings.fraction);
  if (candidates.saved != nullptr) sort_by_saves(analysis, candidates.schedules);
  if (prepare) prepare(edit, candidates.schedules);
  ScheduledTransfers summary = insert_transfers(edit, analysis.pricer, settings, analysis.flow, candidates.schedules,
                                                keep_last, candidates.saved);
  give_back_reserved(edit);
  if (!settings.hides || summary.storages > 0)
    edit.tables().notes.push_back(summary.sentence(what, settings.to, analysis.trace.steps.size()));
  OffloadedStep step{std::move(edit).apply(), summary.storages, {}};
  if (!prepare) step.plan = std::move(summary.plan);
  return step;
}

// The intervals of a storage whose touches are cut where the run changes.
std::vector<ResidencyInterval> intervals_by_run(const StepAnalysis& analysis, std::span<const Touch> touches) {
  std::vector<ResidencyInterval> intervals;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    if (i == 0 || analysis.flow.phases().of(touches[i].op) != analysis.flow.phases().of(touches[i - 1].op))
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

// Cuts the touches of every schedule into intervals: at `breaks` (op ids that are no part of an interval),
// and where more than `distance` other schedules' storages are touched in between.
class IntervalCutter {
 public:
  IntervalCutter(const StepAnalysis& analysis, const std::vector<TransferSchedule>& schedules, std::uint32_t distance)
      : analysis_(analysis), distance_(distance) {
    for (const TransferSchedule& j : schedules)
      for (const Touch& t : analysis.flow.touches(j.storage)) sequence_.emplace_back(t.op, j.storage);
    std::sort(sequence_.begin(), sequence_.end());
  }

  std::vector<ResidencyInterval> cut(StorageId storage, const std::set<OpId>& breaks) const {
    std::span<const Touch> touches = analysis_.flow.touches(storage);
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
  for (const Touch& touch : analysis.flow.touches(source)) edit.repoint(touch.op, source, schedule.storage);
  edit.tables().storages[source].preexisting = false;
}

void cut_into_intervals(TraceEdit& edit, const StepAnalysis& analysis, const OffloadSettings& settings,
                        std::vector<TransferSchedule>& schedules) {
  const IntervalCutter cutter(analysis, schedules, settings.prefetch);
  for (TransferSchedule& schedule : schedules) {
    std::set<OpId> updates;
    for (const Touch& touch : analysis.flow.touches(schedule.storage)) {
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
  const StepAnalysis analysis(trace, machine, pricer, settings);
  Candidates candidates;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const std::span<const Touch> touches = analysis.flow.touches(id);
    if (trace.storages[id].kind != kind || !analysis.on_device(id) || touches.empty()) continue;
    if (!analysis.touched_by_device_only(id)) continue;
    if (analysis.flow.alloc(id) != kNoOp && trace.ops[analysis.flow.alloc(id)].added)
      continue;  // a policy's own copy on the device
    candidates.add(analysis, {id, Home::far, {}, {}}, min_bytes);
  }
  return transfer(analysis, std::move(candidates), what, "storages of that kind that kernels touch", false,
                  [&](TraceEdit& edit, auto& schedules) { cut_into_intervals(edit, analysis, settings, schedules); });
}

// The last touch of the run in which the storage is made, or nothing if no backward pass follows.
bool crosses_to_backward(const StepAnalysis& analysis, std::span<const Touch> touches, std::size_t& last_forward) {
  if (touches.empty() || !touches.front().writes || analysis.kind_of(touches.front().op) != RunKind::forward)
    return false;
  const std::uint32_t run = analysis.flow.phases().of(touches.front().op);
  last_forward = 0;
  while (last_forward + 1 < touches.size() && analysis.flow.phases().of(touches[last_forward + 1].op) == run)
    ++last_forward;
  return last_forward + 1 < touches.size() && analysis.kind_of(touches[last_forward + 1].op) == RunKind::backward;
}

bool copies_away(const StepAnalysis& analysis, const Touch& touch) {
  const Op& op = analysis.trace.ops[touch.op];
  return op.kind == OpKind::copy && op.added && touch.reads && analysis.trace.places[op.to] != "hbm";
}

bool copied_away(const StepAnalysis& analysis, std::span<const Touch> touches) {
  return std::any_of(touches.begin(), touches.end(), [&](const Touch& t) { return copies_away(analysis, t); });
}

// An optimizer off the GPU has taken the gradient, and its device memory is given back behind the copy.
bool released_before(const StepAnalysis& analysis, StorageId id) {
  const OpId free = analysis.flow.free(id);
  return free != kNoOp && analysis.trace.ops[free].added &&
         std::any_of(analysis.trace.ops.begin(), analysis.trace.ops.end(), [](const Op& op) {
           return op.kind == OpKind::host_work && op.added && op.operator_class == OperatorClass::optimizer;
         });
}

// Gradients that the step before would have left behind, had it not sent them away too.
void forget_earlier_gradients(TraceEdit& edit, const StepAnalysis& analysis) {
  for (StorageId id = 0; id < analysis.trace.storages.size(); ++id) {
    const Storage& s = analysis.trace.storages[id];
    if (s.kind != StorageKind::gradient || !s.preexisting || !analysis.flow.touches(id).empty()) continue;
    edit.tables().storages[id].preexisting = false;
    if (analysis.flow.free(id) != kNoOp) edit.remove(analysis.flow.free(id));
  }
}

}  // namespace

OffloadedStep offload_activations(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                  const OffloadSettings& settings) {
  const StepAnalysis analysis(trace, machine, pricer, settings);
  const SavedStorages saved(trace, analysis.flow);
  Candidates candidates;
  if (saved.known()) candidates.saved = &saved;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const Storage& s = trace.storages[id];
    const std::span<const Touch> touches = analysis.flow.touches(id);
    const bool wanted = s.kind == StorageKind::activation || (settings.inputs && s.kind == StorageKind::input);
    std::size_t last_forward = 0;
    if (!wanted || !analysis.on_device(id) || analysis.flow.alloc(id) == kNoOp || !analysis.touched_by_device_only(id))
      continue;
    if (!crosses_to_backward(analysis, touches, last_forward)) continue;
    candidates.add(analysis,
                   {id,
                    Home::device,
                    {{0, last_forward, false}, {last_forward + 1, touches.size() - 1, false}},
                    {},
                    saved.saved_at(id)},
                   settings.min_bytes);
  }
  return transfer(analysis, std::move(candidates), "activations",
                  "storages of kind activation that forward makes and backward reads", true);
}

OffloadedStep offload_gradients(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                const OffloadSettings& settings) {
  const StepAnalysis analysis(trace, machine, pricer, settings);
  Candidates candidates;
  std::size_t released = 0;
  bool gone = false;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const std::span<const Touch> touches = analysis.flow.touches(id);
    if (trace.storages[id].kind != StorageKind::gradient || !analysis.on_device(id) || analysis.flow.alloc(id) == kNoOp)
      continue;
    if (touches.empty() || !analysis.touched_by_device_only(id)) continue;
    std::vector<ResidencyInterval> intervals = intervals_by_run(analysis, touches);
    const bool taken = copied_away(analysis, touches);
    if (intervals.size() == 1 && taken && released_before(analysis, id)) {
      ++released;
      continue;
    }
    if (!taken && intervals.size() == 1) continue;  // nobody reads it again in this trace
    gone = gone || taken;
    candidates.add(analysis, {id, taken ? Home::gone : Home::device, std::move(intervals), {}},
                   taken ? 0 : settings.min_bytes);
  }
  if (candidates.schedules.empty() && released > 0) return {trace, released, {}};
  return transfer(analysis, std::move(candidates), "gradients",
                  "gradients that backward allocates (zero_grad(set_to_none=True)) and an optimizer reads", false,
                  [&](TraceEdit& edit, auto&) {
                    if (gone) forget_earlier_gradients(edit, analysis);
                  });
}

Trace release_sent_gradients(Trace trace, const Machine& machine, const Pricer& pricer,
                             const OffloadSettings& settings) {
  OffloadSettings all = settings;
  all.fraction = 1;
  const StepAnalysis analysis(trace, machine, pricer, all);
  Candidates candidates;
  std::size_t staying = 0;
  Bytes staying_bytes = 0;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const std::span<const Touch> touches = analysis.flow.touches(id);
    if (trace.storages[id].kind != StorageKind::gradient || !analysis.on_device(id) || !copied_away(analysis, touches))
      continue;
    if (analysis.flow.alloc(id) == kNoOp || !copies_away(analysis, touches.back())) {
      ++staying;
      staying_bytes += trace.storages[id].bytes;
      continue;
    }
    candidates.add(analysis, {id, Home::gone, {{0, touches.size() - 1, false}}, {}}, 0);
  }
  if (!candidates.schedules.empty())
    trace = transfer(analysis, std::move(candidates), "gradients", "", false, [&](TraceEdit& edit, auto&) {
              forget_earlier_gradients(edit, analysis);
            }).trace;
  if (staying > 0)
    trace.notes.push_back("offload: " + counted_text(staying, "gradient") + " of " + human_bytes(staying_bytes) +
                          " stay on the GPU beside their copies: they live from step to step "
                          "(zero_grad(set_to_none=False)) or are used after they were sent.");
  return trace;
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
