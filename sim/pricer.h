// What would this cost on that machine? Rewriters ask; models/hw answers.
#pragma once

#include <string>

#include "sim/op.h"
#include "sim/units.h"

namespace memwall {

class Pricer {
 public:
  virtual ~Pricer() = default;
  // A kernel from its FLOPs, HBM bytes, data type and operator class (all in `op`).
  virtual Duration kernel(const Op& op) const = 0;
  // One transfer alone, latency included. Throws UsageError if the machine has no such route.
  virtual Duration copy(const std::string& from, const std::string& to, Bytes bytes, bool pageable) const = 0;
  // A collective over `ranks`; `bytes` is the size of the whole (gathered) message.
  virtual Duration collective(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const = 0;
  // Bytes that one rank puts on the wire for it (ring: all-gather (N-1)/N * S, all-reduce 2(N-1)/N * S).
  virtual Bytes wire_bytes(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const = 0;
  // CPU work bound by host DRAM: optimizer step, casts.
  virtual Duration host_memory_work(Bytes dram_bytes) const = 0;
  // The op at `new_bytes` and `new_flops`: measured x predicted(new) / predicted(old).
  virtual Duration scaled(const Op& measured, Bytes new_bytes, double new_flops) const = 0;
};

}  // namespace memwall
