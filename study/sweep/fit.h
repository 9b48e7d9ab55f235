// The last value of one axis at which a condition holds: the largest batch that fits, the least bandwidth that hides a
// copy.
//
// Up to kMostScanned values all are looked at, so that the answer is exact whatever the condition does. Of more values
// the edge is found by bisection, and kChecks values on each side of it are looked at besides: where one of them is on
// the wrong side, the condition is not monotone, which is said, and the search goes on from there. An edge that lies
// between two values that were looked at is then found; one that lies between values that were not may be missed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "study/sweep/sweep.h"

namespace memwall {

inline constexpr std::size_t kMostScanned = 64;
inline constexpr std::size_t kChecks = 8;

struct FitEdge {
  std::optional<std::size_t> last;     // index of the value asked for; nothing where none holds
  std::vector<std::size_t> probed;     // ascending
  std::vector<std::size_t> anomalies;  // values below `last` at which it does not hold, of those that were looked at
};

// Does the condition hold at these values, each of them? Those of one call do not depend on each other.
using FitQuestion = std::function<std::vector<bool>(const std::vector<std::size_t>& values)>;

// Of values 0 <= i < count, of which the later are wanted: the last at which it holds. Each is asked once at most.
// REQUIRES: count > 0.
FitEdge last_that_holds(std::size_t count, const FitQuestion& holds);

struct FitRequest {
  Scenario base;
  Axis axis;
  std::vector<std::string> conditions;
  std::vector<std::string> fields{};  // that a table wants
  bool largest = true;                // else the smallest value
  unsigned jobs = 1;                  // the result is the same for any number
  bool accept_gaps = false;           // SweepRequest::accept_gaps
  bool written_out = false;           // SweepRequest::written_out
};

struct FitProbe {
  std::size_t value = 0;  // index into FitResult::values
  SweepPoint point;
  std::vector<std::string> broken;  // conditions that do not hold; none where it failed or holds
};

struct FitResult {
  std::vector<std::string> values;  // of the axis, the least wanted first
  FitEdge edge;
  std::vector<FitProbe> probes;  // ascending
  bool was_scanned = false;      // all values were looked at

  const FitProbe* probe(std::size_t value) const;
  // What stands behind the last: the next that was looked at.
  const FitProbe* next() const;
};

// While it runs: values that were looked at, and how many at most will be.
using FitWatch = std::function<void(std::size_t done, std::size_t most)>;

// Points come from the journal where they are there (null = none). Throws as sweep().
FitResult fit(Study& study, const FitRequest& request, SweepJournal* journal, const FitWatch& watch = {});

}  // namespace memwall
