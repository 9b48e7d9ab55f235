// A recording's calls, made again: to the caching allocator under the recording's settings, where every placement is
// checked against the file, or to any allocator under other settings or another capacity.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/memory/recording.h"
#include "models/workload/memory/start_state.h"
#include "sim/memory/allocator_statistics.h"
#include "sim/memory/pytorch_allocator.h"

namespace memwall {

// After an event. (traces/run has a MemoryPoint, which knows time: two types of one name would break the program.)
struct MemoryLevels {
  Bytes allocated = 0, reserved = 0, active = 0, requested = 0;
};

struct MemoryTotals {
  Bytes allocated_bytes = 0, reserved_bytes = 0, active_bytes = 0, requested_bytes = 0;
  std::uint64_t segments = 0, blocks = 0;  // blocks: free ones too
};

// One step of the retry sequence of a request.
struct RecordedRetry {
  std::uint32_t event = 0;  // index into DeviceRecording::events
  AllocatorObserver::RetryStep step = AllocatorObserver::RetryStep::device_refused;
  Bytes request = 0;        // bytes asked for
  Bytes bytes = 0;          // see AllocatorObserver::on_retry_step
  Bytes reserved = 0;       // after the step
  Bytes largest_free = 0;   // largest free block of the request's pool and stream, after the step
  Bytes free_in_cache = 0;  // all free bytes of the allocator, after the step
};

struct ReplayCheck {
  std::uint64_t allocs = 0;              // alloc events
  std::uint64_t placements_checked = 0;  // of them, compared with the recorded address
  std::uint64_t placements_equal = 0;
  std::uint64_t segment_allocs_recorded = 0, segment_allocs_equal = 0;  // moment and size; maps too
  std::uint64_t segment_frees_recorded = 0, segment_frees_equal = 0;    // unmaps too
  std::uint64_t final_segments = 0, final_segments_equal = 0;           // of the file; 0 where it has none
  std::uint64_t final_blocks = 0, final_blocks_equal = 0;               // address, size and state
};

struct RecordingReplay {
  std::vector<MemoryLevels> points;  // one per event
  MemoryTotals start, peak, end;     // peak: at the first event of the highest allocated
  std::uint32_t peak_event = 0;      // index into events; the start state is the peak where `peak_at_start`
  bool peak_at_start = false;
  Bytes peak_reserved = 0, peak_active = 0;  // highest of the whole replay
  std::vector<SegmentState> end_segments;
  AllocatorStatistics statistics;
  std::optional<ReplayCheck> check;  // only replay_as_recorded
  std::vector<RecordedRetry> retry_sequence;
  Bytes missing = 0;  // beyond the capacity, at worst; 0 = it fits
  std::vector<std::string> notes;
};

// As it was: recorded settings, segment addresses and releases from the file, start state as found. Everything else is
// computed and compared. Frees of unknown addresses and other contradictions are noted and skipped.
RecordingReplay replay_as_recorded(const MemoryRecording& recording, const DeviceRecording& device,
                                   const StartState& start);

struct ReplayVariant {
  AllocatorSettings settings;
  // A name of make_allocator (sim/memory/allocator.h). Settings apply to pytorch.
  std::string allocator = "pytorch";
  Bytes capacity = Bytes{1} << 60;    // that may be reserved
  std::optional<Bytes> device_total;  // default: capacity; 1 TiB where that is unlimited
  bool start_anew = false;            // what lives at the start is allocated anew in any case: to compare settings
};

// As it would be. Blocks that live at the start keep their places where allocator and settings are the recording's and
// the start state fits the capacity (after releasing what is wholly free); otherwise they are allocated anew, by
// address, and a note says so. Where a request finds no memory, `retry_sequence` tells, `missing` counts, and the
// replay goes on with memory taken as unlimited. Recorded releases are made too.
RecordingReplay replay_variant(const MemoryRecording& recording, const DeviceRecording& device, const StartState& start,
                               const ReplayVariant& variant);

// The segments and blocks after event `event` of the replay as recorded: for a picture of the memory at an instant.
std::vector<SegmentState> segments_after(const MemoryRecording& recording, const DeviceRecording& device,
                                         const StartState& start, std::uint32_t event);

}  // namespace memwall
