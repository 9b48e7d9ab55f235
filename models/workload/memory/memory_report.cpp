#include "models/workload/memory/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "models/workload/memory/source_lines.h"

namespace memwall {
namespace {

struct Sum {
  Bytes requested = 0;
  std::uint64_t blocks = 0;
  void add(Bytes bytes) {
    requested += bytes;
    ++blocks;
  }
};

bool larger(const LiveGroup& a, const LiveGroup& b) {
  return a.requested != b.requested ? a.requested > b.requested : a.name < b.name;
}

std::vector<LiveGroup> groups_of(const std::map<std::string, Sum>& sums) {
  std::vector<LiveGroup> groups;
  for (const auto& [name, sum] : sums) groups.push_back({name, sum.requested, sum.blocks});
  std::sort(groups.begin(), groups.end(), larger);
  return groups;
}

// The largest `limit` groups, the rest as one more.
std::vector<LiveGroup> shortened(std::vector<LiveGroup> groups, std::size_t limit) {
  if (groups.size() <= limit) return groups;
  LiveGroup rest{fmt::format("{} other lines", groups.size() - limit), 0, 0};
  for (std::size_t i = limit; i < groups.size(); ++i) {
    rest.requested += groups[i].requested;
    rest.blocks += groups[i].blocks;
  }
  groups.resize(limit);
  groups.push_back(std::move(rest));
  return groups;
}

// Pages of an expandable segment that lie wholly in a free block: what unmapping can give back.
Bytes whole_pages(const SegmentState& segment, const BlockState& block, Bytes page) {
  const Bytes from = static_cast<Bytes>(block.address - segment.address), to = from + block.size;
  const Bytes first = (from + page - 1) / page * page, last = to / page * page;
  return std::max<Bytes>(last - first, 0);
}

// A private pool keeps its segments while a graph uses it.
bool wholly_free(const SegmentState& segment) {
  return segment.private_pool == 0 &&
         std::all_of(segment.blocks.begin(), segment.blocks.end(), [](const BlockState& b) {
           return b.use == BlockState::Use::free || b.use == BlockState::Use::unmapped;
         });
}

class FragmentationSum {
 public:
  explicit FragmentationSum(const AllocatorSettings& settings) : settings_(settings) {}

  void add(const SegmentState& segment) {
    const bool whole = wholly_free(segment);
    const Bytes page = segment.small_pool ? MiB(2) : std::max<Bytes>(settings_.large_segment_size, 1);
    for (const BlockState& block : segment.blocks) {
      if (block.use == BlockState::Use::in_use) found_.internal += block.size - block.requested;
      if (block.use != BlockState::Use::free) continue;
      found_.external += block.size;
      if (segment.expandable && segment.private_pool == 0)
        found_.whole_segments += whole_pages(segment, block, page);
      else if (whole)
        found_.whole_segments += block.size;
      found_.largest_holes.push_back({segment.address, block.address, block.size, segment.stream, segment.small_pool});
    }
  }

  Fragmentation result(std::size_t limit) {
    using Hole = Fragmentation::Hole;
    std::vector<Hole>& holes = found_.largest_holes;
    const std::size_t count = std::min(limit, holes.size());
    std::partial_sort(
        holes.begin(), holes.begin() + static_cast<std::ptrdiff_t>(count), holes.end(),
        [](const Hole& a, const Hole& b) { return a.size != b.size ? a.size > b.size : a.address < b.address; });
    holes.resize(count);
    found_.in_split = found_.external - found_.whole_segments;
    return std::move(found_);
  }

 private:
  const AllocatorSettings& settings_;
  Fragmentation found_;
};

std::vector<std::uint32_t> largest_of(const AllocationTable& table, std::vector<std::uint32_t> alive,
                                      std::size_t limit) {
  const std::size_t count = std::min(limit, alive.size());
  std::partial_sort(alive.begin(), alive.begin() + static_cast<std::ptrdiff_t>(count), alive.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      const Bytes x = table.allocations[a].requested, y = table.allocations[b].requested;
                      return x != y ? x > y : a < b;
                    });
  alive.resize(count);
  return alive;
}

}  // namespace

LiveSet live_set_at(const MemoryRecording& recording, const AllocationTable& table, std::uint32_t event,
                    std::size_t limit) {
  LiveSet set;
  set.event = event;
  SourceLines lines(recording);
  std::map<std::string, Sum> by_kind, by_phase, by_line;
  std::map<StackId, Sum> by_stack;
  Sum older;  // without frames
  std::vector<std::uint32_t> alive;
  for (std::uint32_t i = 0; i < table.allocations.size(); ++i) {
    const Allocation& a = table.allocations[i];
    if (!a.lives_at(event)) continue;
    alive.push_back(i);
    set.requested += a.requested;
    by_kind[std::string(to_string(a.kind))].add(a.requested);
    by_phase[a.begin == Allocation::kBefore && a.stack == 0 ? "before the recording" : std::string(to_string(a.phase))]
        .add(a.requested);
    (a.begin == Allocation::kBefore && a.stack == 0 ? older : by_stack[a.stack]).add(a.requested);
  }
  for (const auto& [stack, sum] : by_stack) {
    Sum& line = by_line[lines.of(stack)];
    line.requested += sum.requested;
    line.blocks += sum.blocks;
  }
  if (older.blocks > 0) by_line["before the recording"] = older;
  set.by_kind = groups_of(by_kind);
  set.by_phase = groups_of(by_phase);
  set.by_line = shortened(groups_of(by_line), limit);
  set.largest = largest_of(table, std::move(alive), limit);
  return set;
}

Bytes highest_without(const AllocationTable& table, const std::vector<StorageKind>& kinds) {
  std::vector<Bytes> change(table.phases.size());
  Bytes live = 0;
  for (const Allocation& a : table.allocations) {
    if (std::find(kinds.begin(), kinds.end(), a.kind) != kinds.end()) continue;
    (a.begin == Allocation::kBefore ? live : change[a.begin]) += a.requested;
    if (a.end != Allocation::kAfter) change[a.end] -= a.requested;
  }
  Bytes highest = live;
  for (const Bytes bytes : change) highest = std::max(highest, live += bytes);
  return highest;
}

Fragmentation fragmentation_of(const std::vector<SegmentState>& segments, std::size_t limit,
                               const AllocatorSettings& settings) {
  FragmentationSum sum(settings);
  for (const SegmentState& segment : segments) sum.add(segment);
  return sum.result(limit);
}

}  // namespace memwall
