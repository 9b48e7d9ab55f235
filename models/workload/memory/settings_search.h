// The sensible settings of PYTORCH_ALLOC_CONF, each tried on a recording and ranked.
//
// What lives at the start is allocated anew for every row, the recorded settings' too, so that all begin alike. Two
// rows are no settings and say so in their names: offsets planned ahead, and the least that any plan needs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/workload/memory/recording_replay.h"

namespace memwall {

struct SearchRow {
  std::string name;       // the text for PYTORCH_ALLOC_CONF ("" = default), or the name of another allocator
  ReplayVariant variant;  // allocator "planned": not for replay_variant
  Bytes peak_reserved = 0, peak_allocated = 0, missing = 0;
  std::int64_t retries = 0, device_allocs = 0, device_frees = 0;
};

// Fits first, then by peak reserved, retries, device calls, name. `capacity` as in ReplayVariant. `progress`: share
// done.
std::vector<SearchRow> search_settings(const MemoryRecording& recording, const DeviceRecording& device,
                                       const StartState& start, Bytes capacity,
                                       const std::function<void(double)>& progress = {});

}  // namespace memwall
