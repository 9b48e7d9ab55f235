// Are the statistics PyTorch's, by name, order and value?
#include <gtest/gtest.h>

#include <map>

#include "tests/support/allocator_view.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::map<std::string, std::int64_t> named(const PytorchAllocator& a) {
  const auto list = named_statistics(a.statistics());
  return {list.begin(), list.end()};
}

void expect(const std::map<std::string, std::int64_t>& statistics, const std::string& name, std::int64_t current,
            std::int64_t peak, std::int64_t allocated, std::int64_t freed) {
  EXPECT_EQ(statistics.at(name + ".current"), current) << name;
  EXPECT_EQ(statistics.at(name + ".peak"), peak) << name;
  EXPECT_EQ(statistics.at(name + ".allocated"), allocated) << name;
  EXPECT_EQ(statistics.at(name + ".freed"), freed) << name;
}

TEST(PytorchStatistics, NamesInPytorchsOrder) {
  const auto list = named_statistics(PytorchAllocator(kUnlimited).statistics());
  EXPECT_EQ(list.size(), 122u);
  EXPECT_EQ(list.front().first, "active.all.allocated");
  EXPECT_EQ(list[12].first, "active_bytes.all.allocated");
  EXPECT_EQ(list.back().first, "segment.small_pool.peak");
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
  EXPECT_EQ(named(PytorchAllocator(kUnlimited)).at("max_split_size"), -1);
}

TEST(PytorchStatistics, OfSmallAndLargePools) {
  PytorchAllocator a(kUnlimited);
  const Address small = get(a, 100), large = get(a, 16 * M - 1);
  a.free(small);
  get(a, 700);
  a.free(large);
  get(a, 3 * M);
  const auto s = named(a);
  expect(s, "allocation.all", 2, 2, 4, 2);
  expect(s, "allocation.small_pool", 1, 1, 2, 1);
  expect(s, "allocated_bytes.all", 3 * M + 1024, 16 * M + 1024, 19 * M + 1536, 16 * M + 512);
  expect(s, "allocated_bytes.large_pool", 3 * M, 16 * M, 19 * M, 16 * M);
  expect(s, "requested_bytes.small_pool", 700, 700, 800, 100);
  expect(s, "requested_bytes.all", 3 * M + 700, 16 * M + 699, 19 * M + 799, 16 * M + 99);
  expect(s, "segment.all", 2, 2, 2, 0);
  expect(s, "reserved_bytes.all", 18 * M, 18 * M, 18 * M, 0);
  EXPECT_EQ(s.at("num_device_alloc"), 2);
}

// Free blocks beside others in their segment; joined ones count once, whole segments not at all.
TEST(PytorchStatistics, InactiveSplit) {
  PytorchAllocator a(kUnlimited);
  const Address low = get(a, 512), middle = get(a, 512), high = get(a, 512);
  const Bytes rest = 2 * M - 3 * 512;
  // At the first split the rest of 2 MiB - 512 came up; it shrank twice.
  expect(named(a), "inactive_split.small_pool", 1, 1, 1, 0);
  expect(named(a), "inactive_split_bytes.all", rest, 2 * M - 512, 2 * M - 512, 1024);
  a.free(low);
  expect(named(a), "inactive_split.all", 2, 2, 2, 0);
  a.free(high);  // joins the rest: no more blocks, 512 bytes more
  expect(named(a), "inactive_split.all", 2, 2, 2, 0);
  expect(named(a), "inactive_split_bytes.all", rest + 1024, 2 * M - 512, 2 * M + 512, 1024);
  a.free(middle);  // joins both: the segment is whole
  expect(named(a), "inactive_split.all", 0, 2, 2, 2);
  expect(named(a), "inactive_split_bytes.all", 0, 2 * M - 512, 2 * M + 512, 2 * M + 512);
  get(a, 2 * M);
  expect(named(a), "inactive_split_bytes.large_pool", 18 * M, 18 * M, 18 * M, 0);
  get(a, 17 * M + 512);  // less than 1 MiB would be left: nothing is split off
  expect(named(a), "inactive_split_bytes.large_pool", 0, 18 * M, 18 * M, 18 * M);
  expect(named(a), "inactive_split.large_pool", 0, 1, 1, 1);
}

// A split block handed out whole is no longer inactive.
TEST(PytorchStatistics, InactiveSplitTakenWhole) {
  PytorchAllocator a(kUnlimited);
  const Address low = get(a, 512);
  get(a, 512);
  a.free(low);
  get(a, 512);
  expect(named(a), "inactive_split.all", 1, 2, 2, 1);
}

TEST(PytorchStatistics, PendingBlocksStayActive) {
  PytorchAllocator a(kUnlimited);
  const Address block = get(a, 12 * M);
  a.request_free(block);
  get(a, 14 * M);
  auto s = named(a);
  expect(s, "active.all", 2, 2, 2, 0);
  expect(s, "active_bytes.large_pool", 26 * M, 26 * M, 26 * M, 0);
  expect(s, "allocation.all", 1, 1, 2, 1);
  expect(s, "requested_bytes.all", 26 * M, 26 * M, 26 * M, 0);
  a.complete_free(block);
  s = named(a);
  expect(s, "active.all", 1, 2, 2, 1);
  expect(s, "active_bytes.all", 14 * M, 26 * M, 26 * M, 12 * M);
  expect(s, "requested_bytes.all", 14 * M, 26 * M, 26 * M, 12 * M);
}

// Pages are reserved, but are no segments, and their holes are no inactive splits.
TEST(PytorchStatistics, ExpandableSegments) {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  PytorchAllocator a(kUnlimited, nullptr, settings);
  const Address first = get(a, 30 * M);
  get(a, 30 * M);
  a.free(first);
  a.release_cached();
  const auto s = named(a);
  expect(s, "segment.all", 0, 0, 0, 0);
  expect(s, "reserved_bytes.large_pool", 40 * M, 60 * M, 60 * M, 20 * M);
  expect(s, "inactive_split.all", 0, 0, 0, 0);
  EXPECT_EQ(s.at("num_device_alloc"), 2);
  EXPECT_EQ(s.at("num_device_free"), 1);
  EXPECT_EQ(s.at("num_sync_all_streams"), 1);
}

TEST(PytorchStatistics, Oversize) {
  AllocatorSettings settings;
  settings.max_split_size = 100 * M;
  PytorchAllocator a(kUnlimited, nullptr, settings);
  a.free(get(a, 100 * M));
  get(a, 98 * M + 1);
  a.release_cached();
  const auto s = named(a);
  expect(s, "oversize_allocations", 0, 1, 1, 1);
  expect(s, "oversize_segments", 1, 2, 2, 1);  // a segment of 100 MiB, of which 2 are split off
  EXPECT_EQ(s.at("max_split_size"), 100 * M);
}

TEST(PytorchStatistics, ARestoredStateCounts) {
  PytorchAllocator a(kUnlimited);
  const Address low = get(a, 512);
  get(a, 512);
  get(a, 3 * M);
  a.free(low);
  PytorchAllocator b(kUnlimited);
  b.restore(a.segments());
  const auto before = named(a), after = named(b);
  for (const auto& [name, value] : before) {
    if (name.ends_with(".current")) {
      EXPECT_EQ(after.at(name), value) << name;
    }
  }
  EXPECT_EQ(after.at("num_device_alloc"), 0);
  EXPECT_EQ(b.segments(), a.segments());
  get(b, 15 * M, 1);
  ASSERT_EQ(b.segments().size(), 3u);  // behind what was restored
  EXPECT_EQ(b.segments()[1], a.segments()[1]);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
