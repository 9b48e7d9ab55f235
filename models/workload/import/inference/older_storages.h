// Storages that are older than the window: how many bytes they can have, and which of them the window sees freed.
// Internal to the inference.
#pragma once

#include <vector>

#include "models/workload/import/inference/profile_facts.h"
#include "models/workload/import/inference/tensor_table.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

// What was on the device when the window began; -1 where the file does not say.
Bytes bytes_at_start(const Trace& trace, const TimedCapture& capture);

// Frees of unknown addresses are of storages older than the window; some of them operators used. Of several of that
// size it is the one that was used last before the free. `last_use`: by storage of the table.
void adopt_freed(const ImportedTrace& imported, const ProfileFacts& facts, const std::vector<Time>& last_use,
                 TensorTable& table);

}  // namespace memwall
