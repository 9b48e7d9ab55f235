// How large the blocks that lived before a recording are.
//
// A block that lives to the end has its size in the final segments. Of one freed inside the window only the request is
// known, and a large block may be up to 1 MiB longer than its rounded request, because so small a remainder is not
// split off (CUDACachingAllocator.cpp, should_split). docs/memory.md has the rule that finds the remainder.
#pragma once

#include <vector>

#include "models/workload/memory/reverse_replay.h"

namespace memwall {

struct SizedBlock {
  Address address = 0;
  Bytes size = 0, requested = 0;
  bool pending = false;
};

// The blocks of each range of `earlier`, by address, within the range and apart from each other: others are left out
// and told. `look_ahead`: use the later allocations to find remainders; off only to see what that is worth.
std::vector<std::vector<SizedBlock>> size_blocks(const DeviceRecording& device, const AllocatorSettings& settings,
                                                 const InitialState& earlier, Contradictions& wrong,
                                                 bool look_ahead = true);

}  // namespace memwall
