#include "traces/run/run.h"

#include <algorithm>
#include <tuple>

#include "sim/duration_sum.h"
#include "sim/machine/rank_machine.h"
#include "sim/machine/tier_copies.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

struct KindChange {
  Time time{};
  Bytes bytes = 0;  // negative: given back
  StorageKind kind = StorageKind::unknown;
};

std::vector<KindChange> changes_of_tier(const Run& run, int tier) {
  std::vector<KindChange> changes;
  const TierCopies copies(run.machine, run.trace);
  for (const Residency& residency : run.residency) {
    if (residency.tier != tier) continue;
    const Storage& storage = run.trace->storages[residency.storage];
    const Bytes bytes = storage.bytes * copies.of(residency.storage, residency.tier);
    changes.push_back({residency.begin, bytes, storage.kind});
    if (residency.end < run.result.end) changes.push_back({residency.end, -bytes, storage.kind});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const KindChange& a, const KindChange& b) { return a.time < b.time; });
  return changes;
}

// How far a rank's GPU is behind its host: when the capture begins, with work of which nothing but itself is recorded,
// and where its last work is launched.
struct Lag {
  Time placed_end{}, last_launch{}, last_end{};
  Duration of(Time begin) const { return std::max(Duration{}, std::min(placed_end - begin, last_end - last_launch)); }
};

// What is placed stands at the head of a rank's program: of one rank, before all other work of its device.
bool begins_behind(const Trace& trace) {
  if (!trace.rank_table.empty()) return true;  // to be looked for
  const auto first = std::ranges::find_if(trace.ops, [](const Op& op) { return runs_on_device(op.kind); });
  return first != trace.ops.end() && first->placed;
}

std::vector<Lag> lags(const Run& run, std::size_t ranks) {
  std::vector<Lag> all(ranks);
  for (OpId id = 0; id < run.result.records.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const OpRecord& record = run.result.records[id];
    if (record.start == kNever || !runs_on_device(op.kind)) continue;
    const std::uint16_t rank = rank_of(run.trace, op);
    if (rank >= ranks) continue;  // a damaged run, which readers refuse
    Lag& lag = all[rank];
    if (op.placed) {
      lag.placed_end = std::max(lag.placed_end, record.end);
      continue;
    }
    lag.last_end = std::max(lag.last_end, record.end);
    if (record.host_end != kNever) lag.last_launch = std::max(lag.last_launch, record.host_end);
  }
  return all;
}

// Of each rank what lies before its GPU has caught up with the beginning of its first window.
void leave_out_backlog(const Run& run, std::vector<StepWindow>& windows, std::size_t ranks) {
  if (!begins_behind(run.trace)) return;
  const std::vector<Lag> all = lags(run, ranks);
  std::vector<Time> from(ranks, kNever);
  for (StepWindow& window : windows) {
    if (window.rank >= ranks) continue;
    Time& first = from[window.rank];
    if (first == kNever) first = window.begin + all[window.rank].of(window.begin);
    const Time begin = std::clamp(first, window.begin, window.end);
    window.behind = begin - window.begin;
    window.begin = begin;
  }
}

}  // namespace

std::string machine_text(const std::string& machine, const std::vector<std::string>& overrides) {
  std::string text = machine;
  for (const std::string& override_text : overrides) text += " + " + override_text;
  return text;
}

std::vector<std::string> settings_text(const RunChanges& changes, const std::string& pager,
                                       const std::string& allocator, const std::string& allocator_settings) {
  std::vector<std::string> texts;
  if (!pager.empty()) texts.push_back("pager " + pager);
  if (changes.transfer_host) texts.push_back("host time transferred");
  for (const std::string& scale : changes.scale) texts.push_back("scale " + scale);
  if (allocator != Run{}.allocator) texts.push_back("allocator " + allocator);
  if (!allocator_settings.empty()) texts.push_back(allocator_settings);
  return texts;
}

std::vector<KindPoint> memory_by_kind(const Run& run, int tier) {
  std::vector<KindPoint> points(1);
  points.back().by_kind[static_cast<int>(StorageKind::unknown)] =
      untracked_by_tier(run.machine, run.trace)[static_cast<std::size_t>(tier)];
  for (const KindChange& change : changes_of_tier(run, tier)) {
    if (points.back().time != change.time) {
      points.push_back(points.back());
      points.back().time = change.time;
    }
    points.back().by_kind[static_cast<int>(change.kind)] += change.bytes;
  }
  return points;
}

std::vector<StepWindow> step_windows(const Run& run) {
  const Trace& trace = run.trace;
  const auto& records = run.result.records;
  const std::vector<Time> ends = rank_ends(run);
  std::vector<StepWindow> windows;
  if (trace.steps.empty())
    for (std::uint16_t rank = 0; rank < ends.size(); ++rank) windows.push_back({"all", Time{}, ends[rank], rank});
  for (const Step& step : trace.steps) {
    const std::uint16_t rank = step.first < trace.ops.size() ? rank_of(trace, trace.ops[step.first]) : 0;
    const Time end_of_rank = rank < ends.size() ? ends[rank] : run.result.end;
    const auto boundary = [&](OpId id) {
      return id < records.size() && records[id].host_start != kNever ? records[id].host_start : end_of_rank;
    };
    const Time begin = boundary(step.first);
    windows.push_back({step.name, begin, std::max(begin, boundary(end_of_step(trace, step))), rank});
  }
  leave_out_backlog(run, windows, ends.size());
  return windows;
}

Duration mean_step(const Run& run) {
  DurationSum all;
  const std::vector<StepWindow> steps = step_windows(run);
  for (const StepWindow& step : steps) all += step.end - step.begin;
  return steps.empty() ? Duration{} : from_seconds(all.seconds() / static_cast<double>(steps.size()));
}

std::vector<Time> rank_ends(const Run& run) {
  if (run.trace->rank_table.size() < 2) return {run.result.end};
  std::vector<Time> ends(run.trace->rank_table.size());
  for (OpId id = 0; id < run.result.records.size(); ++id) {
    const OpRecord& record = run.result.records[id];
    const std::uint16_t rank = rank_of(run.trace, run.trace->ops[id]);
    if (rank >= ends.size()) continue;  // a damaged run, which readers refuse
    Time& end = ends[rank];
    if (record.host_end != kNever) end = std::max(end, record.host_end);
    if (record.end != kNever) end = std::max(end, record.end);
  }
  return ends;
}

}  // namespace memwall
