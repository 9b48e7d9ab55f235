#include "models/workload/memory/replay_check.h"

#include <algorithm>

namespace memwall {
namespace {

using BlockUse = BlockState::Use;

// As a snapshot has it: of an expandable segment one entry per contiguous mapped range.
std::vector<SegmentState> mapped_ranges(const std::vector<SegmentState>& segments) {
  std::vector<SegmentState> ranges;
  for (const SegmentState& segment : segments) {
    bool goes_on = false;
    for (const BlockState& block : segment.blocks) {
      const bool mapped = block.use != BlockUse::unmapped;
      if (mapped && !goes_on)
        ranges.push_back(
            {block.address, 0, segment.stream, segment.small_pool, segment.expandable, segment.private_pool, {}});
      if (mapped) {
        ranges.back().size += block.size;
        ranges.back().blocks.push_back(block);
      }
      goes_on = mapped;
    }
  }
  return ranges;
}

BlockUse use_of(RecordedBlock::State state) {
  switch (state) {
    case RecordedBlock::State::allocated:
      return BlockUse::in_use;
    case RecordedBlock::State::pending:
      return BlockUse::pending;
    default:
      return BlockUse::free;
  }
}

template <typename Piece>
const Piece* at(const std::vector<Piece>& pieces, Address address) {
  const auto found = std::lower_bound(pieces.begin(), pieces.end(), address,
                                      [](const Piece& piece, Address wanted) { return piece.address < wanted; });
  return found != pieces.end() && found->address == address ? &*found : nullptr;
}

}  // namespace

void check_end(const DeviceRecording& device, const std::vector<SegmentState>& segments, ReplayCheck& check) {
  const std::vector<SegmentState> ranges = mapped_ranges(segments);
  check.final_segments = device.segments.size();
  for (const RecordedSegment& recorded : device.segments) {
    check.final_blocks += recorded.blocks.size();
    const SegmentState* replayed = at(ranges, recorded.address);
    if (replayed == nullptr) continue;
    check.final_segments_equal += replayed->size == recorded.size && replayed->stream == recorded.stream &&
                                  replayed->small_pool == recorded.small_pool &&
                                  replayed->expandable == recorded.expandable;
    for (const RecordedBlock& block : recorded.blocks) {
      const BlockState* same = at(replayed->blocks, block.address);
      check.final_blocks_equal += same != nullptr && same->size == block.size && same->use == use_of(block.state);
    }
  }
}

}  // namespace memwall
