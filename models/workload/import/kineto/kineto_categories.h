// Categories of a Kineto file's events, by the names of all vintages, 2021 (Operator, Runtime, ...) to now.
// Internal to the Kineto importer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/workload/import/timed/decision.h"
#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

enum class KinetoCategory : std::uint8_t {
  none,  // not read
  operation,
  annotation,
  call,
  kernel,
  copy,
  memset,
  sync,
  python
};

KinetoCategory kineto_category(std::string_view name);

// Whether all of the file's events are of known categories and its schema of a known version.
std::vector<Decision> category_decisions(const TimedCapture& capture);

}  // namespace memwall
