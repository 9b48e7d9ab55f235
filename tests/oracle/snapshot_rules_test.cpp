// Does each rule of the caching allocator matter to a recording? The slow model replays the snapshots with one rule
// altered at a time; a rule whose alteration nothing notices would not have been checked by them.
#include <gtest/gtest.h>

#include <map>

#include "models/workload/memory/recorded_segments.h"
#include "tests/support/reference_allocator.h"
#include "tests/support/snapshots.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;

// What an altered rule changes: misplaced blocks, and segments obtained where the recording has none.
struct Differences {
  std::uint64_t placements = 0, segments = 0;
};

class RuleReplay {
 public:
  RuleReplay(const MemoryRecording& made, const ReferenceRules& rules)
      : device_(made.devices[0]),
        start_(find_start_state(device_, made.settings)),
        source_(device_),
        allocator_(Bytes{1} << 50, &source_, made.settings, nullptr, rules) {
    allocator_.restore(start_.segments);
    source_.hold(start_.segments);
    for (const SegmentState& segment : start_.segments)
      for (const BlockState& block : segment.blocks)
        if (block.use == BlockState::Use::in_use) at_[block.address] = block.address;
  }

  // Only alloc and free_completed are replayed, and where new segments were is told.
  Differences run() {
    std::size_t first_segment = 0;  // of the present run of segment_alloc
    for (std::size_t i = 0; i < device_.events.size(); ++i) {
      const MemoryEvent& event = device_.events[i];
      if (event.action == Action::segment_alloc) continue;
      if (event.action == Action::alloc) {
        source_.expect(std::span(device_.events).subspan(first_segment, i - first_segment));
        const Address address = allocator_.allocate(event.size, event.stream).value();
        differences_.placements += address != event.address;
        at_[event.address] = address;
      } else if (event.action == Action::free_completed) {
        allocator_.free(at_.at(event.address));
        at_.erase(event.address);
      }
      first_segment = i + 1;
    }
    differences_.segments = source_.invented();
    return differences_;
  }

 private:
  const DeviceRecording& device_;
  StartState start_;
  RecordedSegments source_;
  ReferenceAllocator allocator_;
  std::map<Address, Address> at_;  // recorded -> replayed
  Differences differences_;
};

const MemoryRecording* recording(const char* file) {
  static std::map<std::string, std::optional<MemoryRecording>> read;
  const auto known = read.try_emplace(file);
  if (known.second) known.first->second = shared_snapshot(file);
  return known.first->second ? &*known.first->second : nullptr;
}

TEST(SnapshotRules, UnalteredRulesPlaceEveryBlock) {
  for (const char* file : {kFromEmpty, kMedium128, kMedium256, kExpandable}) {
    if (recording(file) == nullptr) GTEST_SKIP() << "no captures";
    const Differences found = RuleReplay(*recording(file), {}).run();
    EXPECT_EQ(found.placements, 0u) << file;
    EXPECT_EQ(found.segments, 0u) << file;
  }
}

struct Alteration {
  const char* name;
  void (*alter)(ReferenceRules&);
  const char* noticed_by = kFromEmpty;
};

const Alteration kReached[] = {
    {"rounding to 256", [](ReferenceRules& r) { r.rounding_quantum = 256; }},
    {"rounding to 1024", [](ReferenceRules& r) { r.rounding_quantum = 1024; }},
    {"one pool", [](ReferenceRules& r) { r.pools_by_size = false; }},
    {"1 MiB is large", [](ReferenceRules& r) { r.small_limit = MiB(1) - 512; }},
    {"own segments not rounded", [](ReferenceRules& r) { r.segment_rounding = 512; }},
    {"own segments rounded to 1 MiB", [](ReferenceRules& r) { r.segment_rounding = MiB(1); }},
    {"first fit", [](ReferenceRules& r) { r.best_fit = false; }},
    {"ties to the highest address", [](ReferenceRules& r) { r.ties_to_lowest = false; }},
    {"small blocks not split for 512", [](ReferenceRules& r) { r.small_split_from = 1024; }},
    {"large blocks split for 512", [](ReferenceRules& r) { r.large_split_above = 0; }},
    {"large blocks split above 2 MiB only", [](ReferenceRules& r) { r.large_split_above = MiB(2); }},
    {"the high part is handed out", [](ReferenceRules& r) { r.low_part_handed_out = false; }},
    {"no merge with the previous", [](ReferenceRules& r) { r.merges_previous = false; }},
    {"no merge with the next", [](ReferenceRules& r) { r.merges_next = false; }},
    {"the unmapped tail does not count", [](ReferenceRules& r) { r.expandable_counts_tail = false; }, kExpandable},
};

TEST(SnapshotRules, EveryAlteredRuleMisplacesBlocks) {
  if (recording(kFromEmpty) == nullptr || recording(kExpandable) == nullptr) GTEST_SKIP() << "no captures";
  for (const Alteration& alteration : kReached) {
    ReferenceRules rules;
    alteration.alter(rules);
    EXPECT_GT(RuleReplay(*recording(alteration.noticed_by), rules).run().placements, 0u) << alteration.name;
  }
}

// Two placements, as the independent model found.
TEST(SnapshotRules, TheUnmappedTailDecidesTwoPlacements) {
  if (recording(kExpandable) == nullptr) GTEST_SKIP() << "no captures";
  ReferenceRules rules;
  rules.expandable_counts_tail = false;
  EXPECT_EQ(RuleReplay(*recording(kExpandable), rules).run().placements, 2u);
}

// Other recordings reach these rules, the four at hand do not: requests made by hand must.
const Alteration kNotReached[] = {
    {"1,376,256 is small", [](ReferenceRules& r) { r.small_limit = 1'376'256; }},
    {"own segments from 8 MiB on", [](ReferenceRules& r) { r.own_segment_from = MiB(8); }},
    {"10 MiB has no segment of its own", [](ReferenceRules& r) { r.own_segment_from = MiB(10) + 512; }},
    {"small pool released first", [](ReferenceRules& r) { r.release_large_pool_first = false; }},
    {"descending sizes released first", [](ReferenceRules& r) { r.release_ascending = false; }},
    {"released by address", [](ReferenceRules& r) { r.release_by_size = false; }},
};

// What the allocator asked of the device and gave back, in order.
class DeviceCalls final : public AllocatorObserver {
 public:
  void on_segment_alloc(Address address, Bytes bytes, std::uint16_t) override { calls.emplace_back(address, bytes); }
  void on_segment_free(Address address, Bytes bytes, std::uint16_t) override { calls.emplace_back(address, -bytes); }
  std::vector<std::pair<Address, Bytes>> calls;
};

template <typename AnyAllocator>
std::vector<std::pair<Address, Bytes>> calls_by_hand(AnyAllocator&& allocator) {
  DeviceCalls observer;
  allocator.observe(&observer);
  std::vector<Address> blocks;
  for (const Bytes bytes : {MiB(14), Bytes{1'376'256}, MiB(9), MiB(10), MiB(10), MiB(9), MiB(12), Bytes{1}, MiB(9)})
    blocks.push_back(allocator.allocate(bytes, 0).value());
  for (const Address address : blocks) allocator.free(address);
  allocator.release_cached();
  return observer.calls;
}

TEST(SnapshotRules, RulesThatNoSnapshotReachesAreNoticedByHand) {
  const auto expected = calls_by_hand(PytorchAllocator(GiB(1)));
  EXPECT_EQ(calls_by_hand(ReferenceAllocator(GiB(1))), expected);
  for (const Alteration& alteration : kNotReached) {
    ReferenceRules rules;
    alteration.alter(rules);
    EXPECT_NE(calls_by_hand(ReferenceAllocator(GiB(1), nullptr, {}, nullptr, rules)), expected) << alteration.name;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
