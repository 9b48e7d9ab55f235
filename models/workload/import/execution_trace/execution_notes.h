// What is concluded from an ExecutionTrace alone, in sentences.
// Internal to the importer of ExecutionTraces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/workload/import/execution_trace/derived_dataflow.h"
#include "models/workload/import/execution_trace/device_work_of_nodes.h"
#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

struct ExecutionCounts {
  std::size_t kernels = 0, copies = 0, collectives = 0, waits_stated = 0, waits_inferred = 0, hand_overs = 0;
  std::size_t unsized_groups = 0;  // collectives of a group whose size nothing states
};

struct ExecutionFacts {
  const ExecutionTrace& execution;
  const NodeDeviceWorks& works;
  const DerivedDataflow& derived;
  ExecutionCounts counts;
  std::size_t threads = 0;
  std::int64_t rank = -1;       // -1 = nothing says it
  std::uint32_t job_ranks = 0;  // 0 = unknown
  bool names_steps = false, has_backward = false;
};

// Adds to ImportedStep::report and decisions.
void describe_execution(const ExecutionFacts& facts, ImportedStep& step);

}  // namespace memwall
