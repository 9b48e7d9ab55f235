// Accounting: where the time of a step goes. Every instant has exactly one class:
//
//   compute     if a kernel or memset runs that is not recompute
//   recompute   else, if a recomputed one runs
//   otherwise   what the critical path does or waits for at that instant
//               (copy, collective, storage, allocator, fault, host)
//   idle        nothing is pending, and no copy or collective runs
//
// So the classes of a window add up to its length, to the picosecond. Latencies
// (launch, stream gap, event, return of a blocking call) are host time; see
// traces/run/analysis/critical_path.h. Only copies, collectives and storage that nothing hides
// appear here: how long they run in total is a matter of links and lanes.
//
// Of several ranks each has its own accounting, of its own work. A rank whose collective has begun waits for a
// collective, also while the others have not come.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "traces/run/analysis/critical_path.h"
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
  ClassTimes total;                   // of [0, end of the rank's work], time outside steps included; all ranks added
};

// An interval of one class.
struct ClassSpan {
  Time begin{}, end{};
  TimeClass time_class = TimeClass::idle;
};

// The classes over what the path covers, contiguous and ascending; neighbours differ in class. `path`: of that rank
// (critical_path_of_rank).
std::vector<ClassSpan> class_timeline(const Run& run, const std::vector<PathSegment>& path, std::uint16_t rank = 0);

// Of every rank; `paths` as critical_paths_of_ranks gives them.
std::vector<std::vector<ClassSpan>> class_timelines(const Run& run, const std::vector<std::vector<PathSegment>>& paths);

TimeAccounting account(const Run& run);
// The same, with the critical path of the run at hand; used where there is one rank.
TimeAccounting account(const Run& run, const std::vector<PathSegment>& path);
// The same, with class_timelines at hand.
TimeAccounting account(const Run& run, const std::vector<std::vector<ClassSpan>>& timelines);

}  // namespace memwall
