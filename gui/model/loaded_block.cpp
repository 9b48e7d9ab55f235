#include "gui/model/loaded_block.h"

#include <algorithm>

namespace memwall::gui {
namespace {

// Puts the offsets of each lane in order of begin, and notes whether their ends are too.
void order_lanes(LoadedBlock& block, const std::vector<RunLaneKind>& kinds) {
  block.ends_ascend.assign(block.of_lane.size(), true);
  for (std::uint32_t lane = 0; lane < block.of_lane.size(); ++lane) {
    std::vector<std::uint16_t>& offsets = block.of_lane[lane];
    const std::vector<Time>& begin = kinds[lane] == RunLaneKind::thread ? block.spans.call_begin : block.spans.begin;
    const auto earlier = [&](std::uint16_t a, std::uint16_t b) { return begin[a] < begin[b]; };
    if (!std::is_sorted(offsets.begin(), offsets.end(), earlier))
      std::stable_sort(offsets.begin(), offsets.end(), earlier);
    offsets.shrink_to_fit();
    const LaneSlice slice = block.slice(lane, kinds[lane]);
    for (std::size_t i = 1; i < slice.size() && block.ends_ascend[lane]; ++i)
      block.ends_ascend[lane] = slice.end(i - 1) <= slice.end(i);
  }
}

template <class T>
std::size_t bytes_of_vector(const std::vector<T>& vector) {
  return vector.capacity() * sizeof(T);
}

}  // namespace

std::pair<std::size_t, std::size_t> LaneSlice::within(TimeRange range) const {
  if (size() == 0) return {0, 0};
  const auto last = std::partition_point(offsets_->begin(), offsets_->end(),
                                         [&](std::uint16_t offset) { return begin_[offset] <= range.end; });
  auto first = offsets_->begin();
  if (ends_ascend_)
    first = std::partition_point(first, last, [&](std::uint16_t o) { return begin_[o] + time_[o] < range.begin; });
  return {static_cast<std::size_t>(first - offsets_->begin()), static_cast<std::size_t>(last - offsets_->begin())};
}

std::size_t LaneSlice::at_or_after(Time time) const {
  if (size() == 0) return 0;
  const auto at = std::partition_point(offsets_->begin(), offsets_->end(),
                                       [&](std::uint16_t offset) { return begin_[offset] < time; });
  return static_cast<std::size_t>(at - offsets_->begin());
}

LaneSlice LoadedBlock::slice(std::uint32_t lane, RunLaneKind kind) const {
  const bool calls = kind == RunLaneKind::thread;
  return {(calls ? spans.call_begin : spans.begin).data(), (calls ? spans.call_time : spans.time).data(), of_lane[lane],
          ends_ascend[lane]};
}

std::string_view LoadedBlock::name_of(std::uint16_t offset) const {
  if (!moves.empty()) return "";
  const StringId id = spans.name[offset];
  const auto at = std::lower_bound(names.begin(), names.end(), id,
                                   [](const auto& entry, StringId wanted) { return entry.first < wanted; });
  if (at != names.end() && at->first == id && !at->second->empty()) return *at->second;
  return to_string(spans.kind[offset]);
}

std::size_t LoadedBlock::bytes() const {
  std::size_t sum = sizeof *this + spans.bytes() + bytes_of_vector(moves) + bytes_of_vector(names);
  for (const auto& lane : of_lane) sum += sizeof lane + bytes_of_vector(lane);
  // Names are shared among blocks; counted in each, because any of them may be the last to hold them.
  for (const auto& [id, name] : names) sum += sizeof *name + name->capacity();
  return sum;
}

LaneTable::LaneTable(const RunOutline& outline) : lanes_(outline.lanes.size()) {
  const auto note = [](std::vector<std::uint32_t>& table, std::uint16_t index, std::uint32_t lane) {
    if (table.size() <= index) table.resize(index + std::size_t{1}, kNone);
    table[index] = lane;
  };
  kinds_.reserve(lanes_);
  for (std::uint32_t i = 0; i < lanes_; ++i) {
    const RunLane& lane = outline.lanes[i];
    kinds_.push_back(lane.kind);
    if (lane.kind == RunLaneKind::thread) note(threads_, lane.index, i);
    if (lane.kind == RunLaneKind::stream) note(streams_, lane.index, i);
    if (lane.kind == RunLaneKind::pager) pagers_.emplace_back(static_cast<std::uint16_t>(lane.from * 256 + lane.to), i);
  }
}

std::uint32_t LaneTable::of_move(const MoveRecord& move) const {
  for (const auto& [route, lane] : pagers_)
    if (route == move.from * 256 + move.to) return lane;
  return kNone;
}

LoadedBlock LaneTable::sorted(SpanBlock spans) const {
  LoadedBlock block;
  block.of_lane.resize(lanes_);
  const auto put = [&](std::uint32_t lane, std::size_t offset) {
    if (lane < lanes_) block.of_lane[lane].push_back(static_cast<std::uint16_t>(offset));
  };
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans.call_begin[i] != kNever) put(of_thread(spans.thread[i]), i);
    if (spans.begin[i] == kNever) continue;
    put(of_stream(spans.stream[i]), i);
    if (spans.engine[i] != kNoLane) put(spans.engine[i], i);
  }
  block.spans = std::move(spans);
  order_lanes(block, kinds_);
  return block;
}

LoadedBlock LaneTable::sorted(std::vector<MoveRecord> moves) const {
  LoadedBlock block;
  block.of_lane.resize(lanes_);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    block.spans.begin.push_back(moves[i].start);
    block.spans.time.push_back(moves[i].end - moves[i].start);
    const std::uint32_t lane = of_move(moves[i]);
    if (lane != kNone) block.of_lane[lane].push_back(static_cast<std::uint16_t>(i));
  }
  block.moves = std::move(moves);
  order_lanes(block, kinds_);
  return block;
}

}  // namespace memwall::gui
