#include "gui/drawing/stall_window.h"

#include <algorithm>

namespace memwall::gui {
namespace {

// Walks over a stream's spans in order of begin and notes where nothing ran.
class GapFinder {
 public:
  GapFinder(TimeRange range, Time reach) : range_(range), reach_(reach) {}

  // Spans [first, last) of a block, what comes before them in the block only as far as it reaches.
  void add(const LoadedBlock& block, const LaneSlice& slice, std::size_t first, std::size_t last) {
    for (std::size_t i = 0; i < first && i < slice.size() && !block_reached(slice, first); ++i)
      reach_ = std::max(reach_, slice.end(i));
    if (first > 0) reach_ = std::max(reach_, slice.end(first - 1));
    for (std::size_t i = first; i < last; ++i) add_span(block, slice, i);
  }

  void add_span(const LoadedBlock& block, const LaneSlice& slice, std::size_t i) {
    const Time begin = slice.begin(i);
    const std::uint16_t offset = slice.offset(i);
    if (begin > reach_ && begin >= range_.begin && reach_ <= range_.end) add_gap(block.spans, offset, begin);
    reach_ = std::max(reach_, slice.end(i));
  }

  // Until the host had called it, work could wait for nothing else: only the rest of the gap is due to what it waited
  // for last. A call that returns only after the work is as good as its begin.
  void add_gap(const SpanBlock& spans, std::uint16_t offset, Time begin) {
    const WaitReason reason = spans.reason[offset];
    const OpId next = spans.first + offset;
    Time called = spans.call_begin[offset];
    if (called == kNever) called = reach_;  // placed, or within a graph
    if (called + spans.call_time[offset] <= begin) called += spans.call_time[offset];
    Time from = reach_;
    if (reason != WaitReason::launch && reason != WaitReason::none && called > from) {
      const Time until = std::min(called, begin);
      gaps_.push_back({from, until, WaitReason::launch, next});
      from = until;
    }
    if (from < begin) gaps_.push_back({from, begin, reason, next});
  }

  Time reach() const { return reach_; }
  std::vector<StallGap> take() { return std::move(gaps_); }

 private:
  // Where ends ascend, the one before the first is the latest.
  static bool block_reached(const LaneSlice& slice, std::size_t first) { return first == 0 || slice.ends_ascend(); }
  TimeRange range_;
  Time reach_;
  std::vector<StallGap> gaps_;
};

}  // namespace

StallWindow find_stalls(const RowPlace& place) {
  StallWindow window;
  window.lane = load_lane_window(place);
  if (!window.lane.exact) return window;
  const std::uint32_t lane = place.row.index;
  const SpanCache& spans = *place.run().spans;
  const LaneBlockSearch& search = spans.blocks_of(lane);
  const RunLaneKind kind = place.run().outline().lanes[lane].kind;
  GapFinder finder(window.lane.range, search.reach_before(window.lane.part.first));
  for (const auto& block : window.lane.blocks) {
    const LaneSlice slice = block->slice(lane, kind);
    const auto [first, last] = slice.within(window.lane.range);
    // One more, whose begin may end a gap that is still visible.
    finder.add(*block, slice, first, std::min(slice.size(), last + 1));
  }
  window.exact = true;
  if (finder.reach() < window.lane.range.end && window.lane.part.last < search.blocks().size()) {
    const std::uint32_t number = spans.number_of(lane, search.blocks()[window.lane.part.last]);
    const auto block = spans.find(number);
    if (block) {
      const LaneSlice slice = block->slice(lane, kind);
      if (slice.size() > 0) finder.add_span(*block, slice, 0);
    } else {
      window.lane.missing.push_back(number);
      window.exact = false;
    }
  }
  if (window.exact) window.gaps = finder.take();
  return window;
}

}  // namespace memwall::gui
