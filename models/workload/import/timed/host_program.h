// The host program of a capture: what all threads did, merged by time, and where control passed
// from one thread to another.
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/timed/capture_phases.h"
#include "models/workload/import/timed/joined_capture.h"

namespace memwall {

// At equal times on one thread they are taken in this order.
enum class PointKind : std::uint8_t {
  operator_end,
  step,
  operator_start,
  memory,
  call,
  range  // an operator or annotation in which the host works alone: nothing else happens between its ends
};

struct ProgramPoint {
  Time time{};
  std::uint32_t index = 0;  // into the capture's (or the phases') list of that kind
  std::uint16_t thread = 0;
  PointKind kind = PointKind::call;
};

// Host events of the kept threads by time. At equal times a thread that is running goes on, so that
// a coarse clock makes no switches. Of operators only those points are left where a thread begins or ends to run, and
// one point (range) of an outermost one in which the host works alone for long: 100 us where somebody named it (a data
// loader), 1 ms of an operator (which runs on the CPU).
std::vector<ProgramPoint> merge_host_events(const JoinedCapture& joined, const CapturePhases& phases);

}  // namespace memwall
