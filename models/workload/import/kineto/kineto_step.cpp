#include "models/workload/import/kineto/kineto_step.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "models/workload/import/bytes/json_source.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/execution_trace/timed_step.h"
#include "models/workload/import/inference/inferred_dataflow.h"
#include "models/workload/import/kineto/kineto_categories.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/import_decisions.h"
#include "models/workload/import/timed/recorded_shapes.h"
#include "sim/error.h"

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

ImportedStep import_kineto(const std::filesystem::path& path, const ImportSettings& settings) {
  TimedCapture capture = read_kineto(path);
  // The join and the inference need the capture's memory events.
  const bool alone = settings.execution_trace.empty();
  ImportedTrace imported =
      alone && !can_infer_dataflow(capture) ? import_and_release_capture(capture) : import_timed_capture(capture);
  std::vector<Decision> decisions = category_decisions(capture);
  append(import_decisions(capture, imported), decisions);
  append(shape_decisions(add_recorded_shapes(capture, imported)), decisions);
  if (alone) {
    append(inference_decisions(infer_dataflow(imported, capture)), decisions);
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

std::int64_t captured_rank(const std::filesystem::path& path) {
  try {
    JsonSource json(path);
    while (const auto key = json.next_member()) {
      if (*key == "traceEvents") return -1;
      if (*key != "distributedInfo") continue;
      const simdjson::padded_string copy(json.value());
      simdjson::dom::parser parser;
      std::int64_t rank = -1;
      return parser.parse(copy)["rank"].get(rank) == simdjson::SUCCESS ? rank : -1;
    }
  } catch (const InputError&) {
    return -1;  // whoever opens the file says what is wrong with it
  }
  return -1;
}

}  // namespace memwall
