#include "traces/run/run.h"

#include <algorithm>
#include <tuple>

#include "sim/duration_sum.h"
#include "sim/machine/rank_machine.h"
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
  for (const Residency& residency : run.residency) {
    if (residency.tier != tier) continue;
    const Storage& storage = run.trace->storages[residency.storage];
    changes.push_back({residency.begin, storage.bytes, storage.kind});
    if (residency.end < run.result.end) changes.push_back({residency.end, -storage.bytes, storage.kind});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const KindChange& a, const KindChange& b) { return a.time < b.time; });
  return changes;
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
