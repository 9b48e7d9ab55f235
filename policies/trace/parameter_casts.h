// Casts of parameters that mixed precision makes and keeps (torch.autocast): what is used again is cast only once.
#pragma once

#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

// Is the storage a parameter in another type: written once, by an op that reads nothing else?
bool is_cast_of_parameter(const Trace& trace, const Dataflow& flow, StorageId storage);

// The ops of the pass's forward that free such a cast later than its last use: there a context of autocast ends.
// Ascending.
std::vector<OpId> cast_ends(const Trace& trace, const Dataflow& flow, const Pass& pass);

}  // namespace memwall
