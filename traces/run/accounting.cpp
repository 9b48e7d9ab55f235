#include "traces/run/accounting.h"

#include <algorithm>

#include "sim/ranks.h"

namespace memwall {
namespace {

struct Interval {
  Time begin{}, end{};
};

// When at least one op of the class runs: ascending, disjoint.
std::vector<Interval> busy_intervals(const Run& run, std::uint16_t rank, TimeClass time_class) {
  const bool alone = rank_count(run.trace) == 1;
  std::vector<Interval> intervals;
  for (OpId id = 0; id < run.result.records.size(); ++id) {
    const OpRecord& record = run.result.records[id];
    if (record.start == kNever || record.end <= record.start) continue;
    const Op& op = run.trace.ops[id];
    if (device_class(op) == time_class && (alone || rank_of(run.trace, op) == rank))
      intervals.push_back({record.start, record.end});
  }
  const auto earlier = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), earlier))
    std::sort(intervals.begin(), intervals.end(), earlier);
  std::size_t kept = 0;
  for (const Interval& interval : intervals) {
    if (kept > 0 && interval.begin <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, interval.end);
    else
      intervals[kept++] = interval;
  }
  intervals.resize(kept);
  return intervals;
}

void append(std::vector<ClassSpan>& spans, Time begin, Time end, TimeClass time_class) {
  if (begin >= end) return;
  if (!spans.empty() && spans.back().time_class == time_class && spans.back().end == begin)
    spans.back().end = end;
  else
    spans.push_back({begin, end, time_class});
}

// `spans` with `time_class` wherever an interval lies.
std::vector<ClassSpan> painted(const std::vector<ClassSpan>& spans, const std::vector<Interval>& intervals,
                               TimeClass time_class) {
  std::vector<ClassSpan> out;
  std::size_t next = 0;
  for (const ClassSpan& span : spans) {
    Time at = span.begin;
    while (next < intervals.size() && intervals[next].end <= at) ++next;
    for (std::size_t i = next; i < intervals.size() && intervals[i].begin < span.end; ++i) {
      append(out, at, intervals[i].begin, span.time_class);
      const Time end = std::min(intervals[i].end, span.end);
      append(out, std::max(at, intervals[i].begin), end, time_class);
      at = std::max(at, end);
      if (intervals[i].end <= span.end) next = i + 1;
    }
    append(out, at, span.end, span.time_class);
  }
  return out;
}

ClassTimes times_within(const std::vector<ClassSpan>& spans, Time begin, Time end) {
  ClassTimes times;
  auto span = std::upper_bound(spans.begin(), spans.end(), begin, [](Time t, const ClassSpan& s) { return t < s.end; });
  for (; span != spans.end() && span->begin < end; ++span)
    times[span->time_class] += std::min(end, span->end) - std::max(begin, span->begin);
  return times;
}

}  // namespace

Duration ClassTimes::total() const {
  Duration sum{};
  for (const Duration d : by_class) sum += d;
  return sum;
}

std::vector<ClassSpan> class_timeline(const Run& run, const std::vector<PathSegment>& path, std::uint16_t rank) {
  std::vector<ClassSpan> spans;
  for (const PathSegment& segment : path) append(spans, segment.begin, segment.end, segment.time_class);
  spans = painted(spans, busy_intervals(run, rank, TimeClass::recompute), TimeClass::recompute);
  return painted(spans, busy_intervals(run, rank, TimeClass::compute), TimeClass::compute);
}

TimeAccounting account(const Run& run, const std::vector<PathSegment>& path) {
  const std::vector<Time> ends = rank_ends(run);
  TimeAccounting accounting;
  for (StepWindow& window : step_windows(run)) accounting.steps.push_back({std::move(window), {}});
  for (std::uint16_t rank = 0; rank < ends.size(); ++rank) {
    const std::vector<ClassSpan> spans =
        ends.size() == 1 ? class_timeline(run, path, 0) : class_timeline(run, critical_path_of_rank(run, rank), rank);
    for (StepAccounting& step : accounting.steps)
      if (step.window.rank == rank) step.times = times_within(spans, step.window.begin, step.window.end);
    const ClassTimes all = times_within(spans, Time{}, ends[rank]);
    for (std::size_t c = 0; c < kTimeClasses; ++c) accounting.total.by_class[c] += all.by_class[c];
  }
  return accounting;
}

TimeAccounting account(const Run& run) {
  return account(run, rank_count(run.trace) == 1 ? critical_path(run) : std::vector<PathSegment>{});
}

}  // namespace memwall
