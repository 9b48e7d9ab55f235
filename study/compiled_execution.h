// What a framework has only in code that torch.compile made.
#pragma once

#include "sim/trace/trace.h"

namespace memwall {

// Refuses torchtitan's async tensor parallelism where a module that has it is not compiled, as torchtitan does. Throws
// UsageError. `trace`: after its policies.
void require_compiled(const Trace& trace);

}  // namespace memwall
