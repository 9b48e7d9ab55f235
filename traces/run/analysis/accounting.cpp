#include "traces/run/analysis/accounting.h"

#include <algorithm>

#include "sim/trace/ranks.h"
#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

void append(std::vector<ClassSpan>& spans, Time begin, Time end, TimeClass time_class) {
  if (begin >= end) return;
  if (!spans.empty() && spans.back().time_class == time_class && spans.back().end == begin)
    spans.back().end = end;
  else
    spans.push_back({begin, end, time_class});
}

// Calls piece(begin, end, class) for what the path covers, ascending and contiguous: the path's class, unless something
// computes. Two neighbours may be of one class.
template <class Piece>
void for_each_piece(const std::vector<PathSegment>& path, const BusyIntervals& busy, Piece piece) {
  auto compute = busy.compute.begin();
  auto recompute = busy.recompute.begin();
  auto collective = busy.collective.begin();
  auto copy = busy.copy.begin();
  for (const PathSegment& segment : path) {
    for (Time at = segment.begin; at < segment.end;) {
      while (compute != busy.compute.end() && compute->end <= at) ++compute;
      while (recompute != busy.recompute.end() && recompute->end <= at) ++recompute;
      Time end = segment.end;
      TimeClass time_class = segment.time_class;
      const auto paint = [&](auto interval, auto none, TimeClass busy_class) {
        if (interval == none || interval->begin >= end) return false;
        const bool begun = interval->begin <= at;
        end = begun ? std::min(end, interval->end) : interval->begin;
        if (begun) time_class = busy_class;
        return begun;
      };
      const bool computes = paint(compute, busy.compute.end(), TimeClass::compute) ||
                            paint(recompute, busy.recompute.end(), TimeClass::recompute);
      // What runs is pending, whoever waits for it: work of before a capture stands on no path.
      if (!computes && segment.time_class == TimeClass::idle) {
        while (collective != busy.collective.end() && collective->end <= at) ++collective;
        while (copy != busy.copy.end() && copy->end <= at) ++copy;
        if (!paint(collective, busy.collective.end(), TimeClass::collective))
          paint(copy, busy.copy.end(), TimeClass::copy);
      }
      piece(at, end, time_class);
      at = end;
    }
  }
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

std::vector<ClassSpan> timeline(const std::vector<PathSegment>& path, const BusyIntervals& busy) {
  std::vector<ClassSpan> spans;
  for_each_piece(path, busy, [&](Time begin, Time end, TimeClass c) { append(spans, begin, end, c); });
  return spans;
}

std::vector<BusyIntervals> busy_intervals(const Run& run, std::uint32_t only = kEveryRank) {
  BusyCollector busy(run, only);
  scan(run, busy);
  return busy.take();
}

// How much of each class lies before each of some instants, as the pieces of a timeline pass by in order.
class TimesBefore {
 public:
  explicit TimesBefore(std::vector<Time> instants) : instants_(std::move(instants)) {
    std::sort(instants_.begin(), instants_.end());
    instants_.erase(std::unique(instants_.begin(), instants_.end()), instants_.end());
    before_.resize(instants_.size());
  }

  void add(Time begin, Time end, TimeClass time_class) {
    for (; next_ < instants_.size() && instants_[next_] < end; ++next_) {
      before_[next_] = sum_;
      if (instants_[next_] > begin) before_[next_][time_class] += instants_[next_] - begin;
    }
    sum_[time_class] += end - begin;
  }

  // REQUIRES: all pieces were added; both are among the instants.
  ClassTimes between(Time begin, Time end) {
    for (; next_ < instants_.size(); ++next_) before_[next_] = sum_;
    ClassTimes times;
    if (begin >= end) return times;
    const ClassTimes &from = at(begin), &to = at(end);
    for (std::size_t c = 0; c < kTimeClasses; ++c) times.by_class[c] = to.by_class[c] - from.by_class[c];
    return times;
  }

 private:
  const ClassTimes& at(Time instant) const {
    const auto found = std::lower_bound(instants_.begin(), instants_.end(), instant);
    return before_[static_cast<std::size_t>(found - instants_.begin())];
  }

  std::vector<Time> instants_;      // ascending
  std::vector<ClassTimes> before_;  // of each
  std::size_t next_ = 0;
  ClassTimes sum_;
};

}  // namespace

BusyCollector::BusyCollector(const Run& run, std::uint32_t only)
    : run_(run), only_(only), ranks_(rank_count(run.trace)) {}

void BusyCollector::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  const bool one_rank = ranks_.size() == 1;
  for (OpId id = first; id < std::min<std::size_t>(last, run_.result.records.size()); ++id) {
    const OpRecord& record = run_.result.records[id];
    if (record.start == kNever || record.end <= record.start) continue;
    const Op& op = trace.ops[id];
    if (!runs_on_device(op.kind) || op.kind == OpKind::graph_launch) continue;
    const std::uint16_t rank = one_rank ? std::uint16_t{0} : rank_of(trace, op);
    if (only_ != kEveryRank && rank != only_) continue;
    ranks_[rank].of(device_class(op)).add(op.stream, record.start, record.end);
  }
}

IntervalUnion& BusyCollector::Unions::of(TimeClass time_class) {
  switch (time_class) {
    case TimeClass::compute:
      return compute;
    case TimeClass::recompute:
      return recompute;
    case TimeClass::collective:
      return collective;
    default:
      return copy;
  }
}

std::vector<BusyIntervals> BusyCollector::take() {
  std::vector<BusyIntervals> busy;
  for (Unions& unions : ranks_) busy.push_back(
        {unions.compute.take(), unions.recompute.take(), unions.collective.take(), unions.copy.take()});
  return busy;
}

std::vector<ClassSpan> class_timeline(const Run& run, const std::vector<PathSegment>& path, std::uint16_t rank) {
  return timeline(path, busy_intervals(run, rank)[rank]);
}

std::vector<std::vector<ClassSpan>> class_timelines(const Run& run,
                                                    const std::vector<std::vector<PathSegment>>& paths) {
  const std::vector<BusyIntervals> busy = busy_intervals(run);
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

TimeAccounting account(const Run& run, const std::vector<PathSegment>& path, const BusyIntervals& busy) {
  TimeAccounting accounting;
  for (StepWindow& window : step_windows(run)) accounting.steps.push_back({std::move(window), {}});
  std::vector<Time> instants{Time{}, run.result.end};
  for (const StepAccounting& step : accounting.steps) {
    instants.push_back(step.window.begin);
    instants.push_back(step.window.end);
  }
  TimesBefore times(std::move(instants));
  for_each_piece(path, busy, [&](Time begin, Time end, TimeClass c) { times.add(begin, end, c); });
  for (StepAccounting& step : accounting.steps) step.times = times.between(step.window.begin, step.window.end);
  accounting.total = times.between(Time{}, run.result.end);
  return accounting;
}

TimeAccounting account(const Run& run, const std::vector<PathSegment>& path) {
  if (rank_count(run.trace) == 1) return account(run, path, busy_intervals(run).front());
  return account(run, class_timelines(run, critical_paths_of_ranks(run)));
}

TimeAccounting account(const Run& run) { return account(run, class_timelines(run, critical_paths_of_ranks(run))); }

}  // namespace memwall
