#include "models/workload/import/kineto/kineto_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/timed/import_decisions.h"
#include "models/workload/import/execution_trace/capture_rank.h"
#include "models/workload/import/timed/recorded_shapes.h"

namespace memwall {
namespace {

void append(std::vector<Decision> more, std::vector<Decision>& to) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

bool recognizes_kineto(const FileHead& head) {
  if (head.text.starts_with('[')) {
    const std::size_t first = head.text.find_first_not_of(" \t\r\n", 1);
    return first != std::string::npos && (head.text[first] == '{' || head.text[first] == ']');
  }
  // What stands before or instead of the events, by vintage.
  constexpr std::array<std::string_view, 11> names{
      "schemaVersion",       "deviceProperties", "traceEvents",   "distributedInfo", "traceName", "displayTimeUnit",
      "baseTimeNanoseconds", "trace_id",         "record_shapes", "profile_memory",  "with_stack"};
  return std::any_of(head.members.begin(), head.members.end(), [&](const std::string& member) {
    return std::find(names.begin(), names.end(), member) != names.end();
  });
}

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
  step.gpu = std::move(step.trace.machine);
  step.trace.machine.clear();
  for (const CapturedDevice& device : capture.devices)
    if (device.name == step.gpu) {
      step.gpu_memory = device.memory;
      break;
    }
  step.report.push_back(events_line(capture));
  step.files.push_back(capture.path);
  return step;
}

ImportedStep import_kineto(const std::filesystem::path& path, const ImportSettings& settings) {
  TimedCapture capture = read_kineto(path);
  // The join needs the capture's memory events.
  ImportedTrace imported = settings.execution_trace.empty() ? import_and_release_capture(capture) : import_timed_capture(capture);
  std::vector<Decision> decisions = import_decisions(capture, imported);
  append(shape_decisions(add_recorded_shapes(capture, imported)), decisions);
  if (settings.execution_trace.empty()) {
    ImportedStep step = step_of(std::move(imported), capture);
    step.decisions = std::move(decisions);
    return step;
  }
  const ExecutionTrace execution = read_execution_trace(settings.execution_trace);
  const JoinReport report = join_execution_trace(imported, capture, execution);
  ImportedStep step = step_of(std::move(imported), capture, &execution, &report.operators);
  step.files.push_back(settings.execution_trace);
  append(join_decisions(report), decisions);
  step.decisions = std::move(decisions);
  return step;
}

}  // namespace memwall
