// The memory snapshots among the real captures, and ways to cut and damage a recording.
#pragma once

#include <optional>
#include <string>

#include "models/workload/import/snapshot/snapshot_reader.h"
#include "models/workload/memory/recording_replay.h"
#include "tests/support/shared_data.h"

namespace memwall {

inline constexpr const char* kFromEmpty = "lm_small_ctx100_train_from_empty.pickle";
inline constexpr const char* kMedium128 = "lm_medium_ctx128_train.pickle";
inline constexpr const char* kMedium256 = "lm_medium_ctx256_train.pickle";
inline constexpr const char* kExpandable = "lm_xl_ctx128_forward_expandable.pickle";

// Nothing where the captures are absent.
inline std::optional<MemoryRecording> shared_snapshot(const std::string& name) {
  const auto data = shared_data();
  if (!data) return std::nullopt;
  const auto path = *data / "traces" / "snapshots" / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_snapshot(path);
}

// As a ring buffer that lost its first `events` would have it.
inline DeviceRecording without_first(const DeviceRecording& device, std::size_t events) {
  DeviceRecording cut = device;
  cut.events.erase(cut.events.begin(), cut.events.begin() + static_cast<std::ptrdiff_t>(events));
  return cut;
}

inline RecordingReplay replay_found(const MemoryRecording& recording, const DeviceRecording& device,
                                    bool look_ahead = true) {
  return replay_as_recorded(recording, device, find_start_state(device, recording.settings, look_ahead));
}

}  // namespace memwall
