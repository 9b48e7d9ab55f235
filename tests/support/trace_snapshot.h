// A trace as torch.cuda.memory's recorder would have seen it: its allocs and frees through the caching allocator, with
// frames that tell what they are for. So pictures and tests have a large recording that is nobody's capture.
#pragma once

#include "sim/trace/trace.h"
#include "tests/support/pickle_writer.h"

namespace memwall {

// What lives before the trace begins is made first: parameters by Module.to, optimizer states by load_state_dict. Only
// what lives in `tier` counts. Steps are annotated.
Plain snapshot_of_trace(const Trace& trace, const std::string& tier = "hbm");

}  // namespace memwall
