// Whatever enters, leaves, is used and is pinned: does an EvictionOrder walk as one list in the order of last uses would?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/engine/eviction_order.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// The same as one list that is searched from end to end.
struct ReferenceOrder {
  std::vector<StorageId> order;
  std::vector<int> pins;

  bool holds(StorageId s) const { return std::find(order.begin(), order.end(), s) != order.end(); }
  void leave(StorageId s) { order.erase(std::find(order.begin(), order.end(), s)); }
  void use(StorageId s) {
    if (!holds(s)) return;
    leave(s);
    order.push_back(s);
  }
  std::vector<StorageId> movable(std::size_t most) const {
    std::vector<StorageId> found;
    for (const StorageId s : order)
      if (pins[s] == 0 && found.size() < most) found.push_back(s);
    return found;
  }
};

std::vector<StorageId> walked(EvictionOrder& order, std::size_t most) {
  std::vector<StorageId> found;
  if (most == 0) return found;
  order.walk([&](StorageId s) {
    found.push_back(s);
    return found.size() < most;
  });
  return found;
}

RC_GTEST_PROP(EvictionOrderProperty, WalksAsAListThatIsSearched, ()) {
  const auto storages = static_cast<StorageId>(*rc::gen::inRange(1, 12));
  EvictionOrder order(storages);
  ReferenceOrder reference{{}, std::vector<int>(storages, 0)};
  const int actions = *rc::gen::inRange(0, 200);
  for (int i = 0; i < actions; ++i) {
    const auto s = static_cast<StorageId>(*rc::gen::inRange<int>(0, static_cast<int>(storages)));
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        if (reference.holds(s)) {
          order.leave(s);
          reference.leave(s);
        } else {
          order.enter(s);
          reference.order.push_back(s);
        }
        break;
      case 1:
        order.use(s);
        reference.use(s);
        break;
      case 2:
        order.pin(s);
        ++reference.pins[s];
        break;
      case 3:
        if (reference.pins[s] == 0) break;
        order.unpin(s);
        --reference.pins[s];
        break;
      default: {
        const auto most = static_cast<std::size_t>(*rc::gen::inRange(0, 6));
        RC_ASSERT(walked(order, most) == reference.movable(most));
      }
    }
    RC_ASSERT(order.pinned(s) == (reference.pins[s] > 0));
  }
  RC_ASSERT(walked(order, storages) == reference.movable(storages));
}

// Nine of ten are pinned throughout: each is met once, not once a walk.
std::uint64_t steps_of_taking_all(StorageId storages) {
  EvictionOrder order(storages);
  for (StorageId s = 0; s < storages; ++s) {
    order.enter(s);
    if (s % 10 != 0) order.pin(s);
  }
  for (StorageId s = 0; s < storages; s += 10) {
    EXPECT_EQ(walked(order, 1), std::vector<StorageId>{s});
    order.leave(s);
  }
  EXPECT_TRUE(walked(order, 1).empty());
  return order.steps();
}

TEST(EvictionOrder, LooksAtEachPinnedStorageOnce) {
  EXPECT_EQ(steps_of_taking_all(1000), 1000u);
  EXPECT_EQ(steps_of_taking_all(8000), 8000u);
}

TEST(EvictionOrder, WhatIsPinnedNoMoreComesBackInItsPlace) {
  EvictionOrder order(4);
  for (const StorageId s : {2u, 0u, 3u, 1u}) order.enter(s);
  order.pin(0);
  order.pin(2);
  EXPECT_EQ(walked(order, 9), (std::vector<StorageId>{3, 1}));
  order.unpin(2);
  EXPECT_EQ(walked(order, 9), (std::vector<StorageId>{2, 3, 1}));
  order.use(3);
  order.unpin(0);
  EXPECT_EQ(walked(order, 9), (std::vector<StorageId>{2, 0, 1, 3}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
