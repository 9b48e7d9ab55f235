// What a torch.cuda.memory snapshot holds: the calls of the caching allocator in order, and the segments at its end.
//
// Texts, frames and stacks are stored once and named by number. Streams are numbered: 0 is the default stream, the
// others by their pointers, in whose order the allocator releases what they cached.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/memory/allocator.h"
#include "sim/memory/allocator_settings.h"
#include "sim/trace/storage.h"

namespace memwall {

using StackId = std::uint32_t;  // index into MemoryRecording::stacks; 0 = no frames

struct SourceFrame {
  StringId function = 0, file = 0;
  std::int32_t line = 0;
  bool operator==(const SourceFrame&) const = default;
};

// One entry of device_traces.
struct MemoryEvent {
  enum class Action : std::uint8_t {
    alloc,           // size: as requested
    free_requested,  // the host freed it; another stream may still use it
    free_completed,  // it can be handed out again
    segment_alloc,   // cudaMalloc
    segment_free,
    segment_map,  // pages of an expandable segment
    segment_unmap,
    oom,       // size: the rounded request; address: free bytes of the device
    snapshot,  // a marker
    other      // known to a newer PyTorch; the note of the recording names it
  };
  Address address = 0;
  Bytes size = 0;
  std::int64_t time_us = 0;  // Unix epoch, us; 0 where the recording has no times
  StackId stack = 0;
  std::uint16_t stream = 0;
  Action action = Action::other;
};
std::string_view to_string(MemoryEvent::Action action);  // "alloc", ..., as PyTorch writes them

struct RecordedBlock {
  enum class State : std::uint8_t { allocated, pending, inactive };
  Address address = 0;  // summed from the segment's where the file (an old one) has none
  Bytes size = 0;
  Bytes requested = 0;  // of an inactive block: a stale number
  StackId stack = 0;    // where it was allocated, if known
  State state = State::inactive;
};

struct RecordedSegment {
  Address address = 0;
  Bytes size = 0;  // of an expandable one: one contiguous mapped range
  std::uint16_t stream = 0;
  bool small_pool = false, expandable = false;
  std::array<std::int64_t, 2> pool{};  // segment_pool_id; (0, 0) = the default pools
  StackId stack = 0;
  std::vector<RecordedBlock> blocks;  // ascending
};

struct DeviceRecording {
  int device = 0;
  std::vector<MemoryEvent> events;
  std::vector<RecordedSegment> segments;  // at the end, by address
};

// "ProfilerStep#3 starts here": external_annotations of the file.
struct MemoryAnnotation {
  std::string stage;  // "START", "END", or what the file says
  std::string name;
  int device = 0;
  std::int64_t time_us = 0;
};

struct MemoryRecording {
  std::vector<DeviceRecording> devices;  // those that have events or segments, by number
  std::vector<std::string> strings;      // [0] = ""
  std::vector<SourceFrame> frames;
  std::vector<std::vector<std::uint32_t>> stacks;  // indices into frames, innermost first; [0] = empty
  AllocatorSettings settings;
  std::string settings_text;  // PYTORCH_CUDA_ALLOC_CONF as the file has it
  std::vector<MemoryAnnotation> annotations;
  bool has_times = true;
  std::vector<std::string> notes;  // sentences: what was missing, unknown or ignored
};

}  // namespace memwall
