#include "gui/model/navigation.h"

#include <algorithm>

namespace memwall::gui {
namespace {

std::shared_ptr<const LoadedBlock> block_with(const OpenRun& run, OpId op) {
  return op < run.outline().ops ? run.spans->load(SpanCache::block_of(op)) : nullptr;
}

bool has_part(const LoadedBlock& block, OpRef op) {
  const std::size_t i = op.op - block.spans.first;
  return (op.call ? block.spans.call_begin[i] : block.spans.begin[i]) != kNever;
}

OpRef ref_of(const LoadedBlock& block, std::uint16_t offset, std::uint8_t run, RunLaneKind kind) {
  return {run, block.spans.first + offset, kind == RunLaneKind::thread};
}

// Where an op stands in its lane; REQUIRES: it does.
std::size_t position_of(const LaneSlice& slice, std::uint16_t offset, Time begin) {
  for (std::size_t i = slice.at_or_after(begin); i < slice.size(); ++i)
    if (slice.offset(i) == offset) return i;
  return slice.size();
}

// The first or last span of the next block of the lane that has any.
std::optional<OpRef> at_edge(const OpenRun& run, std::uint8_t number, std::uint32_t lane, std::size_t index,
                             Direction direction) {
  const LaneBlockSearch& search = run.spans->blocks_of(lane);
  const RunLaneKind kind = run.outline().lanes[lane].kind;
  while (index < search.blocks().size()) {
    const auto block = run.spans->load(search.blocks()[index].block);
    const LaneSlice slice = block->slice(lane, kind);
    if (slice.size() > 0)
      return ref_of(*block, slice.offset(direction == Direction::forward ? 0 : slice.size() - 1), number, kind);
    index = direction == Direction::forward ? index + 1 : index - 1;  // below 0 it is beyond the end
  }
  return std::nullopt;
}

// Of those that an op's part let begin, the first in time.
std::optional<OpRef> first_follower(const OpenRun& run, OpRef op) {
  std::optional<OpRef> first;
  Time earliest = kNever;
  for (const OpId id : run.source->followers(op.op, SpanCache::kMostFollowers)) {
    const OpDetail detail = run.source->op(id);
    for (const bool call : {false, true}) {
      const OpRef part{op.run, id, call};
      if (cause_of(detail, part) != op) continue;
      const Time begin = call ? detail.record.host_start : detail.record.start;
      if (begin == kNever || begin >= earliest) continue;
      earliest = begin;
      first = part;
    }
  }
  return first;
}

}  // namespace

std::optional<std::uint32_t> lane_of(const OpenRun& run, OpRef op) {
  const auto block = block_with(run, op.op);
  if (!block || !has_part(*block, op)) return std::nullopt;
  const std::size_t i = op.op - block->spans.first;
  const LaneTable& lanes = run.spans->lanes();
  const std::uint32_t lane =
      op.call ? lanes.of_thread(block->spans.thread[i]) : lanes.of_stream(block->spans.stream[i]);
  if (lane == LaneTable::kNone) return std::nullopt;
  return lane;
}

std::optional<OpRef> next_in_lane(const OpenRun& run, OpRef op, Direction direction) {
  const auto lane = lane_of(run, op);
  if (!lane) return std::nullopt;
  const auto block = block_with(run, op.op);
  const RunLaneKind kind = run.outline().lanes[*lane].kind;
  const LaneSlice slice = block->slice(*lane, kind);
  const auto offset = static_cast<std::uint16_t>(op.op - block->spans.first);
  const std::size_t at = position_of(slice, offset, time_of(run, op).begin);
  if (direction == Direction::forward && at + 1 < slice.size())
    return ref_of(*block, slice.offset(at + 1), op.run, kind);
  if (direction == Direction::back && at > 0 && at < slice.size())
    return ref_of(*block, slice.offset(at - 1), op.run, kind);
  const std::size_t index = run.spans->blocks_of(*lane).index_of(SpanCache::block_of(op.op));
  return at_edge(run, op.run, *lane, direction == Direction::forward ? index + 1 : index - 1, direction);
}

std::optional<OpRef> cause_of(const OpDetail& detail, OpRef part) {
  const OpRecord& record = detail.record;
  const auto named = [&](OpId id, bool call) {
    return id == kNoOp ? std::nullopt : std::optional<OpRef>(OpRef{part.run, id, call});
  };
  if (part.call) {
    if (record.host_end_waited && record.host_end_cause != kNoOp) return named(record.host_end_cause, false);
    return named(record.host_cause, true);
  }
  if (record.device_reason == WaitReason::launch) {
    const bool called = !detail.op.placed && !detail.op.graph_member;
    if (called) return named(detail.id, true);
    return named(record.device_cause == detail.id ? kNoOp : record.device_cause, true);
  }
  return named(record.device_cause, false);
}

std::optional<OpRef> along_dependency(const OpenRun& run, OpRef op, Direction direction) {
  if (op.op >= run.outline().ops) return std::nullopt;
  if (direction == Direction::back) {
    const auto cause = cause_of(run.source->op(op.op), op);
    if (!cause || !lane_of(run, *cause)) return std::nullopt;
    return cause;
  }
  // What a call launches waited for it, if for nothing later.
  const OpRef work{op.run, op.op, false};
  if (op.call && lane_of(run, work)) return work;
  return first_follower(run, op);
}

TimeRange time_of(const OpenRun& run, OpRef op) {
  const auto block = block_with(run, op.op);
  if (!block || !has_part(*block, op)) return {};
  const std::size_t i = op.op - block->spans.first;
  const Time begin = op.call ? block->spans.call_begin[i] : block->spans.begin[i];
  return {begin, begin + (op.call ? block->spans.call_time[i] : block->spans.time[i])};
}

}  // namespace memwall::gui
