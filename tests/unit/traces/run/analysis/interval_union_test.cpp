// Is the union of intervals what an instant-by-instant count says, in whatever order and lanes they come?
#include "traces/run/analysis/interval_union.h"

#include <gtest/gtest.h>

#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr int kInstants = 60;

// The reference: is any interval there between instant i and i + 1? Intervals that touch are one, those without
// length join what they touch.
std::vector<Interval> counted(const std::vector<Interval>& given) {
  std::vector<bool> there(2 * kInstants + 1, false);  // instants at even places, what lies between at odd ones
  for (const Interval& interval : given)
    for (std::int64_t at = 2 * interval.begin.count(); at <= 2 * interval.end.count(); ++at)
      there[static_cast<std::size_t>(at)] = true;
  std::vector<Interval> all;
  for (std::size_t at = 0; at < there.size(); ++at) {
    if (!there[at]) continue;
    const std::size_t begin = at;
    while (at + 1 < there.size() && there[at + 1]) ++at;
    all.push_back({Time(static_cast<std::int64_t>(begin / 2)), Time(static_cast<std::int64_t>(at / 2))});
  }
  return all;
}

TEST(IntervalUnion, IsWhatCountingSays) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2'000; ++round) {
    IntervalUnion intervals;
    std::vector<Interval> given;
    const bool ordered = round % 2 == 0;  // as a stream has them
    std::int64_t from = 0;
    for (std::size_t i = 0; i < 1 + random() % 12; ++i) {
      const std::int64_t begin = ordered ? std::min<std::int64_t>(from + static_cast<std::int64_t>(random() % 4), 50)
                                         : static_cast<std::int64_t>(random() % 50);
      const std::int64_t end = begin + static_cast<std::int64_t>(random() % 10);
      from = begin;
      given.push_back({Time(begin), Time(end)});
      intervals.add(random() % 3, Time(begin), Time(end));
    }
    const std::vector<Interval> found = intervals.take(), expected = counted(given);
    ASSERT_EQ(found.size(), expected.size()) << round;
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].begin, expected[i].begin) << round;
      ASSERT_EQ(found[i].end, expected[i].end) << round;
    }
    EXPECT_TRUE(intervals.take().empty());
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
