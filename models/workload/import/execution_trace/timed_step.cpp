#include "models/workload/import/execution_trace/timed_step.h"

#include <fmt/format.h>

#include "models/workload/import/execution_trace/capture_rank.h"

namespace memwall {

std::string events_line(const TimedCapture& capture) {
  std::string line;
  for (const auto& [category, count] : capture.events_by_category)
    line += fmt::format("{}{} {}", line.empty() ? "Events in the file: " : ", ", count,
                        category.empty() ? "without category" : category);
  return line + ".";
}

ImportedStep step_of(ImportedTrace imported, const TimedCapture& capture, const ExecutionTrace* execution,
                     const OperatorMatch* match) {
  ImportedStep step;
  step.rank = rank_of_capture(imported, capture, execution, match);
  step.trace = std::move(imported.trace);
  step.gpu = std::move(imported.gpu);
  for (const CapturedDevice& device : capture.devices)
    if (device.name == step.gpu) {
      step.gpu_memory = device.memory;
      break;
    }
  step.report.push_back(events_line(capture));
  step.files.push_back(capture.path);
  return step;
}

}  // namespace memwall
