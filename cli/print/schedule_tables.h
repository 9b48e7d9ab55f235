// What a schedule holds and what executing it takes.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Bytes of device memory at worst, allocations in program order, as a pass of a replay makes them.
struct DeviceNeeds {
  Bytes allocated = 0, reserved = 0;
};
DeviceNeeds device_needs(const Trace& schedule);

// Does a replay need more of hbm than the machine has? A sentence, with what it takes; "" where all it reserves fits.
// It makes no room as a pager does: what a request does not find, it does not get.
std::string device_shortage(const Trace& schedule, const Machine& machine);

// Ops by kind, transfers by direction, work of kernels, memory by place, notes, of which `shortage` is the first.
// REQUIRES: check(schedule) and not_executable(schedule) are empty.
std::vector<Table> schedule_tables(const Trace& schedule, const std::string& shortage = "");

}  // namespace memwall
