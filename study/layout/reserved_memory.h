// What a layout takes of its GPUs' memory as PyTorch's allocator hands it out: with rounding, cached blocks and
// fragmentation, of which the search knows nothing (study/layout/folded_job.h).
#pragma once

#include "study/layout/layout_search.h"

namespace memwall {

// The allocator's calls are followed (study/layout/reserved_job.h). Where they cannot be, the job is written out, of as
// many micro-batches as the folded job ran before they only repeated. Throws what generators and the simulation throw.
ReservedMemory reserved_memory(const LayoutRequest& request, const Layout& layout, ChunkCostCache& costs);

}  // namespace memwall
