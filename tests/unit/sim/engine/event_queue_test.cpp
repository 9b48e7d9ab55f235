#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(EventQueue, PopsByTimeThenLateThenSequenceAsASortedSetDoes) {
  std::mt19937_64 random(2);
  EventQueue queue;
  std::set<std::tuple<Time, bool, std::uint32_t>> reference;  // subject = sequence number
  std::uint32_t pushed = 0;
  Time now{};
  for (int round = 0; round < 20'000; ++round) {
    const bool grows = reference.size() < 300 && random() % 100 < (round % 2000 < 1000 ? 60u : 40u);
    if (grows || reference.empty()) {
      const Time time = now + picoseconds(static_cast<std::int64_t>(random() % 20));
      const bool late = random() % 5 == 0;
      queue.push(time, late, pushed, late);
      reference.emplace(time, late, pushed++);
    } else {
      const auto [time, late, subject] = *reference.begin();
      ASSERT_EQ(queue.next_time(), time);
      const Event event = queue.pop();
      ASSERT_EQ(std::tuple(event.time, event.kind == 1, event.subject), std::tuple(time, late, subject));
      reference.erase(reference.begin());
      now = time;
    }
    ASSERT_EQ(queue.empty(), reference.empty());
  }
  EXPECT_EQ(queue.popped(), pushed - reference.size());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
