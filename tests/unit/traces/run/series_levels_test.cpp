// Do selected rows of a series say what a loop over all its points says?
#include "traces/run/series_levels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <class Point>
using HighOf = decltype(high_of(Point{}));

// Level 0 and those above it, all in memory.
template <class Point>
SeriesRows<HighOf<Point>> rows_of(const std::vector<Point>& points, Time end) {
  std::vector<std::vector<HighOf<Point>>> levels(1);
  for (const Point& point : points) levels[0].push_back(high_of(point));
  for (auto& level : series_levels(points, end)) levels.push_back(std::move(level));
  return {points.size(), end, [levels](std::size_t level, std::uint64_t first, std::uint64_t count) {
            const auto& rows = levels.at(level);
            EXPECT_LE(first + count, rows.size());
            const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
            return std::vector<HighOf<Point>>(begin, begin + static_cast<std::ptrdiff_t>(count));
          }};
}

// The points that cover [begin, end], by looking at each: from the last one before `begin`, which an instant that
// begins right there replaces, to the last one of `end`.
template <class Point>
std::pair<std::size_t, std::size_t> covering(const std::vector<Point>& points, Time begin, Time end) {
  std::size_t first = 0, last = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].time < begin) first = i;
    if (points[i].time <= end) last = i;
  }
  if (first + 1 < points.size() && points[first + 1].time == begin) ++first;
  return {first, std::max(first, last)};
}

class SeriesLevels : public testing::TestWithParam<std::size_t> {
 protected:
  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  std::vector<MemoryPoint> memory(std::size_t count, std::size_t longest_wait) {
    std::vector<MemoryPoint> points;
    Time time{};
    for (std::size_t i = 0; i < count; ++i) {
      MemoryPoint point;
      point.time = time += Duration(static_cast<std::int64_t>(below(longest_wait)));
      point.allocated = static_cast<Bytes>(below(1000));
      point.requested = static_cast<Bytes>(below(1000));
      point.reserved = static_cast<Bytes>(below(1000));
      points.push_back(point);
    }
    return points;
  }
  std::mt19937 random_{5};
};

TEST_P(SeriesLevels, FewPointsAreThePointsThemselves) {
  const std::vector<MemoryPoint> points = memory(GetParam(), 3);  // several in an instant
  const Time end = points.back().time + Duration(5);
  const auto rows = rows_of(points, end);
  for (int i = 0; i < 500; ++i) {
    const Time from(static_cast<std::int64_t>(below(static_cast<std::size_t>(end.count()))));
    const Time to = std::min(end, from + Duration(static_cast<std::int64_t>(below(40))));
    const auto [first, last] = covering(points, from, to);
    if (last - first >= 50) continue;
    const auto found = selected(rows, from, to, 25);
    ASSERT_EQ(found.size(), last - first + 1) << from.count() << " to " << to.count();
    for (std::size_t k = 0; k < found.size(); ++k) {
      EXPECT_EQ(found[k].time, points[first + k].time);
      EXPECT_EQ(found[k].allocated, points[first + k].allocated);
      EXPECT_EQ(found[k].reserved, points[first + k].reserved);
    }
  }
}

// Every row but the last reaches to the next; each holds the highest of the points that it stands for.
TEST_P(SeriesLevels, ManyPointsKeepTheirHighs) {
  const std::vector<MemoryPoint> points = memory(GetParam(), 9);
  const Time end = points.back().time + Duration(5);
  const auto rows = rows_of(points, end);
  for (int i = 0; i < 200; ++i) {
    const std::size_t most = 1 + below(20);
    const Time from(static_cast<std::int64_t>(below(static_cast<std::size_t>(end.count()))));
    const Time to =
        from + Duration(static_cast<std::int64_t>(below(static_cast<std::size_t>((end - from).count()) + 1)));
    const auto found = selected(rows, from, to, most);
    ASSERT_FALSE(found.empty());
    EXPECT_LE(found.size(), 2 * most + 1);
    const auto [first, last] = covering(points, from, to);
    EXPECT_LE(found.front().time, points[first].time);
    Bytes highest[3] = {}, wanted[3] = {};
    for (const MemoryHigh& row : found) {
      highest[0] = std::max(highest[0], row.allocated);
      highest[1] = std::max(highest[1], row.requested);
      highest[2] = std::max(highest[2], row.reserved);
    }
    for (std::size_t k = first; k <= last; ++k) {
      wanted[0] = std::max(wanted[0], points[k].allocated);
      wanted[1] = std::max(wanted[1], points[k].requested);
      wanted[2] = std::max(wanted[2], points[k].reserved);
    }
    for (int k = 0; k < 3; ++k) EXPECT_GE(highest[k], wanted[k]) << "of " << points.size() << ", most " << most;
  }
}

// Of distinct instants a row stands for the points from its own to the next row's: their highest, and their mean over
// time. How far the last one reaches is not said: to one of the points behind, or to the end.
TEST_P(SeriesLevels, RatesKeepTheirMeans) {
  std::vector<RatePoint> points;
  Time time{};
  for (std::size_t i = 0; i < GetParam(); ++i)
    points.push_back({time += Duration(1 + static_cast<std::int64_t>(below(9))), static_cast<double>(below(1000))});
  const Time end = time + Duration(100'000);
  const auto rows = rows_of(points, end);
  const auto sums_up = [&](const RateHigh& row, std::size_t first, std::size_t last) {  // points [first, last)
    double sum = 0, high = 0;
    for (std::size_t k = first; k < last; ++k) {
      sum +=
          points[k].bytes_per_second * to_seconds((k + 1 < points.size() ? points[k + 1].time : end) - points[k].time);
      high = std::max(high, points[k].bytes_per_second);
    }
    const double mean = sum / to_seconds((last < points.size() ? points[last].time : end) - points[first].time);
    return std::abs(row.mean - mean) <= 1e-9 * (1 + mean) && row.high == high;
  };
  const auto index_of = [&](Time at) {
    const auto found =
        std::partition_point(points.begin(), points.end(), [&](const RatePoint& p) { return p.time < at; });
    return static_cast<std::size_t>(found - points.begin());
  };
  for (int i = 0; i < 200; ++i) {
    const Time from(static_cast<std::int64_t>(below(static_cast<std::size_t>(time.count()))));
    const Time to =
        from + Duration(static_cast<std::int64_t>(below(static_cast<std::size_t>((time - from).count()) + 1)));
    const auto found = selected(rows, from, to, 1 + below(20));
    for (std::size_t k = 0; k + 1 < found.size(); ++k)
      EXPECT_TRUE(sums_up(found[k], index_of(found[k].time), index_of(found[k + 1].time)));
    bool fits = false;
    for (std::size_t last = covering(points, from, to).second + 1; last <= points.size() && !fits; ++last)
      fits = sums_up(found.back(), index_of(found.back().time), last);
    EXPECT_TRUE(fits) << "the last of " << found.size();
  }
}

INSTANTIATE_TEST_SUITE_P(OfLengths, SeriesLevels, testing::Values(2, 15, 16, 17, 255, 257, 3000));

TEST(SeriesLevelsOf, NothingIsNothing) {
  const auto rows = rows_of(std::vector<MemoryPoint>{}, Time(5));
  EXPECT_TRUE(selected(rows, Time{}, Time(5), 10).empty());
  EXPECT_TRUE(series_levels(std::vector<MemoryPoint>{}, Time(5)).empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
