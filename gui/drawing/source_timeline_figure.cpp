// The timeline of a run that is read block by block; run_timeline_figure.cpp says what it must look like.
//
// Spans of threads and streams go into the drawing as their blocks are read, and are forgotten. Engines and pagers are
// read first and kept: which lanes theirs stand in decides on the lanes' names, and these on the width of the picture.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "gui/drawing/run_figure_parts.h"
#include "gui/drawing/timeline_lanes.h"
#include "traces/run/export/export_lanes.h"

namespace memwall::gui {
namespace {

constexpr StringId kMove = 0xffffffff;

struct ReadSpan {
  Time begin{}, end{};
  StringId name = 0;  // 0: that of its kind; kMove
  OpKind op = OpKind::kernel;
  SpanCategory category = SpanCategory::compute;
};

// The spans of a lane in the order of their begin, out of blocks that may overlap in time: what a later block may
// precede is held back.
class SpansInOrder {
 public:
  // REQUIRES: in the order in which the blocks are read.
  void expect(const LaneBlock& block) { to_come_.push_back({block.block, block.begin}); }
  void all_expected() {
    for (std::size_t i = to_come_.size(); i-- > 1;)
      to_come_[i - 1].earliest = std::min(to_come_[i - 1].earliest, to_come_[i].earliest);
  }
  void add(const ReadSpan& span) { held_.push_back(span); }

  // Hands out what no block after `read` precedes.
  template <class Take>
  void release(std::uint32_t read, Take take) {
    while (next_ < to_come_.size() && to_come_[next_].block <= read) ++next_;
    const auto before = [](const ReadSpan& a, const ReadSpan& b) { return a.begin < b.begin; };
    if (!std::is_sorted(held_.begin(), held_.end(), before)) std::stable_sort(held_.begin(), held_.end(), before);
    auto end = held_.end();
    if (next_ < to_come_.size())
      end = std::upper_bound(held_.begin(), held_.end(), to_come_[next_].earliest,
                             [](Time time, const ReadSpan& span) { return time < span.begin; });
    for (auto span = held_.begin(); span != end; ++span) take(*span);
    held_.erase(held_.begin(), end);
  }

 private:
  struct ToCome {
    std::uint32_t block = 0;
    Time earliest{};  // of this block and all after it
  };
  std::vector<ToCome> to_come_;
  std::size_t next_ = 0;
  std::vector<ReadSpan> held_;
};

// The spans of a copy engine or a pager, which may overlap.
struct PackedSpans {
  std::vector<ReadSpan> spans;      // by begin, then end
  std::vector<std::uint32_t> lane;  // of each, counted from the first of its own

  // Returns how many lanes it takes.
  std::uint32_t pack() {
    std::stable_sort(spans.begin(), spans.end(), [](const ReadSpan& a, const ReadSpan& b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    LanePacker packer;
    for (const ReadSpan& span : spans) lane.push_back(packer.place(span.begin, span.end));
    return packer.lanes();
  }
};

class TimelineReader {
 public:
  TimelineReader(const RunSource& run, const std::optional<TimeRange>& range, const LoadProgress& progress)
      : run_(run), outline_(run.outline()), window_(window_of(outline_.run, range)), progress_(progress) {
    timeline_.begin = window_.begin;
    timeline_.end = window_.end;
    timeline_.title = "Timeline" + range_suffix(range);
    timeline_.subtitle = headline_of(outline_.run);
    for (const InstantMark& mark : step_marks(outline_.run.trace, outline_.steps))
      timeline_.marks.push_back({mark.at, mark.label});
  }

  Figure draw(const std::vector<std::string>& titles) {
    list_lanes(titles);
    place_ = choose_lanes(all_, titles, timeline_.lanes);
    if (std::any_of(timeline_.lanes.begin(), timeline_.lanes.end(), [](const TimelineLane& l) { return l.thin; }))
      number_of(SpanCategory::host);  // the first in the legend
    TimelineDrawing drawing(timeline_);
    add_blocks(drawing);
    for (const auto& [first, packed] : packed_) add_packed(packed, first, drawing);
    return drawing.draw();
  }

 private:
  static bool is_packed(const RunLane& lane) {
    return lane.kind == RunLaneKind::engine || lane.kind == RunLaneKind::pager;
  }

  void list_lanes(const std::vector<std::string>& titles) {
    for (const RunLane& lane : outline_.lanes)
      if (!is_packed(lane)) all_.push_back({lane.name, lane.kind == RunLaneKind::thread});
    own_ = all_.size();
    if (!asks_for_packed(titles)) return;
    std::vector<PackedSpans> packed = read_packed();
    for (std::size_t i = own_; i < outline_.lanes.size(); ++i) {
      const auto first = static_cast<std::uint32_t>(all_.size());
      const std::uint32_t lanes = packed[i].pack();
      for (std::uint32_t n = 0; n < lanes; ++n) all_.push_back({LanePacker::name(outline_.lanes[i].name, n), false});
      packed_.emplace_back(first, std::move(packed[i]));
    }
  }

  // Only where no title asks for an engine or a pager, and all titles are there, is it not worth reading them.
  bool asks_for_packed(const std::vector<std::string>& titles) const {
    const auto asks = [&](const std::string& title) {
      const auto may_be = [&](const RunLane& lane) {
        return is_packed(lane) &&
               (lane.name == title || title.starts_with(lane.name + " (") || lane.name.starts_with(title + " ("));
      };
      const auto is = [&](const TimelineLane& lane) { return is_titled(lane.name, title); };
      return std::any_of(outline_.lanes.begin(), outline_.lanes.end(), may_be) ||
             std::none_of(all_.begin(), all_.end(), is);
    };
    return titles.empty() || std::any_of(titles.begin(), titles.end(), asks);
  }

  std::vector<PackedSpans> read_packed() {
    std::vector<PackedSpans> packed(outline_.lanes.size());
    std::set<std::uint32_t> blocks;
    for (std::size_t i = own_; i < outline_.lanes.size(); ++i)
      for (const LaneBlock& block : outline_.blocks[i])
        if (outline_.lanes[i].kind == RunLaneKind::engine)
          blocks.insert(block.block);
        else
          read_moves(block, outline_.lanes[i], packed[i]);
    for (const std::uint32_t number : blocks) {
      tell_progress();
      const SpanBlock block = run_.spans(number);
      for (std::size_t i = 0; i < block.size(); ++i)
        if (block.engine[i] != kNoLane) packed[block.engine[i]].spans.push_back(work_of(block, i));
    }
    return packed;
  }

  void read_moves(const LaneBlock& block, const RunLane& lane, PackedSpans& packed) {
    for (const MoveRecord& move : run_.moves(std::uint64_t{block.block} * kSpanBlock, kSpanBlock))
      if (move.from == lane.from && move.to == lane.to)
        packed.spans.push_back({move.start, move.end, kMove, OpKind::copy, SpanCategory::copy});
  }

  static ReadSpan call_of(const SpanBlock& block, std::size_t i) {
    return {block.call_begin[i], block.call_begin[i] + block.call_time[i], block.name[i], block.kind[i],
            SpanCategory::host};
  }
  static ReadSpan work_of(const SpanBlock& block, std::size_t i) {
    return {block.begin[i], block.begin[i] + block.time[i], block.name[i], block.kind[i],
            work_category(block.kind[i], block.phase[i])};
  }

  void add_blocks(TimelineDrawing& drawing) {
    std::vector<SpansInOrder> lanes(own_);
    std::set<std::uint32_t> blocks;
    for (std::size_t lane = 0; lane < own_; ++lane) {
      if (place_[lane] == kNotShown) continue;
      for (const LaneBlock& block : outline_.blocks[lane])
        if (window_.overlaps(block.begin, block.end)) {
          lanes[lane].expect(block);
          blocks.insert(block.block);
        }
      lanes[lane].all_expected();
    }
    for (const std::uint32_t number : blocks) {
      tell_progress();
      take(run_.spans(number), lanes);
      for (std::size_t lane = 0; lane < own_; ++lane)
        if (place_[lane] != kNotShown)
          lanes[lane].release(number, [&](const ReadSpan& span) { add(span, place_[lane], drawing); });
    }
  }

  void take(const SpanBlock& block, std::vector<SpansInOrder>& lanes) {
    const std::size_t threads = outline_.run.trace->threads.size();
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (block.call_begin[i] != kNever) take(block.thread[i], call_of(block, i), lanes);
      if (block.begin[i] != kNever) take(threads + block.stream[i], work_of(block, i), lanes);
    }
  }

  void take(std::size_t lane, const ReadSpan& span, std::vector<SpansInOrder>& lanes) {
    if (place_[lane] == kNotShown || !window_.overlaps(span.begin, span.end)) return;
    number_of(span.category);  // the legend has them in the order of the ops
    lanes[lane].add(span);
  }

  std::uint16_t number_of(SpanCategory category) {
    std::optional<std::uint16_t>& number = numbers_[static_cast<std::size_t>(category)];
    if (!number) number = kind_of(timeline_, to_string(category));
    return *number;
  }

  void add_packed(const PackedSpans& packed, std::uint32_t first, TimelineDrawing& drawing) {
    for (std::size_t i = 0; i < packed.spans.size(); ++i) {
      const ReadSpan& span = packed.spans[i];
      const std::uint32_t lane = place_[first + packed.lane[i]];
      if (lane != kNotShown && window_.overlaps(span.begin, span.end)) add(span, lane, drawing);
    }
  }

  void add(const ReadSpan& span, std::uint32_t lane, TimelineDrawing& drawing) {
    const bool is_named = span.name == kMove || has_name(window_, span.begin, span.end);
    drawing.add({lane, span.begin, span.end, number_of(span.category), is_named ? label_of(span) : std::string()});
  }

  std::string label_of(const ReadSpan& span) {
    if (span.name == kMove) return std::string(kMoveLabel);
    if (span.name == 0) return std::string(to_string(span.op));
    const auto [found, is_new] = names_.try_emplace(span.name);
    if (is_new) found->second = run_.text(span.name);
    return found->second;
  }

  // Of as many blocks as may be read: some are read for their engines and again for the rest.
  void tell_progress() {
    const double most = 2.0 * static_cast<double>(outline_.ops / kSpanBlock + 1);
    if (progress_ && !progress_(std::min(1.0, static_cast<double>(++blocks_read_) / most))) throw LoadCancelled{};
  }

  const RunSource& run_;
  const RunOutline& outline_;
  const TimeRange window_;
  const LoadProgress& progress_;
  Timeline timeline_;
  std::size_t own_ = 0;               // lanes of threads and streams, which stand first
  std::vector<TimelineLane> all_;     // these, then the lanes of engines and pagers where they were asked for
  std::vector<std::uint32_t> place_;  // per lane of these: its lane of the picture, or kNotShown
  std::vector<std::pair<std::uint32_t, PackedSpans>> packed_;          // with the first of their lanes
  std::array<std::optional<std::uint16_t>, kSpanCategories> numbers_;  // of the kinds of the picture
  std::unordered_map<StringId, std::string> names_;                    // that were asked for
  std::uint64_t blocks_read_ = 0;
};

// An index numbers engines by a byte; of more lanes than that, some of the engines are not in it.
bool lacks_engines(const RunOutline& outline) {
  const auto numbered = std::count_if(outline.lanes.begin(), outline.lanes.end(),
                                      [](const RunLane& lane) { return lane.kind != RunLaneKind::pager; });
  return numbered >= kNoLane;
}

}  // namespace

Figure timeline_figure(const RunSource& run, const std::optional<TimeRange>& range,
                       const std::vector<std::string>& lanes, const LoadProgress& progress) {
  if (lacks_engines(run.outline())) return timeline_figure(*run.whole(progress), range, lanes);
  return TimelineReader(run, range, progress).draw(lanes);
}

}  // namespace memwall::gui
