#include "cli/charts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/format.h"
#include "sim/error.h"
#include "traces/figure/compare_figure.h"
#include "traces/figure/links_figure.h"
#include "traces/figure/memory_figure.h"
#include "traces/figure/tiers_figure.h"
#include "traces/figure/timeline_figure.h"
#include "traces/run/compare.h"
#include "traces/run/export_lanes.h"
#include "traces/run/summary.h"

namespace memwall {
namespace {

std::string subtitle_of(const Run& run) {
  std::vector<std::string> policies = run.policies;
  if (!run.pager.empty()) policies.push_back("pager " + run.pager);
  return fmt::format("{} on {}, {}", run.trace.name, run.machine.name,
                     policies.empty() ? "no policy" : fmt::format("{}", fmt::join(policies, " + ")));
}

// Word and colour of a slice: what people tell ops apart by.
std::string kind_of(const Op& op, bool on_host) {
  if (on_host) return "host";
  switch (op.kind) {
    case OpKind::copy:
      return "copy";
    case OpKind::collective:
      return "collective";
    case OpKind::storage_io:
      return "storage";
    default:
      return op.phase == Phase::unknown ? "compute" : std::string(to_string(op.phase));
  }
}

class TimelineMaker {
 public:
  explicit TimelineMaker(const Run& run) : run_(run), lanes_(run) {}

  Timeline make() {
    Timeline t;
    t.title = "Timeline";
    t.subtitle = subtitle_of(run_);
    t.end = run_.result.end;
    for (const ExportLane& lane : lanes_.lanes()) t.lanes.push_back({lane.name, lane.group == LaneGroup::host});
    lanes_.for_each([&](const ExportSlice& slice) { add(t, slice); });
    for (const StepWindow& step : step_windows(run_)) {
      const auto& ranks = run_.trace.rank_table;
      t.marks.push_back(
          {step.begin, ranks.empty() ? step.name : fmt::format("rank {}: {}", ranks[step.rank].number, step.name)});
    }
    return t;
  }

 private:
  void add(Timeline& t, const ExportSlice& slice) {
    if (slice.op == kNoOp) {
      t.spans.push_back({slice.lane, slice.begin, slice.end, kind(t, "copy"), "move by the pager"});
      return;
    }
    const Op& op = run_.trace.ops[slice.op];
    const bool on_host = lanes_.lanes()[slice.lane].group == LaneGroup::host;
    t.spans.push_back(
        {slice.lane, slice.begin, slice.end, kind(t, kind_of(op, on_host)), display_name(run_.trace, op)});
  }

  static std::uint16_t kind(Timeline& t, const std::string& name) {
    const auto found = std::find(t.kinds.begin(), t.kinds.end(), name);
    if (found != t.kinds.end()) return static_cast<std::uint16_t>(found - t.kinds.begin());
    t.kinds.push_back(name);
    return static_cast<std::uint16_t>(t.kinds.size() - 1);
  }

  const Run& run_;
  ExportLanes lanes_;
};

ComparePanel time_panel(const std::vector<Run>& runs, const std::vector<std::string>& labels) {
  ComparePanel panel{.title = "step time", .quantity = Quantity::seconds, .bars = {}, .limit = 0, .limit_name = ""};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunSummary s = summarize(runs[i]);
    CompareBar bar{labels[i], {}};
    for (int c = 0; c < kTimeClasses; ++c)
      bar.parts.push_back({std::string(to_string(static_cast<TimeClass>(c))),
                           to_seconds(s.times[static_cast<TimeClass>(c)]) / s.step_count});
    panel.bars.push_back(bar);
  }
  return panel;
}

ComparePanel memory_panel(const std::vector<Run>& runs, const std::vector<std::string>& labels) {
  ComparePanel panel{
      .title = "peak memory of the GPU", .quantity = Quantity::bytes, .bars = {}, .limit = 0, .limit_name = "usable"};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const int hbm = runs[i].machine.tier("hbm");
    if (hbm < 0) continue;
    panel.limit =
        std::max(panel.limit, static_cast<double>(runs[i].machine.tiers[static_cast<std::size_t>(hbm)].holds()));
    const Peak peak = find_peak(runs[i], hbm);
    CompareBar bar{labels[i], {}};
    for (int k = 0; k < kStorageKinds; ++k)
      bar.parts.push_back({std::string(to_string(static_cast<StorageKind>(k))),
                           static_cast<double>(peak.by_kind[static_cast<std::size_t>(k)])});
    panel.bars.push_back(bar);
  }
  return panel;
}

// Of several ranks the first's tiers have the names of the machine file: "hbm rank 0" is "hbm" (sim/rank_machine.h).
std::string without_first_rank(const Run& run, const std::string& tier) {
  if (run.trace.rank_table.empty()) return tier;
  const std::string first = fmt::format(" rank {}", run.trace.rank_table.front().number);
  return tier.ends_with(first) ? tier.substr(0, tier.size() - first.size()) : tier;
}

// Whose memory a picture shows: ", rank 0" where further ranks have a tier of that name too.
std::string owner_of_tier(const Run& run, const std::string& tier) {
  const auto& ranks = run.trace.rank_table;
  if (ranks.size() < 2 || run.machine.tier(fmt::format("{} rank {}", tier, ranks[1].number)) < 0) return "";
  return fmt::format(", rank {}", ranks.front().number);
}

}  // namespace

Figure timeline_of(const Run& run) { return draw_timeline(TimelineMaker(run).make()); }

Figure memory_of(const Run& run, const std::string& tier) {
  const std::string own = without_first_rank(run, tier);
  const int index = run.machine.tier(own);
  if (index < 0) {
    std::vector<std::string> known;
    for (const Tier& t : run.machine.tiers) known.push_back(t.name);
    const std::string near = nearest_name(tier, known);
    throw UsageError(fmt::format("--tier {}: machine {} has no such tier{}; expected one of {}.", tier,
                                 run.machine.name, near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                                 fmt::join(known, ", ")));
  }
  const auto t = static_cast<std::size_t>(index);
  MemoryChart chart{
      .title = "Memory of " + own + owner_of_tier(run, own),
      .subtitle = subtitle_of(run) +
                  (run.trace.knowledge.allocations ? "" : "; the trace does not know what is allocated when"),
      .begin = {},
      .end = run.result.end,
      .times = {},
      .layers = {},
      .outlines = {},
      .capacity = run.machine.tiers[t].holds()};
  const std::vector<KindPoint> points = memory_by_kind(run, index);
  for (const KindPoint& p : points) chart.times.push_back(p.time);
  for (int k = 0; k < kStorageKinds; ++k) {
    MemoryLayer layer{std::string(to_string(static_cast<StorageKind>(k))), {}};
    for (const KindPoint& p : points) layer.values.push_back(p.by_kind[k]);
    if (std::any_of(layer.values.begin(), layer.values.end(), [](Bytes b) { return b > 0; }))
      chart.layers.push_back(std::move(layer));
  }
  if (t < run.memory.size() && !run.memory[t].empty()) {
    MemoryOutline reserved{"reserved by the allocator", {}, {}};
    for (const MemoryPoint& p : run.memory[t]) {
      reserved.times.push_back(p.time);
      reserved.values.push_back(p.reserved);
    }
    chart.outlines.push_back(std::move(reserved));
  }
  return draw_memory(chart);
}

Figure links_of(const Run& run) {
  LinksChart chart{.title = "Links", .subtitle = subtitle_of(run), .begin = {}, .end = run.result.end, .links = {}};
  const RunSummary summary = summarize(run);
  for (std::size_t l = 0; l < summary.links.size() && l < run.link_rates.size(); ++l) {
    const LinkSummary& s = summary.links[l];
    if (s.bytes == 0) continue;
    LinkChart link{
        s.name, fmt::format("{}, {}", human_bytes(s.bytes), human_percent(s.utilization)), {}, {}, s.bandwidth};
    for (const RatePoint& p : run.link_rates[l]) {
      link.times.push_back(p.time);
      link.rates.push_back(p.bytes_per_second);
    }
    chart.links.push_back(std::move(link));
  }
  return draw_links(chart);
}

Figure tiers_of(const Run& run) {
  TiersChart chart{.title = "Memory hierarchy", .subtitle = subtitle_of(run), .tiers = {}, .links = {}};
  const RunSummary summary = summarize(run);
  for (const TierSummary& tier : summary.tiers) {
    TierRow row{tier.name, tier.capacity, tier.capacity - tier.usable, {}};
    for (int k = 0; k < kStorageKinds; ++k)
      if (const Bytes b = tier.peak.by_kind[static_cast<std::size_t>(k)]; b > 0)
        row.parts.push_back({std::string(to_string(static_cast<StorageKind>(k))), b});
    chart.tiers.push_back(std::move(row));
  }
  for (const LinkSummary& l : summary.links)
    if (l.bytes > 0) chart.links.push_back({l.name, l.bytes, l.utilization, l.bandwidth});
  return draw_tiers(chart);
}

Figure comparison_of(const std::vector<Run>& runs, const std::vector<std::string>& labels) {
  CompareChart chart{.title = "Comparison",
                     .subtitle = subtitle_of(runs.front()),
                     .panels = {time_panel(runs, labels), memory_panel(runs, labels)},
                     .waterfalls = {}};
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const Comparison c = compare(runs.front(), runs[i]);
    Waterfall fall{.title = "time of all steps",
                   .base_label = labels.front(),
                   .other_label = labels[i],
                   .quantity = Quantity::seconds,
                   .base = to_seconds(c.base_time),
                   .changes = {}};
    for (int k = 0; k < kTimeClasses; ++k)
      fall.changes.push_back(
          {std::string(to_string(static_cast<TimeClass>(k))), to_seconds(c.waterfall[static_cast<TimeClass>(k)])});
    chart.waterfalls.push_back(std::move(fall));
  }
  return draw_comparison(chart);
}

}  // namespace memwall
