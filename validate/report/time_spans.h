// Sets of instants: unions and intersections of intervals. Internal to validate/report.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct TimeSpan {
  Time begin{}, end{};
};

// Ascending, disjoint, none empty.
inline std::vector<TimeSpan> united(std::vector<TimeSpan> spans) {
  std::erase_if(spans, [](const TimeSpan& s) { return s.end <= s.begin; });
  std::sort(spans.begin(), spans.end(), [](const TimeSpan& a, const TimeSpan& b) { return a.begin < b.begin; });
  std::vector<TimeSpan> result;
  for (const TimeSpan& span : spans) {
    if (!result.empty() && span.begin <= result.back().end)
      result.back().end = std::max(result.back().end, span.end);
    else
      result.push_back(span);
  }
  return result;
}

// REQUIRES: disjoint.
inline Duration length(const std::vector<TimeSpan>& spans) {
  Duration sum{};
  for (const TimeSpan& span : spans) sum += span.end - span.begin;
  return sum;
}

// REQUIRES: both as `united` makes them.
inline Duration common_length(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
  Duration sum{};
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Time begin = std::max(a[i].begin, b[j].begin), end = std::min(a[i].end, b[j].end);
    if (end > begin) sum += end - begin;
    ++(a[i].end < b[j].end ? i : j);
  }
  return sum;
}

}  // namespace memwall
