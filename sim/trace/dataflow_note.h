// The note by which an importer says why it could not infer a trace's dataflow; refusals of policies cite it.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace memwall {

// A sentence that begins with "Dataflow cannot be inferred"; "" where the trace has none, or knows its dataflow.
std::string why_no_dataflow(const Trace& trace);

}  // namespace memwall
