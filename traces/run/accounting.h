// Accounting: where the time of a step goes. Every instant has exactly one class:
//
//   compute     if a kernel or memset runs that is not recompute
//   recompute   else, if a recomputed one runs
//   otherwise   what the critical path does or waits for at that instant
//               (copy, collective, storage, allocator, fault, host)
//   idle        nothing is pending
//
// So the classes of a window add up to its length, to the picosecond. Latencies
// (launch, stream gap, event, return of a blocking call) are host time; see
// traces/run/critical_path.h. Only copies, collectives and storage that nothing hides
// appear here: how long they run in total is a matter of links and lanes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "traces/run/critical_path.h"
#include "traces/run/run.h"

namespace memwall {

struct ClassTimes {
  std::array<Duration, kTimeClasses> by_class{};
  Duration& operator[](TimeClass c) { return by_class[static_cast<std::size_t>(c)]; }
  Duration operator[](TimeClass c) const { return by_class[static_cast<std::size_t>(c)]; }
  Duration total() const;
};

struct StepAccounting {
  StepWindow window;
  ClassTimes times;  // add up to window.end - window.begin
};

struct TimeAccounting {
  std::vector<StepAccounting> steps;  // as step_windows(run)
  ClassTimes total;                   // of [0, run.result.end], time outside steps included
};

// An interval of one class.
struct ClassSpan {
  Time begin{}, end{};
  TimeClass time_class = TimeClass::idle;
};

// The classes over [0, end], contiguous and ascending; neighbours differ in class.
std::vector<ClassSpan> class_timeline(const Run& run, const std::vector<PathSegment>& path);

TimeAccounting account(const Run& run);
// The same, with the critical path at hand.
TimeAccounting account(const Run& run, const std::vector<PathSegment>& path);

}  // namespace memwall
