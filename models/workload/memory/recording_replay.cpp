#include "models/workload/memory/recording_replay.h"

#include <algorithm>

#include "models/workload/memory/recording_player.h"
#include "models/workload/memory/replay_check.h"

namespace memwall {
namespace {

void find_peaks(RecordingReplay& replay) {
  Bytes highest = replay.start.allocated_bytes;
  replay.peak_at_start = true;
  replay.peak_reserved = replay.start.reserved_bytes;
  replay.peak_active = replay.start.active_bytes;
  for (std::size_t i = 0; i < replay.points.size(); ++i) {
    const MemoryLevels& point = replay.points[i];
    replay.peak_reserved = std::max(replay.peak_reserved, point.reserved);
    replay.peak_active = std::max(replay.peak_active, point.active);
    if (point.allocated <= highest) continue;
    highest = point.allocated;
    replay.peak_event = static_cast<std::uint32_t>(i);
    replay.peak_at_start = false;
  }
}

// Blocks are counted at the peak alone, so its state is made once more; counting after every event would cost more.
template <typename MakePlayer>
RecordingReplay replay(const DeviceRecording& device, bool count_at_peak, const MakePlayer& make_player) {
  RecordingReplay replay;
  const auto player = make_player();
  replay.start = player->start_totals();
  player->play(device.events.size());
  replay.end = player->totals();
  replay.end_segments = player->segments();
  player->report(replay);
  find_peaks(replay);
  if (replay.peak_at_start) {
    replay.peak = replay.start;
  } else if (count_at_peak) {
    const auto again = make_player();
    again->play(replay.peak_event + std::size_t{1}, false);
    replay.peak = again->totals();
  }
  return replay;
}

}  // namespace

RecordingReplay replay_as_recorded(const MemoryRecording& recording, const DeviceRecording& device,
                                   const StartState& start) {
  RecordingReplay result =
      replay(device, true, [&] { return std::make_unique<RecordingPlayer>(device, start, recording.settings); });
  check_end(device, result.end_segments, *result.check);
  return result;
}

RecordingReplay replay_variant(const MemoryRecording& recording, const DeviceRecording& device, const StartState& start,
                               const ReplayVariant& variant) {
  return replay(device, true, [&] {
    return std::make_unique<RecordingPlayer>(device, start, recording.settings, variant,
                                             RecordingPlayer::kLongestRetrySequence);
  });
}

std::vector<SegmentState> segments_after(const MemoryRecording& recording, const DeviceRecording& device,
                                         const StartState& start, std::uint32_t event) {
  RecordingPlayer player(device, start, recording.settings);
  player.play(std::min<std::size_t>(device.events.size(), event + std::size_t{1}), false);
  return player.segments();
}

}  // namespace memwall
