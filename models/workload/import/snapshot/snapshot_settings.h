// The allocator settings of a memory snapshot: the text of PYTORCH_CUDA_ALLOC_CONF, and what PyTorch read from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/memory/allocator_settings.h"

namespace memwall {

// As the file has them; what is absent there is absent here.
struct SnapshotSettings {
  std::optional<std::string> text;
  std::optional<std::int64_t> max_split_size;  // bytes; -1 = no limit
  std::optional<double> garbage_collection_threshold;
  std::optional<bool> expandable_segments;
  std::vector<std::pair<std::int64_t, std::int64_t>> divisions;  // MiB (a power of two), divisions
};

// The text's settings, overridden by the fields. A note for each thing that makes no sense; that is then ignored.
AllocatorSettings settings_of(const SnapshotSettings& recorded, std::vector<std::string>& notes);

}  // namespace memwall
