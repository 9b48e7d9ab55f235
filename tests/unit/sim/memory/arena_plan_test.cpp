// Are planned offsets sound, near the least that is possible, and the same every time?
#include "sim/memory/arena_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

bool share_an_instant(const Lifetime& a, const Lifetime& b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

// The smallest arena of all: place them in every order, each as low as possible. (Take an optimal plan and go by its
// offsets: nothing comes to stand higher than there.)
Bytes smallest(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0u);
  Bytes best = std::numeric_limits<Bytes>::max();
  do {
    std::vector<Bytes> offsets(lifetimes.size(), -1);
    Bytes size = 0;
    for (const std::size_t i : order) {
      Bytes offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t j = 0; j < lifetimes.size(); ++j) {
          if (offsets[j] < 0 || !share_an_instant(lifetimes[i], lifetimes[j])) continue;
          if (offset >= offsets[j] + lifetimes[j].bytes || offsets[j] >= offset + lifetimes[i].bytes) continue;
          offset = offsets[j] + lifetimes[j].bytes;
          moved = true;
        }
      }
      offsets[i] = offset;
      size = std::max(size, offset + lifetimes[i].bytes);
    }
    best = std::min(best, size);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(ArenaPlan, NothingTakesNothing) {
  const ArenaPlan none = plan_arena({});
  EXPECT_EQ(none.size, 0);
  EXPECT_EQ(none.lower_bound, 0);
  const ArenaPlan empty = plan_arena({{3, 3, 100}, {1, 5, 0}});
  EXPECT_EQ(empty.size, 0);
  EXPECT_EQ(empty.offsets, (std::vector<Bytes>{0, 0}));
}

TEST(ArenaPlan, RoundsToTheAlignment) {
  const ArenaPlan plan = plan_arena({{0, 2, 1}, {1, 3, 513}});
  EXPECT_EQ(plan.lower_bound, 512 + 1024);
  EXPECT_EQ(plan.size, 512 + 1024);
  EXPECT_EQ(plan_arena({{0, 2, 1}, {1, 3, 513}}, 1).size, 514);
}

TEST(ArenaPlan, WhatIsGoneMakesRoom) {
  const ArenaPlan plan = plan_arena({{0, 5, 512}, {5, 9, 512}});
  EXPECT_EQ(plan.size, 512);
  EXPECT_EQ(plan.offsets, (std::vector<Bytes>{0, 0}));
}

TEST(ArenaPlan, ThePermanentStandsBelow) {
  const ArenaPlan plan = plan_arena({{1, 2, 512}, {0, 9, 2048}, {3, 4, 512}});
  EXPECT_EQ(plan.offsets, (std::vector<Bytes>{2048, 0, 2048}));
}

// Where an allocator that cannot see ahead leaves a hole: a short life below a long one.
TEST(ArenaPlan, SeesAhead) {
  const std::vector<Lifetime> lifetimes{{0, 2, 512}, {1, 9, 512}, {3, 9, 1024}};
  const ArenaPlan plan = plan_arena(lifetimes);
  EXPECT_EQ(plan.lower_bound, 1536);
  EXPECT_EQ(plan.size, 1536);
}

// Forward and backward: what is made first goes last. The longest below is an optimal plan.
TEST(ArenaPlan, ANestedStepNeedsNoMoreThanItsPeak) {
  std::mt19937_64 random(7);
  std::vector<Lifetime> lifetimes;
  constexpr std::uint64_t kLayers = 300, kEnd = 3 * kLayers;
  for (std::uint64_t i = 0; i < kLayers; ++i) {
    lifetimes.push_back({i, kEnd - i, static_cast<Bytes>(random() % 100'000) + 1});
    lifetimes.push_back({i, i + 1, static_cast<Bytes>(random() % 100'000) + 1});
  }
  const ArenaPlan plan = plan_arena(lifetimes);
  EXPECT_EQ(plan.size, plan.lower_bound);
}

TEST(ArenaPlan, NearTheSmallestOfTinyCases) {
  std::mt19937_64 random(11);
  double worst = 1;
  int optimal = 0;
  constexpr int kCases = 400;
  for (int n = 0; n < kCases; ++n) {
    std::vector<Lifetime> lifetimes;
    for (int i = 0; i < 6; ++i) {
      const std::uint64_t begin = random() % 8;
      lifetimes.push_back({begin, begin + 1 + random() % 5, static_cast<Bytes>(random() % 5 + 1) * 512});
    }
    const Bytes least = smallest(lifetimes);
    const ArenaPlan plan = plan_arena(lifetimes);
    ASSERT_GE(plan.size, least);
    ASSERT_LE(plan.lower_bound, least);
    optimal += plan.size == least;
    worst = std::max(worst, static_cast<double>(plan.size) / static_cast<double>(least));
  }
  RecordProperty("optimal", optimal);
  RecordProperty("worst", std::to_string(worst));
  EXPECT_GE(optimal, kCases * 95 / 100) << "worst " << worst;
  EXPECT_LE(worst, 1.25) << optimal << " of " << kCases << " are optimal";
}

TEST(PlannedAllocator, HandsOutThePlan) {
  const std::vector<Lifetime> lifetimes{{1, 2, 1000}, {3, 6, 500}, {4, 5, 0}};
  const ArenaPlan plan = plan_arena(lifetimes);
  ASSERT_EQ(plan.size, 1024);
  const auto a = make_planned_allocator(lifetimes, plan, 1024);
  EXPECT_EQ(a->usage().reserved, 1024);
  EXPECT_EQ(a->usage().allocated, 0);
  const auto first = a->allocate(1000, 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(a->usage().allocated, 1024);
  EXPECT_EQ(a->usage().requested, 1000);
  a->free(*first);
  const auto second = a->allocate(500, 0), third = a->allocate(0, 0);
  ASSERT_TRUE(second && third);
  EXPECT_EQ(a->usage().allocated, 512);
  EXPECT_EQ(a->usage().reserved, 1024);
}

TEST(PlannedAllocator, AnArenaThatDoesNotFitServesNobody) {
  const std::vector<Lifetime> lifetimes{{1, 2, 1000}};
  const auto a = make_planned_allocator(lifetimes, plan_arena(lifetimes), 1023);
  EXPECT_FALSE(a->allocate(1000, 0));
  a->set_capacity(1024);
  EXPECT_TRUE(a->allocate(1000, 0));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
