// A timed capture (Kineto, Nsight Systems, libmemwall_inject) as a step.
#pragma once

#include <string>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_match.h"
#include "models/workload/import/timed/imported_step.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

// What the file holds, by category as it names them.
std::string events_line(const TimedCapture& capture);

// Moves the device that the trace was captured on from Trace::machine, where import_timed_capture puts its name, to the
// step, and says what other ranks' captures are joined by. `execution` of the same run with its match, or both null.
ImportedStep step_of(ImportedTrace imported, const TimedCapture& capture, const ExecutionTrace* execution = nullptr,
                     const OperatorMatch* match = nullptr);

}  // namespace memwall
