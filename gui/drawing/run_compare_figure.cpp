#include <algorithm>

#include "gui/drawing/run_figure_parts.h"
#include "gui/model/run_label.h"
#include "traces/figure/compare_figure.h"
#include "traces/run/analysis/compare.h"
#include "traces/run/analysis/summary.h"

namespace memwall::gui {
namespace {

ComparePanel time_panel(const std::vector<const Run*>& runs, const std::vector<std::string>& labels) {
  ComparePanel panel{.title = "step time", .quantity = Quantity::seconds, .bars = {}, .limit = 0, .limit_name = ""};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunSummary s = summarize(*runs[i]);
    CompareBar bar{labels[i], {}};
    for (int c = 0; c < kTimeClasses; ++c)
      bar.parts.push_back({std::string(to_string(static_cast<TimeClass>(c))),
                           to_seconds(s.times[static_cast<TimeClass>(c)]) / s.step_count});
    panel.bars.push_back(bar);
  }
  return panel;
}

ComparePanel memory_panel(const std::vector<const Run*>& runs, const std::vector<std::string>& labels) {
  ComparePanel panel{.title = "peak memory of the GPU, by the allocator's (host) clock",
                     .quantity = Quantity::bytes,
                     .bars = {},
                     .limit = 0,
                     .limit_name = "usable"};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = *runs[i];
    const int hbm = run.machine.tier("hbm");
    if (hbm < 0) continue;
    panel.limit = std::max(panel.limit, static_cast<double>(run.machine.tiers[static_cast<std::size_t>(hbm)].holds()));
    CompareBar bar{labels[i], {}, run.trace->knowledge.allocations};
    if (!bar.recorded) {
      panel.bars.push_back(std::move(bar));
      continue;
    }
    const Peak peak = find_peak(run, hbm);
    for (int k = 0; k < kStorageKinds; ++k)
      bar.parts.push_back({std::string(to_string(static_cast<StorageKind>(k))),
                           static_cast<double>(peak.by_kind[static_cast<std::size_t>(k)])});
    panel.bars.push_back(bar);
  }
  return panel;
}

Waterfall waterfall(const Run& base, const Run& other, const std::string& base_label, const std::string& other_label) {
  const Comparison c = compare(base, other);
  Waterfall fall{.title = "time of all steps",
                 .base_label = base_label,
                 .other_label = other_label,
                 .quantity = Quantity::seconds,
                 .base = to_seconds(c.base_time),
                 .changes = {}};
  for (int k = 0; k < kTimeClasses; ++k)
    fall.changes.push_back(
        {std::string(to_string(static_cast<TimeClass>(k))), to_seconds(c.waterfall[static_cast<TimeClass>(k)])});
  return fall;
}

}  // namespace

Figure comparison_figure(const std::vector<const Run*>& runs, std::vector<std::string> labels) {
  // What the others are compared with.
  if (labels.size() > 1) labels.front() = "base: " + labels.front();
  CompareChart chart{.title = "Comparison",
                     .subtitle = shared_headline(runs),
                     .panels = {time_panel(runs, labels), memory_panel(runs, labels)},
                     .waterfalls = {}};
  for (std::size_t i = 1; i < runs.size(); ++i)
    chart.waterfalls.push_back(waterfall(*runs.front(), *runs[i], labels.front(), labels[i]));
  return draw_comparison(chart);
}

}  // namespace memwall::gui
