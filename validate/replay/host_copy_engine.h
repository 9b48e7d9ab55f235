// A copy engine of the host back end: one direction, one transfer at a time, in the order in which they became
// ready, whatever their streams.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "validate/replay/host_computer.h"

namespace memwall {

// From when to when a transfer had its engine.
struct EngineSpan {
  std::chrono::steady_clock::time_point start, end;
};

class HostCopyEngine {
 public:
  // A real memcpy on the calling thread in pieces, none of which is finished before
  // start + latency + its last byte / bytes_per_second. Rate 0: as fast as memcpy.
  EngineSpan copy(void* to, const void* from, Bytes bytes, double bytes_per_second, Duration latency, CoreGate& gate);
  // Any other transfer that must have the engine to itself; exceptions of `work` pass, the engine is free then.
  EngineSpan run(const std::function<void(std::chrono::steady_clock::time_point start)>& work);

 private:
  std::atomic<std::uint64_t> next_{0}, served_{0};
};

}  // namespace memwall
