// Memory recordings made by hand, call by call: what a test of the memory study replays and explains.
//
//   RecordingBuilder b;
//   const StackId forward = b.stack({{"forward", "model.py", 10}, {"main", "train.py", 3}});
//   const Address x = b.alloc(MiB(4), forward);
//   b.free(x, forward);
//   tabulate_allocations(b.recording(), b.device(), {});
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/workload/memory/recording.h"

namespace memwall {

class RecordingBuilder {
 public:
  struct Frame {
    std::string function, file;
    int line = 0;
  };

  RecordingBuilder() {
    recording_.strings.emplace_back();
    recording_.stacks.emplace_back();
    recording_.devices.emplace_back();
  }

  // Innermost first. Every call makes a new stack.
  StackId stack(const std::vector<Frame>& frames) {
    std::vector<std::uint32_t> ids;
    for (const Frame& frame : frames) {
      ids.push_back(static_cast<std::uint32_t>(recording_.frames.size()));
      recording_.frames.push_back({text(frame.function), text(frame.file), frame.line});
    }
    recording_.stacks.push_back(std::move(ids));
    return static_cast<StackId>(recording_.stacks.size() - 1);
  }

  // At an address never used before, and the next event one microsecond later.
  Address alloc(Bytes requested, StackId stack = 0, std::uint16_t stream = 0) {
    const Address address = next_;
    next_ += static_cast<Address>((requested + 511) / 512 * 512 + 512);
    event(MemoryEvent::Action::alloc, address, requested, stack, stream);
    sizes_.emplace_back(address, requested);
    return address;
  }
  // Both halves of a free, the size as it was allocated.
  void free(Address address, StackId stack = 0, std::uint16_t stream = 0) {
    Bytes size = 0;
    for (const auto& [at, requested] : sizes_)
      if (at == address) size = requested;
    event(MemoryEvent::Action::free_requested, address, size, stack, stream);
    event(MemoryEvent::Action::free_completed, address, size, stack, stream);
  }
  void event(MemoryEvent::Action action, Address address, Bytes size, StackId stack = 0, std::uint16_t stream = 0) {
    MemoryEvent event;
    event.action = action;
    event.address = address;
    event.size = size;
    event.stack = stack;
    event.stream = stream;
    event.time_us = time_us_++;
    device().events.push_back(event);
  }
  // At the time of the next event.
  void annotate(const std::string& stage, const std::string& name) {
    recording_.annotations.push_back({stage, name, device().device, time_us_});
  }

  // The number of the next event.
  std::uint32_t now() { return static_cast<std::uint32_t>(device().events.size()); }
  MemoryRecording& recording() { return recording_; }
  DeviceRecording& device() { return recording_.devices.front(); }

 private:
  StringId text(const std::string& value) {
    for (std::size_t i = 0; i < recording_.strings.size(); ++i)
      if (recording_.strings[i] == value) return static_cast<StringId>(i);
    recording_.strings.push_back(value);
    return static_cast<StringId>(recording_.strings.size() - 1);
  }

  MemoryRecording recording_;
  std::vector<std::pair<Address, Bytes>> sizes_;
  Address next_ = Address{1} << 30;
  std::int64_t time_us_ = 1'000'000;
};

}  // namespace memwall
