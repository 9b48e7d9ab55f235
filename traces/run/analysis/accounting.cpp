#include "traces/run/analysis/accounting.h"

#include <algorithm>

#include "sim/trace/ranks.h"

namespace memwall {
namespace {

struct Interval {
  Time begin{}, end{};
};

// Ascending and disjoint, where they were given as they happened.
void merge(std::vector<Interval>& intervals) {
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
}

// When at least one op of either class runs on a rank: ascending, disjoint.
struct Busy {
  std::vector<Interval> compute, recompute;
};

constexpr std::uint32_t kEveryRank = 0xffffffff;

// Of each rank; of one alone, where it is named, the others' stay empty.
std::vector<Busy> busy_intervals(const Run& run, std::uint32_t only = kEveryRank) {
  const std::size_t ranks = rank_count(run.trace);
  std::vector<Busy> busy(ranks);
  for (OpId id = 0; id < run.result.records.size(); ++id) {
    const OpRecord& record = run.result.records[id];
    if (record.start == kNever || record.end <= record.start) continue;
    const Op& op = run.trace->ops[id];
    const TimeClass time_class = device_class(op);
    if (time_class != TimeClass::compute && time_class != TimeClass::recompute) continue;
    const std::uint16_t rank = ranks == 1 ? std::uint16_t{0} : rank_of(run.trace, op);
    if (only != kEveryRank && rank != only) continue;
    (time_class == TimeClass::compute ? busy[rank].compute : busy[rank].recompute)
        .push_back({record.start, record.end});
  }
  for (Busy& of_rank : busy) {
    merge(of_rank.compute);
    merge(of_rank.recompute);
  }
  return busy;
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

namespace {

std::vector<ClassSpan> timeline(const std::vector<PathSegment>& path, const Busy& busy) {
  std::vector<ClassSpan> spans;
  for (const PathSegment& segment : path) append(spans, segment.begin, segment.end, segment.time_class);
  spans = painted(spans, busy.recompute, TimeClass::recompute);
  return painted(spans, busy.compute, TimeClass::compute);
}

}  // namespace

std::vector<ClassSpan> class_timeline(const Run& run, const std::vector<PathSegment>& path, std::uint16_t rank) {
  return timeline(path, busy_intervals(run, rank)[rank]);
}

std::vector<std::vector<ClassSpan>> class_timelines(const Run& run,
                                                    const std::vector<std::vector<PathSegment>>& paths) {
  const std::vector<Busy> busy = busy_intervals(run);
  std::vector<std::vector<ClassSpan>> timelines;
  for (std::size_t rank = 0; rank < paths.size(); ++rank) timelines.push_back(timeline(paths[rank], busy[rank]));
  return timelines;
}

TimeAccounting account(const Run& run, const std::vector<std::vector<ClassSpan>>& timelines) {
  const std::vector<Time> ends = rank_ends(run);
  TimeAccounting accounting;
  for (StepWindow& window : step_windows(run)) accounting.steps.push_back({std::move(window), {}});
  for (StepAccounting& step : accounting.steps)
    step.times = times_within(timelines[step.window.rank], step.window.begin, step.window.end);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const ClassTimes all = times_within(timelines[rank], Time{}, ends[rank]);
    for (std::size_t c = 0; c < kTimeClasses; ++c) accounting.total.by_class[c] += all.by_class[c];
  }
  return accounting;
}

TimeAccounting account(const Run& run, const std::vector<PathSegment>& path) {
  if (rank_count(run.trace) == 1) return account(run, class_timelines(run, {path}));
  return account(run, class_timelines(run, critical_paths_of_ranks(run)));
}

TimeAccounting account(const Run& run) { return account(run, class_timelines(run, critical_paths_of_ranks(run))); }

}  // namespace memwall
