#include "models/workload/import/execution_trace/timed_step.h"

#include <fmt/format.h>

#include "models/workload/import/execution_trace/autograd_nodes.h"
#include "models/workload/import/execution_trace/capture_rank.h"

namespace memwall {

std::string events_line(const TimedCapture& capture) {
  std::string line;
  for (const auto& [category, count] : capture.events_by_category)
    line += fmt::format("{}{} {}", line.empty() ? "Events in the file: " : ", ", count,
                        category.empty() ? "without category" : category);
  return line + ".";
}

namespace {

OperatorCalls operator_calls(const ImportedTrace& imported, const TimedCapture& capture) {
  const std::size_t ops = imported.operator_of_op.size();
  OperatorCalls calls{std::vector<std::uint32_t>(ops, kNoOp), std::vector<std::uint32_t>(ops, kNoOp),
                      autograd_nodes(imported, capture)};
  for (OpId id = 0; id < ops; ++id)
    for (std::uint32_t k = imported.operator_of_op[id]; k != kNoIndex; k = capture.operators[k].parent) {
      if (!capture.text(capture.operators[k].name).starts_with("aten::")) break;
      if (calls.innermost[id] == kNoOp) calls.innermost[id] = k;
      calls.outermost[id] = k;
    }
  return calls;
}

}  // namespace

ImportedStep step_of(ImportedTrace imported, const TimedCapture& capture, const ExecutionTrace* execution,
                     const OperatorMatch* match) {
  ImportedStep step;
  if (execution == nullptr) step.calls = operator_calls(imported, capture);
  step.rank = rank_of_capture(imported, capture, execution, match);
  step.trace = std::move(imported.trace);
  step.note_kinds = std::move(imported.note_kinds);
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
