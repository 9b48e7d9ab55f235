// The notes by which an importer says that it inferred a trace's dataflow, or why it could not; refusals of policies
// cite the latter.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace memwall {

// A sentence that begins with "Dataflow cannot be inferred" or "The ExecutionTrace covers"; "" where the trace has
// none, or knows its dataflow.
std::string why_no_dataflow(const Trace& trace);

// Was an ExecutionTrace joined that covers too little for dataflow (a note that begins with "The ExecutionTrace
// covers")?
bool has_short_execution_trace(const Trace& trace);

// Is its dataflow a conclusion from other records (a note that begins with "Dataflow is inferred"), not recorded?
bool is_dataflow_inferred(const Trace& trace);

}  // namespace memwall
