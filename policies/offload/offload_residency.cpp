#include "policies/offload/offload_residency.h"

#include <algorithm>
#include <set>

#include "policies/offload/offload_journey.h"
#include "sim/error.h"

namespace memwall {
namespace {

// What every part needs to know about the trace.
struct Survey {
  explicit Survey(const Trace& t) : trace(t), histories(storage_histories(t)), runs(phase_runs(t)) {}

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
  std::vector<Journey> journeys;
  std::size_t small = 0;

  void add(const Survey& survey, Journey journey, Bytes min_bytes) {
    if (survey.trace.storages[journey.storage].bytes < min_bytes) {
      ++small;
    } else {
      journeys.push_back(std::move(journey));
    }
  }
};

[[noreturn]] void refuse(const Survey& survey, const OffloadSettings& settings, const Candidates& candidates,
                         const std::string& what, const std::string& expected) {
  const std::string head = "Policy 'offload': trace '" + survey.trace.name + "' has no " + what;
  if (candidates.small > 0)
    throw UsageError(head + " of at least min_bytes=" + std::to_string(settings.min_bytes) + "; it has " +
                     std::to_string(candidates.small) + " smaller ones.");
  throw UsageError(head + ". Expected " + expected + ".");
}

// The first `fraction` of the bytes, in the order of first touch.
void take_fraction(const Survey& survey, std::vector<Journey>& journeys, double fraction) {
  std::stable_sort(journeys.begin(), journeys.end(), [&](const Journey& a, const Journey& b) {
    return survey.histories[a.storage].touches.front().op < survey.histories[b.storage].touches.front().op;
  });
  double total = 0, sum = 0;
  const auto bytes = [&](const Journey& j) { return static_cast<double>(survey.trace.storages[j.storage].bytes); };
  for (const Journey& j : journeys) total += bytes(j);
  std::size_t count = 0;
  while (count < journeys.size() && sum + bytes(journeys[count]) <= fraction * total) sum += bytes(journeys[count++]);
  journeys.resize(count);
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

Trace finish(TraceEdit&& edit, const Trace& base, const std::string& note) {
  Trace result = std::move(edit).apply();
  give_back_reserved(result, base);
  result.notes.push_back(note);
  return result;
}

// The visits of a storage whose touches are cut where the run changes.
std::vector<Visit> visits_by_run(const Survey& survey, const std::vector<Touch>& touches) {
  std::vector<Visit> visits;
  for (std::size_t i = 0; i < touches.size(); ++i) {
    if (i == 0 || survey.runs.run_of[touches[i].op] != survey.runs.run_of[touches[i - 1].op])
      visits.push_back({i, i, i > 0 && touches[i].writes && !touches[i].reads});
    visits.back().last = i;
  }
  return visits;
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

// Cuts the touches of every journey into visits: at `breaks` (op ids that are no part of a visit),
// and where more than `distance` other journeys' storages are touched in between.
class WindowCutter {
 public:
  WindowCutter(const Survey& survey, const std::vector<Journey>& journeys, std::uint32_t distance)
      : survey_(survey), distance_(distance) {
    for (const Journey& j : journeys)
      for (const Touch& t : survey.histories[j.storage].touches) sequence_.emplace_back(t.op, j.storage);
    std::sort(sequence_.begin(), sequence_.end());
  }

  std::vector<Visit> cut(StorageId storage, const std::set<OpId>& breaks) const {
    const std::vector<Touch>& touches = survey_.histories[storage].touches;
    std::vector<Visit> visits;
    bool open = false;
    for (std::size_t i = 0; i < touches.size(); ++i) {
      if (breaks.contains(touches[i].op)) {
        open = false;
        continue;
      }
      if (!open || far_apart(touches[i - 1].op, touches[i].op)) visits.push_back({i, i, false});
      visits.back().last = i;
      open = true;
    }
    return visits;
  }

 private:
  bool far_apart(OpId a, OpId b) const {
    std::set<StorageId> others;
    auto at = std::upper_bound(sequence_.begin(), sequence_.end(), std::pair(a, kNoStorage));
    for (; at != sequence_.end() && at->first < b; ++at)
      if (others.insert(at->second).second && others.size() > distance_) return true;
    return false;
  }

  const Survey& survey_;
  std::uint32_t distance_;
  std::vector<std::pair<OpId, StorageId>> sequence_;
};

// Behind a stage the new content there is written on; else the parameter simply lives where the optimizer updates it.
void adopt_update(TraceEdit& edit, const Survey& survey, const OffloadSettings& settings, Journey& journey, OpId copy,
                  StorageId source, bool first) {
  edit.remove(copy);
  if (!settings.through.empty()) {
    journey.refreshes.push_back({copy, source});
    return;
  }
  if (!first) return;
  for (const Touch& touch : survey.histories[source].touches) edit.repoint(touch.op, source, journey.storage);
  edit.tables().storages[source].preexisting = false;
}

void cut_into_visits(TraceEdit& edit, const Survey& survey, const OffloadSettings& settings,
                     std::vector<Journey>& journeys) {
  const WindowCutter cutter(survey, journeys, settings.prefetch);
  for (Journey& journey : journeys) {
    std::set<OpId> updates;
    for (const Touch& touch : survey.histories[journey.storage].touches) {
      const StorageId source = update_source(survey.trace, touch, journey.storage,
                                             settings.through.empty() ? settings.to : settings.through);
      if (source == kNoStorage) continue;
      adopt_update(edit, survey, settings, journey, touch.op, source, updates.empty());
      updates.insert(touch.op);
    }
    journey.visits = cutter.cut(journey.storage, updates);
    if (!survey.trace.storages[journey.storage].preexisting && !journey.visits.empty())
      journey.visits.front().fresh = true;
  }
  std::erase_if(journeys, [](const Journey& j) { return j.visits.empty(); });
}

// Storages of a kind that live far and are lent to the device.
Trace lend(const Trace& trace, const Machine& machine, const Pricer& pricer, const OffloadSettings& settings,
           StorageKind kind, const std::string& what, Bytes min_bytes) {
  const Survey survey(trace);
  Candidates candidates;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const StorageHistory& history = survey.histories[id];
    if (trace.storages[id].kind != kind || !survey.on_device(id) || history.touches.empty()) continue;
    if (!survey.touched_by_device_only(id)) continue;
    if (history.alloc != kNoOp && trace.ops[history.alloc].added) continue;  // a policy's own copy on the device
    candidates.add(survey, {id, Home::far, {}, {}}, min_bytes);
  }
  if (candidates.journeys.empty())
    refuse(survey, settings, candidates, what, "storages of that kind that kernels touch");
  take_fraction(survey, candidates.journeys, settings.fraction);
  TraceEdit edit(trace, machine.host);
  cut_into_visits(edit, survey, settings, candidates.journeys);
  const JourneySummary summary =
      offload_journeys(edit, pricer, settings, survey.histories, survey.runs, std::move(candidates.journeys), false);
  return finish(std::move(edit), trace, summary.sentence(what, settings.to));
}

// The last touch of the run in which the storage is made, or nothing if no backward pass follows.
bool crosses_to_backward(const Survey& survey, const std::vector<Touch>& touches, std::size_t& last_forward) {
  if (touches.empty() || !touches.front().writes || survey.kind_of(touches.front().op) != RunKind::forward)
    return false;
  const std::uint32_t run = survey.runs.run_of[touches.front().op];
  last_forward = 0;
  while (last_forward + 1 < touches.size() && survey.runs.run_of[touches[last_forward + 1].op] == run) ++last_forward;
  return last_forward + 1 < touches.size() && survey.kind_of(touches[last_forward + 1].op) == RunKind::backward;
}

bool copied_away(const Survey& survey, const std::vector<Touch>& touches) {
  return std::any_of(touches.begin(), touches.end(), [&](const Touch& t) {
    const Op& op = survey.trace.ops[t.op];
    return op.kind == OpKind::copy && op.added && t.reads && survey.trace.places[op.to] != "hbm";
  });
}

}  // namespace

Trace offload_activations(const Trace& trace, const Machine& machine, const Pricer& pricer,
                          const OffloadSettings& settings) {
  const Survey survey(trace);
  Candidates candidates;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const Storage& s = trace.storages[id];
    const StorageHistory& history = survey.histories[id];
    const bool wanted = s.kind == StorageKind::activation || (settings.inputs && s.kind == StorageKind::input);
    std::size_t last_forward = 0;
    if (!wanted || !survey.on_device(id) || history.alloc == kNoOp || !survey.touched_by_device_only(id)) continue;
    if (!crosses_to_backward(survey, history.touches, last_forward)) continue;
    candidates.add(
        survey,
        {id, Home::device, {{0, last_forward, false}, {last_forward + 1, history.touches.size() - 1, false}}, {}},
        settings.min_bytes);
  }
  if (candidates.journeys.empty())
    refuse(survey, settings, candidates, "activations",
           "storages of kind activation that forward makes and backward reads");
  take_fraction(survey, candidates.journeys, settings.fraction);
  TraceEdit edit(trace, machine.host);
  const JourneySummary summary =
      offload_journeys(edit, pricer, settings, survey.histories, survey.runs, std::move(candidates.journeys), true);
  return finish(std::move(edit), trace, summary.sentence("activations", settings.to));
}

Trace offload_gradients(const Trace& trace, const Machine& machine, const Pricer& pricer,
                        const OffloadSettings& settings) {
  const Survey survey(trace);
  Candidates candidates;
  bool gone = false;
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const StorageHistory& history = survey.histories[id];
    if (trace.storages[id].kind != StorageKind::gradient || !survey.on_device(id) || history.alloc == kNoOp) continue;
    if (history.touches.empty() || !survey.touched_by_device_only(id)) continue;
    std::vector<Visit> visits = visits_by_run(survey, history.touches);
    const bool taken = copied_away(survey, history.touches);
    if (!taken && visits.size() == 1) continue;  // nobody reads it again in this trace
    gone = gone || taken;
    candidates.add(survey, {id, taken ? Home::gone : Home::device, std::move(visits), {}}, settings.min_bytes);
  }
  if (candidates.journeys.empty())
    refuse(survey, settings, candidates, "gradients",
           "gradients that backward allocates (zero_grad(set_to_none=True)) and an optimizer reads");
  take_fraction(survey, candidates.journeys, settings.fraction);
  TraceEdit edit(trace, machine.host);
  const JourneySummary summary =
      offload_journeys(edit, pricer, settings, survey.histories, survey.runs, std::move(candidates.journeys), false);
  for (StorageId id = 0; gone && id < trace.storages.size(); ++id) {  // what the step before would have left behind
    const Storage& s = trace.storages[id];
    if (s.kind != StorageKind::gradient || !s.preexisting || !survey.histories[id].touches.empty()) continue;
    edit.tables().storages[id].preexisting = false;
    if (survey.histories[id].free != kNoOp) edit.remove(survey.histories[id].free);
  }
  return finish(std::move(edit), trace, summary.sentence("gradients", settings.to));
}

Trace offload_parameters(const Trace& trace, const Machine& machine, const Pricer& pricer,
                         const OffloadSettings& settings) {
  return lend(trace, machine, pricer, settings, StorageKind::parameter, "parameters", settings.min_bytes);
}

Trace stream_optimizer_states(const Trace& trace, const Machine& machine, const Pricer& pricer,
                              const OffloadSettings& settings) {
  return lend(trace, machine, pricer, settings, StorageKind::optimizer_state, "optimizer states", 0);
}

}  // namespace memwall
