#include "models/workload/memory/start_block_sizes.h"

#include <algorithm>

#include "sim/memory/pytorch_constants.h"

namespace memwall {
namespace {

constexpr Bytes kLargestRemainder = MiB(1);  // kSmallSize: a free block of the large pool is longer

// A block with more than 1 MiB behind it: how much of that is its own shows in the allocations to come.
struct OpenBlock {
  Address end = 0;  // of the rounded request
  std::uint32_t freed_at = 0;
  SizedBlock* block = nullptr;
  bool found = false;
};

class Sizes {
 public:
  Sizes(const DeviceRecording& device, const AllocatorSettings& settings, const InitialState& earlier,
        Contradictions& wrong)
      : device_(device), settings_(settings), earlier_(earlier), wrong_(wrong) {}

  std::vector<std::vector<SizedBlock>> run(bool look_ahead) {
    place();
    std::size_t number = 0;
    for (const auto& [address, range] : earlier_.ranges)
      size_range(address + static_cast<Address>(range.size), range, number++);
    if (look_ahead) find_remainders();
    return std::move(blocks_);
  }

 private:
  void place();
  void size_range(Address end, const ReservedRange& range, std::size_t number);
  Bytes rounded(const InitialBlock& block) const;
  void find_remainders();

  const DeviceRecording& device_;
  const AllocatorSettings& settings_;
  const InitialState& earlier_;
  Contradictions& wrong_;
  std::vector<std::vector<SizedBlock>> blocks_;               // of each range
  std::vector<std::vector<const InitialBlock*>> where_from_;  // the same, as the walk found them
  std::vector<OpenBlock> open_;                               // by end
};

void Sizes::place() {
  blocks_.resize(earlier_.ranges.size());
  where_from_.resize(earlier_.ranges.size());
  auto range = earlier_.ranges.begin();
  std::size_t number = 0;
  for (const InitialBlock& block : earlier_.blocks) {
    while (range != earlier_.ranges.end() && block.address >= range->first + static_cast<Address>(range->second.size))
      ++range, ++number;
    if (range != earlier_.ranges.end() && block.address >= range->first) {
      blocks_[number].push_back({block.address, block.size, block.requested, block.pending});
      where_from_[number].push_back(&block);
    } else if (!device_.segments.empty()) {
      wrong_.add("{} bytes at {:#x} lived before the recording, in no known segment", block.requested, block.address);
    }
  }
}

Bytes Sizes::rounded(const InitialBlock& block) const {
  return block.size != 0 ? block.size : round_request(settings_, block.requested);
}

void Sizes::size_range(Address end, const ReservedRange& range, std::size_t number) {
  const bool may_be_longer = !range.small_pool && !range.expandable;
  for (std::size_t i = 0; i < blocks_[number].size(); ++i) {
    SizedBlock& block = blocks_[number][i];
    const InitialBlock& from = *where_from_[number][i];
    const Address next = i + 1 < blocks_[number].size() ? blocks_[number][i + 1].address : end;
    const auto room = static_cast<Bytes>(next - block.address);
    block.size = rounded(from);
    if (block.size > room || block.size % kQuantum != 0) {
      wrong_.add("{} bytes at {:#x}, which lived before the recording, do not fit before {:#x}", block.size,
                 block.address, next);
      block.size = room;
      block.requested = std::clamp<Bytes>(block.requested, 0, room);
      continue;
    }
    block.requested = std::clamp<Bytes>(block.requested, 0, block.size);
    if (from.size != 0 || !may_be_longer) continue;
    // Blocks of max_split_size or more are handed out whole.
    if (room - block.size <= kLargestRemainder || block.size >= settings_.max_split_size) {
      block.size = room;
    } else {
      open_.push_back({block.address + static_cast<Address>(block.size), from.freed_at, &block});
    }
  }
}

// The free block behind an open one is used from its low end, so the first allocation within the largest possible
// remainder, while the block lives, says where that end is.
void Sizes::find_remainders() {
  if (open_.empty()) return;
  std::size_t left = open_.size();
  for (std::uint32_t i = 0; i < device_.events.size() && left > 0; ++i) {
    const MemoryEvent& event = device_.events[i];
    if (event.action != MemoryEvent::Action::alloc) continue;
    auto open = std::upper_bound(open_.begin(), open_.end(), event.address,
                                 [](Address address, const OpenBlock& block) { return address < block.end; });
    if (open == open_.begin()) continue;
    --open;
    const Address behind = event.address - open->end;
    if (open->found || i > open->freed_at || behind > static_cast<Address>(kLargestRemainder)) continue;
    if (behind % kQuantum != 0) continue;
    open->block->size += static_cast<Bytes>(behind);
    open->found = true;
    --left;
  }
}

}  // namespace

std::vector<std::vector<SizedBlock>> size_blocks(const DeviceRecording& device, const AllocatorSettings& settings,
                                                 const InitialState& earlier, Contradictions& wrong, bool look_ahead) {
  return Sizes(device, settings, earlier, wrong).run(look_ahead);
}

}  // namespace memwall
