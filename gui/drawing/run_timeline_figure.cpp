#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "gui/drawing/run_figure_parts.h"
#include "sim/error.h"
#include "traces/figure/plot.h"
#include "traces/figure/timeline_figure.h"
#include "traces/run/export/export_lanes.h"
#include "traces/run/run_index.h"

namespace memwall::gui {
namespace {

constexpr std::uint32_t kNotShown = 0xffffffff;

// A lane of a crowded engine that continues another has its title and a number: "copy engine to host (2)".
bool is_titled(const std::string& lane, const std::string& title) {
  if (lane == title) return true;
  if (!lane.starts_with(title + " (") || !lane.ends_with(')')) return false;
  return std::all_of(lane.begin() + static_cast<std::ptrdiff_t>(title.size()) + 2, lane.end() - 1,
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

class TimelineMaker {
 public:
  TimelineMaker(const Run& run, TimeRange window) : run_(run), lanes_(run), window_(window) {}

  Timeline make(const std::vector<std::string>& titles) {
    choose(titles);
    timeline_.begin = window_.begin;
    timeline_.end = window_.end;
    lanes_.for_each([&](const ExportSlice& slice) { add(slice); });
    for (const InstantMark& mark : step_marks(run_)) timeline_.marks.push_back({mark.at, mark.label});
    return std::move(timeline_);
  }

 private:
  void choose(const std::vector<std::string>& titles) {
    const std::vector<ExportLane>& all = lanes_.lanes();
    place_.assign(all.size(), kNotShown);
    const auto show = [&](std::size_t lane) {
      if (place_[lane] != kNotShown) return;
      place_[lane] = static_cast<std::uint32_t>(timeline_.lanes.size());
      timeline_.lanes.push_back({all[lane].name, all[lane].group == LaneGroup::host});
    };
    for (const std::string& title : titles) {
      bool found = false;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (is_titled(all[i].name, title)) {
          show(i);
          found = true;
        }
      if (!found) refuse(title);
    }
    for (std::size_t i = 0; titles.empty() && i < all.size(); ++i) show(i);
  }

  [[noreturn]] void refuse(const std::string& title) const {
    std::vector<std::string> known;
    for (const ExportLane& lane : lanes_.lanes()) known.push_back(lane.name);
    const std::string near = nearest_name(title, known);
    throw UsageError(fmt::format("the lane \"{}\": the run has no such lane{}; expected some of \"{}\".", title,
                                 near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                                 fmt::join(known, "\", \"")));
  }

  void add(const ExportSlice& slice) {
    const std::uint32_t lane = place_[slice.lane];
    if (lane == kNotShown || !window_.overlaps(slice.begin, slice.end)) return;
    if (slice.op == kNoOp) {
      timeline_.spans.push_back({lane, slice.begin, slice.end, kind("copy"), "move by the pager"});
      return;
    }
    const Op& op = run_.trace->ops[slice.op];
    const SpanCategory category = timeline_.lanes[lane].thin ? SpanCategory::host : work_category(op.kind, op.phase);
    timeline_.spans.push_back({lane, slice.begin, slice.end, kind(to_string(category)), label_of(op, slice)});
  }

  // Nobody sees the name of a span that is narrower than a point can tell; of millions, names are most of the bytes.
  std::string label_of(const Op& op, const ExportSlice& slice) const {
    constexpr double kNarrowest = 2 * plot::kFigureWidth;
    const bool seen = to_seconds(slice.end - slice.begin) * kNarrowest >= to_seconds(window_.length());
    return seen ? display_name(run_.trace, op) : std::string();
  }

  std::uint16_t kind(std::string_view name) {
    const auto found = std::find(timeline_.kinds.begin(), timeline_.kinds.end(), name);
    const auto place = static_cast<std::uint16_t>(found - timeline_.kinds.begin());
    if (found == timeline_.kinds.end()) timeline_.kinds.emplace_back(name);
    return place;
  }

  const Run& run_;
  ExportLanes lanes_;
  TimeRange window_;
  std::vector<std::uint32_t> place_;  // per lane of the run: its lane of the picture, or kNotShown
  Timeline timeline_;
};

}  // namespace

Figure timeline_figure(const Run& run, const std::optional<TimeRange>& range, const std::vector<std::string>& lanes) {
  Timeline timeline = TimelineMaker(run, window_of(run, range)).make(lanes);
  timeline.title = "Timeline" + range_suffix(range);
  timeline.subtitle = headline_of(run);
  return draw_timeline(timeline);
}

}  // namespace memwall::gui
