#include "gui/drawing/run_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "gui/drawing/run_figure_parts.h"
#include "gui/drawing/run_tiers.h"
#include "gui/model/run_label.h"
#include "sim/error.h"
#include "traces/figure/axis.h"

namespace memwall::gui {
namespace {

// As many decimals as tell three digits of the range's length.
std::string instant_text(Time time, Duration length, const ScaledUnit& unit) {
  const double parts = to_seconds(length) / unit.factor;
  const int decimals = parts > 0 ? std::clamp(2 - static_cast<int>(std::floor(std::log10(parts))), 0, 12) : 0;
  std::string text = fmt::format("{:.{}f}", to_seconds(time) / unit.factor, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text + " " + unit.name;
}

void check_request(const RunFigureRequest& request, Time end) {
  const std::vector<std::string>& known = run_figure_names();
  if (std::find(known.begin(), known.end(), request.view) == known.end()) {
    const std::string near = nearest_name(request.view, known);
    throw UsageError(fmt::format("the view \"{}\" is unknown{}; expected one of {}.", request.view,
                                 near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(known, ", ")));
  }
  if (!request.lanes.empty() && request.view != "timeline")
    throw UsageError(fmt::format("lanes are chosen of a timeline; the view {} has none.", request.view));
  if (request.clock != MemoryClock::host && request.view != "memory")
    throw UsageError(fmt::format("the clock is chosen of memory; the view {} has none.", request.view));
  if (!request.range) return;
  if (!draws_ranges(request.view))
    throw UsageError(fmt::format(
        "the view {} tells of whole runs and has no range; expected timeline, memory, links or pipeline with it.", request.view));
  if (request.range->begin >= request.range->end || request.range->begin >= end || request.range->end <= Time{})
    throw UsageError(fmt::format("the range holds nothing of the run, which lasts from 0 to {}.", format_time(end)));
}

}  // namespace

const std::vector<std::string>& run_figure_names() {
  static const std::vector<std::string> names{"timeline", "memory", "tiers", "links", "ranks", "pipeline", "compare"};
  return names;
}

bool draws_ranges(const std::string& view) {
  return view == "timeline" || view == "memory" || view == "links" || view == "pipeline";
}

Figure run_figure(const std::vector<const Run*>& runs, const std::vector<std::string>& files,
                  const RunFigureRequest& request) {
  check_request(request, runs.front()->result.end);
  if (request.view == "compare") return comparison_figure(runs, run_labels(runs, files));
  const Run& run = *runs.front();
  if (request.view == "memory") return memory_figure(run, request);
  if (request.view == "links") return links_figure(run, request.range);
  if (request.view == "ranks") return ranks_figure(run);
  if (request.view == "pipeline") return pipeline_figure(run, request.range);
  if (request.view == "tiers") return draw_tiers(tiers_chart(run));
  return timeline_figure(run, request.range, request.lanes);
}

Figure run_timeline(const RunSource& run, const RunFigureRequest& request, const LoadProgress& progress) {
  check_request(request, run.outline().run.result.end);
  return timeline_figure(run, request.range, request.lanes, progress);
}

std::string headline_of(const Run& run) {
  std::string line = fmt::format("{} on {}, {}", run.trace->name,
                                 machine_text(run.machine.name, run.changes.overrides), policies_of(run));
  for (const std::string& setting : settings_text(run.changes, "", run.allocator, run.allocator_settings))
    line += ", " + setting;
  return line;
}

std::string range_suffix(const std::optional<TimeRange>& range) {
  if (!range) return "";
  const ScaledUnit unit = time_unit(to_seconds(range->end));
  return fmt::format(", {} to {}", instant_text(range->begin, range->length(), unit),
                     instant_text(range->end, range->length(), unit));
}

TimeRange window_of(const Run& run, const std::optional<TimeRange>& range) {
  return range ? TimeRange{std::max(range->begin, Time{}), std::min(range->end, run.result.end)}
               : TimeRange{Time{}, run.result.end};
}

void require_device_clock(const Run& run) {
  if (has_device_clock(run)) return;
  throw UsageError(
      fmt::format("the run of {} does not tell which bytes hold data on the device's clock: {}; expected the host's.",
                  run.trace->name,
                  run.trace->knowledge.dataflow ? "it has no record of which storage was where"
                                                : "its trace does not know what ops read and write"));
}

std::vector<InstantMark> step_marks(const Run& run) { return step_marks(run.trace, step_windows(run)); }

std::vector<InstantMark> step_marks(const Trace& trace, const std::vector<StepWindow>& steps) {
  std::vector<InstantMark> marks;
  const auto& ranks = trace.rank_table;
  for (const StepWindow& step : steps)
    marks.push_back(
        {step.begin, ranks.empty() ? step.name : fmt::format("rank {}: {}", ranks[step.rank].number, step.name)});
  std::stable_sort(marks.begin(), marks.end(), [](const InstantMark& a, const InstantMark& b) { return a.at < b.at; });
  return marks;
}

std::size_t tier_of_figure(const Run& run, const std::string& tier) {
  std::string own = tier;
  if (!run.trace->rank_table.empty()) {
    const std::string first = fmt::format(" rank {}", run.trace->rank_table.front().number);
    if (tier.ends_with(first)) own = tier.substr(0, tier.size() - first.size());
  }
  if (const int index = run.machine.tier(own); index >= 0) return static_cast<std::size_t>(index);
  std::vector<std::string> known;
  for (const Tier& t : run.machine.tiers) known.push_back(t.name);
  const std::string near = nearest_name(tier, known);
  throw UsageError(fmt::format("the tier \"{}\": machine {} has no such tier{}; expected one of {}.", tier,
                               run.machine.name, near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                               fmt::join(known, ", ")));
}

}  // namespace memwall::gui
