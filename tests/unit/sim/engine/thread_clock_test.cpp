#include "sim/engine/thread_clock.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace memwall {
namespace MEMWALL_TEST_FILE {

// The reference: a look at every thread.
std::size_t first_of(const std::vector<Time>& times) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] < times[best]) best = i;
  return best;
}

TEST(ThreadClock, NamesTheFirstThreadAsALookAtAllOfThemDoes) {
  std::mt19937_64 random(1);
  for (const std::size_t threads : {1u, 2u, 3u, 7u, 8u, 9u, 1000u}) {
    ThreadClock clock(threads);
    std::vector<Time> times(threads, kNever);
    for (int round = 0; round < 2000; ++round) {
      const std::size_t thread = random() % threads;
      // Few different times, so that threads tie; sometimes blocked.
      const Time time = random() % 4 == 0 ? kNever : picoseconds(static_cast<std::int64_t>(random() % 16));
      clock.set(thread, time);
      times[thread] = time;
      const std::size_t first = first_of(times);
      ASSERT_EQ(clock.next_time(), times[first]) << threads << " threads, round " << round;
      if (times[first] != kNever) {
        ASSERT_EQ(clock.next(), first) << threads << " threads, round " << round;
      }
      ASSERT_EQ(clock.time(thread), time);
    }
  }
}

TEST(ThreadClock, WithoutThreadsNothingComesNext) { EXPECT_EQ(ThreadClock(0).next_time(), kNever); }

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
