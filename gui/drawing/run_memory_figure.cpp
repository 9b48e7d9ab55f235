#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/run_figure_parts.h"
#include "sim/human_text.h"
#include "traces/figure/memory_figure.h"
#include "traces/figure/palette.h"
#include "traces/run/analysis/memory_decisions.h"

namespace memwall::gui {
namespace {

// Whose memory a picture shows: ", rank 0" where further ranks have a tier of that name too.
std::string owner_of_tier(const Run& run, const std::string& tier) {
  const int index = run.machine.one.tier(tier);
  const std::vector<RankView>& views = run.machine.views;
  if (index < 0 || views.size() < 2 || views[1].tier[static_cast<std::size_t>(index)] == index) return "";
  return fmt::format(", rank {}", run.trace->rank_table.front().number);
}

// Points of the window: what held at its beginning stands there.
template <class Points>
Points cut(const Points& points, TimeRange window) {
  Points kept;
  for (const auto& point : points) {
    if (point.time > window.end) break;
    if (point.time <= window.begin) kept.clear();
    kept.push_back(point);
    kept.back().time = std::max(point.time, window.begin);
  }
  return kept;
}

void add_layers(MemoryChart& chart, const std::vector<KindPoint>& points) {
  for (const KindPoint& p : points) chart.times.push_back(p.time);
  for (int k = 0; k < kStorageKinds; ++k) {
    MemoryLayer layer{std::string(to_string(static_cast<StorageKind>(k))), {}};
    for (const KindPoint& p : points) layer.values.push_back(p.by_kind[k]);
    if (std::any_of(layer.values.begin(), layer.values.end(), [](Bytes b) { return b > 0; }))
      chart.layers.push_back(std::move(layer));
  }
}

// Kinds are stacked as requested; tables give the peak in blocks, rounding included: where the two differ both are
// named. Of a range the highest stack is no peak of the run, and says so.
void name_peak(MemoryChart& chart, const std::vector<KindPoint>& points, const MemoryPoint& in_blocks, bool of_range) {
  MemoryPeak peak;
  Bytes then = 0;  // requested when most is held in blocks
  for (const KindPoint& p : points) {
    Bytes sum = 0;
    for (const Bytes bytes : p.by_kind) sum += bytes;
    if (sum > peak.bytes) peak = {p.time, sum, of_range ? "in this range" : ""};
    if (p.time <= in_blocks.time) then = sum;
  }
  if (in_blocks.allocated > peak.bytes) {
    const std::string when = then == peak.bytes ? "" : " at " + plot::format_instant(chart.unit, in_blocks.time);
    peak.name +=
        fmt::format("{}requested ({} in blocks{})", of_range ? ", " : "", format_bytes(in_blocks.allocated), when);
  }
  if (peak.bytes > 0 && !peak.name.empty()) chart.peak = peak;
}

MemoryPoint most_in_blocks(const std::vector<MemoryPoint>& points) {
  MemoryPoint most;
  for (const MemoryPoint& p : points)
    if (p.allocated > most.allocated) most = p;
  return most;
}

std::string storage_text(const Run& run, StorageId storage) {
  const Storage& made = run.trace->storages[storage];
  const std::string& label = run.trace->strings[made.label];
  return fmt::format("{} of {}", label.empty() ? fmt::format("storage {}", storage) : label, format_bytes(made.bytes));
}

void add_fetch(const Run& run, const StorageReturn& back, ActivityRow& row) {
  const OpRecord& copy = run.result.records[back.by];
  const Bytes bytes = run.trace->ops[back.by].bytes;
  const std::string text = storage_text(run, back.storage);
  if (back.use == kNoOp) {
    row.spans.push_back({copy.start, copy.end, ActivityState::works, bytes, text + ": fetched"});
    return;
  }
  const std::string when = back.late ? "its use waits for it" : human_time(back.slack) + " before its use";
  const std::string sentence = fmt::format("{}: fetched, {}", text, when);
  row.spans.push_back({copy.start, copy.end, back.late ? ActivityState::late : ActivityState::works, bytes, sentence});
  if (back.slack > Duration{})
    row.spans.push_back({copy.end, copy.end + back.slack, ActivityState::waits, bytes, sentence});
}

// What planners were to keep the step to, beside what is not the step's.
void add_budgets(MemoryChart& chart, const Trace& trace) {
  for (const MemoryBudget& budget : trace.budgets) {
    const Bytes most = trace.untracked_bytes + budget.bytes;
    chart.outlines.push_back({"budget of " + budget.policy, {chart.begin, chart.end}, {most, most}});
  }
}

// What a policy or a plan sends away, fetches and runs again. Rows in which nothing happens are left out.
std::vector<ActivityRow> activity_of(const Run& run) {
  const MemoryDecisions decisions = memory_decisions(run);
  ActivityRow sent{"sent", "sent", palette::color_of("copy"), {}}, fetched{"fetched", "fetched", sent.color, {}},
      again{"run again", "ops run again", palette::color_of("recompute"), {}};
  for (const StorageDeparture& gone : decisions.departures) {
    const OpRecord& copy = run.result.records[gone.copy];
    sent.spans.push_back({copy.start, copy.end, ActivityState::works, run.trace->ops[gone.copy].bytes,
                          storage_text(run, gone.storage) + ": copied out"});
  }
  for (const StorageReturn& back : decisions.returns)
    if (!back.is_rerun) add_fetch(run, back, fetched);
  for (const OpId id : decisions.reruns) {
    const Op& op = run.trace->ops[id];
    const std::string& name = run.trace->strings[op.operator_name != 0 ? op.operator_name : op.name];
    again.spans.push_back({run.result.records[id].start, run.result.records[id].end, ActivityState::works, 0,
                           fmt::format("{} of {}: run again", name, run.trace->strings[op.module])});
  }
  std::vector<ActivityRow> rows{std::move(sent), std::move(fetched), std::move(again)};
  std::erase_if(rows, [](const ActivityRow& row) { return row.spans.empty(); });
  return rows;
}

}  // namespace

Figure memory_figure(const Run& run, const RunFigureRequest& request) {
  const std::optional<TimeRange>& range = request.range;
  const bool on_device = request.clock == MemoryClock::device;
  if (on_device) require_device_clock(run);
  const std::size_t t = tier_of_figure(run, request.tier);
  const std::string& name = run.machine.tiers[t].name;
  const TimeRange window = window_of(run, range);
  MemoryChart chart{
      .title = "Memory of " + name + owner_of_tier(run, name) +
               (on_device ? " that holds data, by the device's clock" : " by the allocator's (host) clock") +
               range_suffix(range),
      .subtitle =
          headline_of(run) +
          (run.trace->knowledge.allocations ? "" : "; not recorded: the capture does not say what takes memory"),
      .begin = window.begin,
      .end = window.end,
      .times = {},
      .layers = {},
      .outlines = {},
      .capacity = run.machine.tiers[t].holds()};
  const int index = static_cast<int>(t);
  const std::vector<KindPoint> points =
      cut(on_device ? device_memory_by_kind(run, index) : memory_by_kind(run, index), window);
  add_layers(chart, points);
  // In blocks, and what is reserved: as the allocator counts, on the host's clock.
  MemoryPoint in_blocks;
  if (!on_device && range && t < run.memory.size())
    in_blocks = most_in_blocks(cut(run.memory[t], window));
  else if (!on_device && t < run.result.tiers.size())
    in_blocks = {run.result.tiers[t].peak_time, run.result.tiers[t].peak_allocated, 0, 0};
  name_peak(chart, points, in_blocks, range.has_value());
  if (!on_device && t < run.memory.size() && !run.memory[t].empty()) {
    MemoryOutline reserved{"reserved by the allocator", {}, {}};
    for (const MemoryPoint& p : cut(run.memory[t], window)) {
      reserved.times.push_back(p.time);
      reserved.values.push_back(p.reserved);
    }
    chart.outlines.push_back(std::move(reserved));
  }
  if (name == "hbm") add_budgets(chart, *run.trace);
  if (!run.trace->steps.empty()) chart.marks = step_marks(run);
  if (name == "hbm") chart.activity = activity_of(run);
  if (!chart.activity.empty() && !on_device) chart.subtitle += "; rows below: by the device's clock";
  return draw_memory(chart);
}

}  // namespace memwall::gui
