#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/drawing/run_figure_parts.h"
#include "gui/model/peer_text.h"
#include "traces/figure/axis.h"
#include "traces/figure/links_figure.h"

namespace memwall::gui {
namespace {

// Carried within the window, from the rates.
double carried(const std::vector<RatePoint>& rates, TimeRange window) {
  double bytes = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const Time from = std::max(rates[i].time, window.begin);
    const Time to = std::min(i + 1 < rates.size() ? rates[i + 1].time : window.end, window.end);
    if (from < to) bytes += rates[i].bytes_per_second * to_seconds(to - from);
  }
  return bytes;
}

std::string note_of(double bytes, double utilization) {
  return fmt::format("{}, {:.1f} %", format_bytes(bytes), utilization * 100);
}

}  // namespace

Figure links_figure(const Run& run, const std::optional<TimeRange>& range) {
  const TimeRange window = window_of(run, range);
  LinksChart chart{.title = "Links" + range_suffix(range),
                   .subtitle = headline_of(run),
                   .begin = window.begin,
                   .end = window.end,
                   .links = {},
                   .marks = run.trace->steps.empty() ? std::vector<InstantMark>{} : step_marks(run)};
  for (std::size_t l = 0; l < run.result.links.size() && l < run.link_rates.size(); ++l) {
    const Bytes whole = run.result.links[l].bytes;
    if (whole == 0) continue;
    const Link& its = run.machine.links[l];
    // What the range does not cut is exact.
    const double bytes = range ? carried(run.link_rates[l], window) : static_cast<double>(whole);
    const double could = its.bandwidth * to_seconds(window.length());
    LinkChart link{its.name, note_of(bytes, could > 0 ? bytes / could : 0), {}, {}, its.bandwidth};
    if (const std::string node = link_node_text(run, l); !node.empty()) link.note += ", " + node;
    for (const RatePoint& p : run.link_rates[l]) {
      link.times.push_back(p.time);
      link.rates.push_back(p.bytes_per_second);
    }
    chart.links.push_back(std::move(link));
  }
  return draw_links(chart);
}

}  // namespace memwall::gui
