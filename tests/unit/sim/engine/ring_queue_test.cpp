#include "sim/engine/ring_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(RingQueue, HoldsWhatADequeHolds) {
  std::mt19937_64 random(3);
  RingQueue<std::uint64_t> ring;
  std::deque<std::uint64_t> reference;
  for (int round = 0; round < 20'000; ++round) {
    if (reference.empty() || (reference.size() < 200 && random() % 100 < (round % 2000 < 1000 ? 70u : 30u))) {
      reference.push_back(random());
      ring.push_back(reference.back());
    } else {
      ring.pop_front();
      reference.pop_front();
    }
    ASSERT_EQ(ring.size(), reference.size());
    ASSERT_EQ(ring.empty(), reference.empty());
    for (std::size_t i = 0; i < reference.size(); i += 1 + reference.size() / 8) ASSERT_EQ(ring[i], reference[i]);
    if (!reference.empty()) {
      ASSERT_EQ(ring.front(), reference.front());
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
