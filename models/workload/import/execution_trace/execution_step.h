// A PyTorch ExecutionTrace alone as a step: what ran on the device, on which storages, and nothing about how long.
//
// | in the trace | from the file |
// |---|---|
// | kernels | operators that write device memory by themselves (device_work_of_nodes.h), in the host's order, each behind those
// inside it; class, FLOPs, bytes, type and shape by its tensors; Op::framework_calls counts what was dispatched since |
// | copies | copy_ between host and device; the host waits for those that are not non_blocking, and for numbers read |
// | collectives | c10d operators, on a stream per process group, behind what was launched before; who waits is said by
// record_param_comms "wait", else by the first operator that uses their tensors |
// | hand-overs | where the recorded order passes from one host thread to another, the other waits |
// | phases, steps, modules | ranges, as in a Kineto capture |
// | storages | derived_dataflow.h |
//
// The trace knows dataflow, shapes and (derived) allocations, and no timing: give it a machine.
#pragma once

#include <filesystem>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

// Throws InputError where the file holds nothing that runs on a device.
ImportedStep step_of(ExecutionTrace execution);

bool recognizes_execution_trace(const FileHead& head);
ImportedStep import_execution_trace(const std::filesystem::path& path, const ImportSettings& settings);

}  // namespace memwall
