// The timeline of a run in memory: a list of all spans, drawn. The reference of source_timeline_figure.cpp.
#include <utility>

#include "gui/drawing/run_figure_parts.h"
#include "gui/drawing/timeline_lanes.h"
#include "traces/run/export/export_lanes.h"
#include "traces/run/run_index.h"

namespace memwall::gui {
namespace {

class TimelineMaker {
 public:
  TimelineMaker(const Run& run, TimeRange window) : run_(run), lanes_(run), window_(window) {}

  Timeline make(const std::vector<std::string>& titles) {
    std::vector<TimelineLane> all;
    for (const ExportLane& lane : lanes_.lanes()) all.push_back({lane.name, lane.group == LaneGroup::host});
    place_ = choose_lanes(all, titles, timeline_.lanes);
    timeline_.begin = window_.begin;
    timeline_.end = window_.end;
    lanes_.for_each([&](const ExportSlice& slice) { add(slice); });
    return std::move(timeline_);
  }

 private:
  void add(const ExportSlice& slice) {
    const std::uint32_t lane = place_[slice.lane];
    if (lane == kNotShown || !window_.overlaps(slice.begin, slice.end)) return;
    if (slice.op == kNoOp) {
      timeline_.spans.push_back({lane, slice.begin, slice.end, kind_of(timeline_, "copy"), std::string(kMoveLabel)});
      return;
    }
    const Op& op = run_.trace->ops[slice.op];
    const SpanCategory category = timeline_.lanes[lane].thin ? SpanCategory::host : work_category(op.kind, op.phase);
    timeline_.spans.push_back({lane, slice.begin, slice.end, kind_of(timeline_, to_string(category)),
                               has_name(window_, slice.begin, slice.end) ? display_name(run_.trace, op) : ""});
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
  for (const InstantMark& mark : step_marks(run)) timeline.marks.push_back({mark.at, mark.label});
  return draw_timeline(timeline);
}

}  // namespace memwall::gui
