#include "sim/engine/waiters.h"

#include <gtest/gtest.h>

#include <vector>

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<std::uint16_t> woken(Waiters& waiters, OpId op) {
  std::vector<std::uint16_t> indices;
  waiters.take(op, [&](const Waiter& waiter) { indices.push_back(waiter.index); });
  return indices;
}

TEST(Waiters, AreWokenInTheOrderInWhichTheyCame) {
  Waiters waiters;
  waiters.add({7, true, 3});
  waiters.add({8, false, 4});
  waiters.add({7, false, 1});
  EXPECT_EQ(woken(waiters, 7), (std::vector<std::uint16_t>{3, 1}));
  EXPECT_TRUE(woken(waiters, 7).empty()) << "each is woken once";
  EXPECT_EQ(woken(waiters, 8), (std::vector<std::uint16_t>{4}));
}

TEST(Waiters, OpsThatShareABucketAreNotMistakenForEachOther) {
  Waiters waiters;
  waiters.add({5, true, 1});
  EXPECT_FALSE(waiters.thread_awaits(1, 5 + 1024));
  EXPECT_TRUE(woken(waiters, 5 + 1024).empty());
  EXPECT_TRUE(waiters.thread_awaits(1, 5));
  EXPECT_EQ(woken(waiters, 5), (std::vector<std::uint16_t>{1}));
}

TEST(Waiters, AThreadThatIsRemovedIsNotWoken) {
  Waiters waiters;
  waiters.add({5, true, 1});
  waiters.add({5, false, 1});  // the stream of that number stays
  waiters.remove_thread(1);
  EXPECT_FALSE(waiters.thread_awaits(1, 5));
  EXPECT_EQ(woken(waiters, 5), (std::vector<std::uint16_t>{1}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
