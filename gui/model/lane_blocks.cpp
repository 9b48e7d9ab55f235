#include "gui/model/lane_blocks.h"

#include <algorithm>

namespace memwall::gui {

LaneBlockSearch::LaneBlockSearch(const std::vector<LaneBlock>& blocks)
    : blocks_(&blocks), reach_(blocks.size()), start_(blocks.size()) {
  Time reach{}, start = kNever;
  for (std::size_t i = 0; i < blocks.size(); ++i) reach_[i] = reach = std::max(reach, blocks[i].end);
  for (std::size_t i = blocks.size(); i-- > 0;) start_[i] = start = std::min(start, blocks[i].begin);
}

LaneBlockSearch::Part LaneBlockSearch::within(TimeRange range) const {
  const auto reached = std::partition_point(reach_.begin(), reach_.end(), [&](Time end) { return end < range.begin; });
  const auto first = static_cast<std::size_t>(reached - reach_.begin());
  const auto last = std::partition_point(start_.begin(), start_.end(), [&](Time begin) { return begin <= range.end; });
  return {first, std::max(first, static_cast<std::size_t>(last - start_.begin()))};
}

double LaneBlockSearch::spans_within(Part part, TimeRange range) const {
  double sum = 0;
  for (std::size_t i = part.first; i < part.last; ++i) {
    const LaneBlock& block = (*blocks_)[i];
    const Time from = std::max(block.begin, range.begin), to = std::min(block.end, range.end);
    if (from > to) continue;
    const double length = std::max(1.0, static_cast<double>((block.end - block.begin).count()));
    const double share = std::min(1.0, std::max(1.0, static_cast<double>((to - from).count())) / length);
    sum += share * block.spans;
  }
  return sum;
}

std::size_t LaneBlockSearch::index_of(std::uint32_t block) const {
  const auto at = std::partition_point(blocks_->begin(), blocks_->end(),
                                       [&](const LaneBlock& other) { return other.block < block; });
  if (at == blocks_->end() || at->block != block) return blocks_->size();
  return static_cast<std::size_t>(at - blocks_->begin());
}

}  // namespace memwall::gui
