#include "models/workload/import/timed/captured_times.h"

#include <algorithm>
#include <utility>

namespace memwall {

void CapturedTimesWriter::Span::add(Time from, Time to) {
  begin = std::min(begin, from);
  end = std::max(end, to);
}

void CapturedTimesWriter::reserve(std::size_t ops) {
  if (!each_) return;
  times_.start.reserve(ops);
  times_.end.reserve(ops);
}

void CapturedTimesWriter::append(const CapturedDeviceOp* work) {
  const Time start = work == nullptr ? kNever : work->start - times_.origin;
  const Time end = work == nullptr ? kNever : work->end() - times_.origin;
  if (each_) {
    times_.start.push_back(start);
    times_.end.push_back(end);
  }
  if (work == nullptr) return;
  all_.add(start, end);
  if (!steps_.empty()) steps_.back().add(start, end);
}

CapturedTimes CapturedTimesWriter::finish(Duration host_end, const std::vector<Time>& starts) && {
  times_.total = std::max(host_end, Duration(all_.end));
  times_.gpu_span = all_.length();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Time next = i + 1 < steps_.size() ? starts[i + 1] : times_.total;
    times_.steps.push_back({.host_time = next - starts[i], .gpu_span = steps_[i].length(), .gpu_end = steps_[i].end});
  }
  return std::move(times_);
}

}  // namespace memwall
