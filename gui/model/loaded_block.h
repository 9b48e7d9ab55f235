// A block of ops, or of a pager's moves, in memory: columns, which entries stand in which lane, and
// the names to write into them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gui/model/time_range.h"
#include "traces/run/run_source.h"

namespace memwall::gui {

// The spans of one lane within a block, ascending in begin. A view: the block must outlive it.
class LaneSlice {
 public:
  LaneSlice() = default;
  // `begin` and `time`: columns of the block. `offsets`: into them.
  LaneSlice(const Time* begin, const Duration* time, const std::vector<std::uint16_t>& offsets, bool ends_ascend)
      : begin_(begin), time_(time), offsets_(&offsets), ends_ascend_(ends_ascend) {}

  std::size_t size() const { return offsets_ ? offsets_->size() : 0; }
  std::uint16_t offset(std::size_t i) const { return (*offsets_)[i]; }
  Time begin(std::size_t i) const { return begin_[offset(i)]; }
  Time end(std::size_t i) const { return begin(i) + time_[offset(i)]; }

  // Are ends ascending too, as where spans do not overlap?
  bool ends_ascend() const { return ends_ascend_; }

  // [first, last): all spans that touch the range are in it. Where spans overlap each other it may hold some that do
  // not touch it.
  std::pair<std::size_t, std::size_t> within(TimeRange range) const;
  // The first that begins at or after `time`; size() if none.
  std::size_t at_or_after(Time time) const;

 private:
  const Time* begin_ = nullptr;
  const Duration* time_ = nullptr;
  const std::vector<std::uint16_t>* offsets_ = nullptr;
  bool ends_ascend_ = true;
};

struct LoadedBlock {
  // Of a block of moves: begin and time are those of the moves, the other columns are empty.
  SpanBlock spans;
  std::vector<MoveRecord> moves;  // of a block of moves
  // Per lane of the outline: offsets into `spans`, ascending in begin.
  std::vector<std::vector<std::uint16_t>> of_lane;
  std::vector<bool> ends_ascend;  // per lane: ends are ascending too, as where spans do not overlap
  // By StringId, ascending: the short names (readable_name.h) of what runs here.
  std::vector<std::pair<StringId, std::shared_ptr<const std::string>>> names;

  // REQUIRES: lane < of_lane.size(), `kind` is that lane's.
  LaneSlice slice(std::uint32_t lane, RunLaneKind kind) const;
  // What stands in a span: its short name, else its kind ("copy"). Of a move: "".
  std::string_view name_of(std::uint16_t offset) const;
  std::size_t bytes() const;
};

// Finds the lanes of ops and moves.
class LaneTable {
 public:
  explicit LaneTable(const RunOutline& outline);
  // kNone where the outline has no such lane.
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t of_thread(std::uint16_t thread) const { return thread < threads_.size() ? threads_[thread] : kNone; }
  std::uint32_t of_stream(std::uint16_t stream) const { return stream < streams_.size() ? streams_[stream] : kNone; }
  std::uint32_t of_move(const MoveRecord& move) const;

  // Sorts what a source gives into lanes. Entries of no lane are in none.
  LoadedBlock sorted(SpanBlock spans) const;
  LoadedBlock sorted(std::vector<MoveRecord> moves) const;

 private:
  std::vector<std::uint32_t> threads_, streams_;                 // lane by index
  std::vector<std::pair<std::uint16_t, std::uint32_t>> pagers_;  // from x 256 + to, lane
  std::vector<RunLaneKind> kinds_;
  std::size_t lanes_ = 0;
};

}  // namespace memwall::gui
