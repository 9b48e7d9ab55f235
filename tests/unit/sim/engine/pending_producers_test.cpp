// Each producer once, in the order of the first naming, however many there are?
#include "sim/engine/pending_producers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(PendingProducers, AreAListWithoutRepetitions) {
  std::mt19937 random(1);
  PendingProducers producers;
  for (const std::uint32_t range : {5u, 16u, 17u, 40u, 3000u}) {
    std::vector<OpId> reference;
    for (int i = 0; i < 5000; ++i) {
      const OpId producer = random() % range;
      producers.add(producer);
      if (std::find(reference.begin(), reference.end(), producer) == reference.end()) reference.push_back(producer);
    }
    EXPECT_EQ(producers.list(), reference) << range;
    producers.clear();
    EXPECT_TRUE(producers.list().empty());
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
