#include "sim/trace/dataflow_note.h"

#include <algorithm>
#include <string_view>

namespace memwall {
namespace {

constexpr std::string_view kCovers = "The ExecutionTrace covers";

}  // namespace

std::string why_no_dataflow(const Trace& trace) {
  if (trace.knowledge.dataflow) return "";
  for (const std::string& note : trace.notes)
    if (note.starts_with("Dataflow cannot be inferred") || note.starts_with(kCovers)) return note;
  return "";
}

bool has_short_execution_trace(const Trace& trace) {
  return !trace.knowledge.dataflow &&
         std::ranges::any_of(trace.notes, [](const std::string& note) { return note.starts_with(kCovers); });
}

bool is_dataflow_inferred(const Trace& trace) {
  return trace.knowledge.dataflow && std::ranges::any_of(trace.notes, [](const std::string& note) {
           return note.starts_with("Dataflow is inferred");
         });
}

}  // namespace memwall
