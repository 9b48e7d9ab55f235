// Blocks that the host has freed while other streams may still use them: which streams, and when they are through.
//
// As PyTorch does it: at the free an event is recorded on every stream that the block was used on; each stream has a
// queue of (event, block), and only the front is asked for, so that a slow stream holds up nobody but its own queue.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/memory/stream_events.h"

namespace memwall {

class DeferredFrees {
 public:
  // `events`: not owned; null = no event is ever complete, only a synchronization frees.
  explicit DeferredFrees(StreamEvents* events) : events_(events) {}

  // `stream` uses the block too. What a graph under capture uses is done when the capture ends.
  void use(std::uint32_t block, std::uint16_t stream, bool capturing);
  // The host freed a block that was used on other streams.
  void add(std::uint32_t block, bool capturing);
  // No capture is underway any more: the blocks that nothing but captured graphs used, appended to `ready`.
  void end_capture(std::vector<std::uint32_t>& ready);
  // The host freed a block; only complete() or a synchronization says that it can be reused.
  void hold(std::uint32_t block);
  // True if the block was held; it no longer is.
  bool complete(std::uint32_t block);
  // Is there anything that poll() could find?
  bool waiting() const { return !queues_.empty() || !after_capture_.empty(); }
  // The blocks that can be reused now, in order, appended to `ready`. REQUIRES: no capture is underway.
  void poll(std::vector<std::uint32_t>& ready);
  // Waits for everything. REQUIRES: no capture is underway.
  void synchronize(std::vector<std::uint32_t>& ready);

 private:
  struct Uses {
    std::vector<std::uint16_t> streams, captured;  // each stream once, in the order of first use
    std::uint32_t outstanding = 0;                 // events
  };

  struct Held {
    std::uint64_t order = 0;  // of the frees
    std::uint32_t block = 0;
  };

  void record_events(std::uint32_t block);
  void leave_capture();
  void count_event(std::uint32_t block, std::vector<std::uint32_t>& ready);

  StreamEvents* events_;
  std::unordered_map<std::uint32_t, Uses> uses_;                                         // by block
  std::map<std::uint16_t, std::deque<std::pair<std::uint64_t, std::uint32_t>>> queues_;  // by stream; never empty ones
  std::vector<std::uint32_t> after_capture_;  // freed during a capture: their events are recorded after it
  std::vector<Held> held_;
  std::uint64_t holds_ = 0;                   // ever
  std::vector<std::uint32_t> place_in_held_;  // by block
};

}  // namespace memwall
