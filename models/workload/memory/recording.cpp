#include "models/workload/memory/recording.h"

namespace memwall {

std::string_view to_string(MemoryEvent::Action action) {
  static constexpr std::string_view kNames[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                                "segment_free", "segment_map",    "segment_unmap",  "oom",
                                                "snapshot",     "other"};
  return kNames[static_cast<int>(action)];
}

}  // namespace memwall
