// Turns a torch.cuda.memory snapshot into a trace of allocations and frees.
//
// Of the device that reserved most: what lives at the start exists before, every alloc and free stands where it was
// recorded, with the phases and kinds that docs/memory.md tells from the frames and the host's times between events.
// Nothing runs on the device. The replay that is exact to the byte, with the segments of the file, is
// `memwall memory`; here the allocator of the run places everything anew, blocks from before the recording too.
#pragma once

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

bool recognizes_snapshot(const FileHead& head);

// Throws InputError with file, byte, found and expected.
ImportedStep import_snapshot(const std::filesystem::path& path, const ImportSettings& settings = {});

}  // namespace memwall
