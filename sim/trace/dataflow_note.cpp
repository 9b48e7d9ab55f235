#include "sim/trace/dataflow_note.h"

namespace memwall {

std::string why_no_dataflow(const Trace& trace) {
  if (trace.knowledge.dataflow) return "";
  for (const std::string& note : trace.notes)
    if (note.starts_with("Dataflow cannot be inferred")) return note;
  return "";
}

}  // namespace memwall
