// Levels of detail of a series in time: the points themselves are level 0, a row of each further level stands for
// kSeriesGroup rows of the one below it; the last level has one row. Internal to traces/run.
//
// Selecting from a series never reads more than some 16 rows per point asked for, however long the series is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "traces/run/run_source.h"

namespace memwall {

inline constexpr std::uint64_t kSeriesGroup = 16;

// A row's time and value as level 0 has them.
inline MemoryHigh high_of(const MemoryPoint& p) { return {p.time, p.allocated, p.requested, p.reserved}; }
inline RateHigh high_of(const RatePoint& p) { return {p.time, p.bytes_per_second, p.bytes_per_second}; }

// Takes [first, last) as one row; `until`: where the last one ends. REQUIRES: first < last.
inline MemoryHigh merged_rows(const MemoryHigh* first, const MemoryHigh* last, Time) {
  MemoryHigh out = *first;
  for (const MemoryHigh* row = first; row < last; ++row) {
    out.allocated = std::max(out.allocated, row->allocated);
    out.requested = std::max(out.requested, row->requested);
    out.reserved = std::max(out.reserved, row->reserved);
  }
  return out;
}
inline RateHigh merged_rows(const RateHigh* first, const RateHigh* last, Time until) {
  RateHigh out = *first;
  double sum = 0, width = 0;
  for (const RateHigh* row = first; row < last; ++row) {
    const double time = to_seconds((row + 1 < last ? (row + 1)->time : until) - row->time);
    sum += row->mean * time;
    width += time;
    out.high = std::max(out.high, row->high);
  }
  if (width > 0) out.mean = sum / width;
  return out;
}

// Every `group` rows as one. `end`: of the last row.
template <class High>
std::vector<High> grouped(const std::vector<High>& rows, std::size_t group, Time end) {
  std::vector<High> out;
  out.reserve((rows.size() + group - 1) / group);
  for (std::size_t first = 0; first < rows.size(); first += group) {
    const std::size_t last = std::min(rows.size(), first + group);
    out.push_back(merged_rows(rows.data() + first, rows.data() + last, last < rows.size() ? rows[last].time : end));
  }
  return out;
}

// Levels 1 and up, finest first; none of a series of one point or none.
template <class Point>
auto series_levels(const std::vector<Point>& points, Time end) {
  using High = decltype(high_of(points.front()));
  std::vector<High> rows;
  rows.reserve(points.size());
  for (const Point& point : points) rows.push_back(high_of(point));
  std::vector<std::vector<High>> levels;
  while (rows.size() > 1) {
    rows = grouped(rows, kSeriesGroup, end);
    levels.push_back(rows);
  }
  return levels;
}

// Rows of level `level` of a series of `points` points.
constexpr std::uint64_t rows_of_level(std::uint64_t points, std::size_t level) {
  for (; level > 0; --level) points = (points + kSeriesGroup - 1) / kSeriesGroup;
  return points;
}
constexpr std::size_t levels_of(std::uint64_t points) {  // level 0 included
  std::size_t levels = 1;
  for (; points > 1; points = rows_of_level(points, 1)) ++levels;
  return levels;
}

template <class High>
struct SeriesRows {
  std::uint64_t points = 0;
  Time end{};  // of the series
  std::function<std::vector<High>(std::size_t level, std::uint64_t first, std::uint64_t count)> read;
};

// The last row of level 0 whose time is less than `time` (or_equal: or equal); the first row if none is.
template <class High>
std::uint64_t row_before(const SeriesRows<High>& series, Time time, bool or_equal) {
  std::uint64_t row = 0;
  for (std::size_t level = levels_of(series.points) - 1; level-- > 0;) {
    const std::uint64_t first = row * kSeriesGroup;
    const std::vector<High> rows =
        series.read(level, first, std::min(kSeriesGroup, rows_of_level(series.points, level) - first));
    row = first;
    for (std::size_t i = 1; i < rows.size() && (rows[i].time < time || (or_equal && rows[i].time == time)); ++i)
      row = first + i;
  }
  return row;
}

// At most 2 x `most` rows that cover [begin, end], highs kept; the points themselves where they are no more than that.
// The first is at or before `begin`, if the series is.
template <class High>
std::vector<High> selected(const SeriesRows<High>& series, Time begin, Time end, std::size_t most) {
  if (series.points == 0 || end < begin) return {};
  most = std::max<std::size_t>(most, 1);
  std::uint64_t first = row_before(series, begin, false);
  // What an instant passes through belongs to it whole; what was before it does not.
  if (first + 1 < series.points && series.read(0, first + 1, 1).at(0).time == begin) ++first;
  const std::uint64_t last = std::max(first, row_before(series, end, true));
  if (last - first < 2 * most) return series.read(0, first, last - first + 1);
  std::size_t level = 0;
  std::uint64_t low = first, high = last;
  for (; high - low >= kSeriesGroup * most; ++level) {
    low /= kSeriesGroup;
    high /= kSeriesGroup;
  }
  const std::uint64_t count = high - low + 1;
  const bool more = high + 1 < rows_of_level(series.points, level);
  std::vector<High> rows = series.read(level, low, count + (more ? 1 : 0));
  Time until = series.end;
  if (more) {
    until = rows.back().time;
    rows.pop_back();
  }
  return grouped(rows, static_cast<std::size_t>((count + 2 * most - 1) / (2 * most)), until);
}

}  // namespace memwall
