// What a schedule holds and what executing it takes.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "sim/trace/trace.h"

namespace memwall {

// Bytes of device memory at worst, allocations in program order, as a pass of a replay makes them.
struct DeviceNeeds {
  Bytes allocated = 0, reserved = 0;
};
DeviceNeeds device_needs(const Trace& schedule);

// Ops by kind, transfers by direction, work of kernels, memory by place, notes.
// REQUIRES: check(schedule) and not_executable(schedule) are empty.
std::vector<Table> schedule_tables(const Trace& schedule);

}  // namespace memwall
