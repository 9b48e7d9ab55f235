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

// A stream that only waits names thousands of producers; those that are past go, the others stay as they were named.
TEST(PendingProducers, ForgetsWhatIsPastOnceThereIsMuchOfIt) {
  PendingProducers pending;
  for (OpId id = 0; id < 20; ++id) pending.add(id);
  pending.forget([](OpId) { return true; });
  EXPECT_EQ(pending.list().size(), 20u) << "few are not looked at";
  std::size_t most = 0;
  for (OpId id = 20; id < 10'000; ++id) {
    pending.add(id);
    pending.forget([&](OpId producer) { return producer + 3 < id; });
    most = std::max(most, pending.list().size());
  }
  EXPECT_LE(most, 33u);
  EXPECT_TRUE(std::is_sorted(pending.list().begin(), pending.list().end()));
  const std::size_t left = pending.list().size();
  pending.add(9999);
  EXPECT_EQ(pending.list().size(), left) << "each once";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
