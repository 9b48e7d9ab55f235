// Behind which wait a storage that another stream uses can be given back.
// Internal to the importers of captures without memory events.
#pragma once

#include <utility>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// What another stream uses than the one that made it is given back behind the wait for that use: by the storage's
// stream, or by the host. Pairs of a use and its wait; without a wait the end of the program.
std::vector<std::pair<OpId, OpId>> waits_of(const Trace& trace);

}  // namespace memwall
