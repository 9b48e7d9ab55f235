// The captured times of what a trace holds, while it is written.
// Internal to the importers of timed captures.
#pragma once

#include <vector>

#include "models/workload/import/timed/timed_import.h"

namespace memwall {

class CapturedTimesWriter {
 public:
  // `each`: keep start and end of every op; of a large capture that is a seventh of the trace.
  explicit CapturedTimesWriter(bool each) : each_(each) {}

  void set_origin(Time origin) { times_.origin = origin; }
  void reserve(std::size_t ops);
  // The trace's next op: its device work, or null. REQUIRES: the origin is set.
  void append(const CapturedDeviceOp* work);
  // What is appended from now on belongs to the next step.
  void begin_step() { steps_.push_back({}); }

  // `starts`: of the steps, since the origin; as many as were begun. `host_end`: likewise of all threads.
  CapturedTimes finish(Duration host_end, const std::vector<Time>& starts) &&;

 private:
  struct Span {
    Time begin = kNever, end{};
    void add(Time from, Time to);
    Duration length() const { return begin == kNever ? Duration{} : end - begin; }
  };

  bool each_;
  CapturedTimes times_;
  Span all_;
  std::vector<Span> steps_;
};

}  // namespace memwall
