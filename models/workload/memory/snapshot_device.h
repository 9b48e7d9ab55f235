// Which GPU of a memory snapshot is meant: the same for every verb that reads one.
#pragma once

#include <filesystem>
#include <optional>

#include "models/workload/memory/recording.h"

namespace memwall {

// The number in recording.devices of the GPU asked for; by default of the one that reserved most at the end of the
// file, of equals the one with most events. `path` is for sentences. Throws InputError where the snapshot holds
// nothing at all, UsageError naming those that are there.
std::size_t snapshot_device(const MemoryRecording& recording, const std::filesystem::path& path,
                            std::optional<int> asked);

}  // namespace memwall
