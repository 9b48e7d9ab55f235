#include "sim/trace/dataflow_note.h"

#include <algorithm>

namespace memwall {

std::string why_no_dataflow(const Trace& trace) {
  if (trace.knowledge.dataflow) return "";
  for (const std::string& note : trace.notes)
    if (note.starts_with("Dataflow cannot be inferred") || note.starts_with("The ExecutionTrace covers")) return note;
  return "";
}

bool is_dataflow_inferred(const Trace& trace) {
  return trace.knowledge.dataflow && std::ranges::any_of(trace.notes, [](const std::string& note) {
           return note.starts_with("Dataflow is inferred");
         });
}

}  // namespace memwall
