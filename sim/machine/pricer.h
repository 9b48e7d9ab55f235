// What would this cost on that machine? Rewriters ask; models/hw answers.
#pragma once

#include <cmath>
#include <string>

#include "sim/trace/op.h"
#include "sim/trace/process_group.h"
#include "sim/units.h"

namespace memwall {

// How far from a price the truth may be: 90 % of measurements lie within price x (1 +- residual). 0 = not known.
struct Spread {
  double residual = 0;
};

class Pricer {
 public:
  virtual ~Pricer() = default;
  // Kernels from their FLOPs, HBM bytes, data type, operator class and number (all in `op`) and, where
  // known, from the shape of the work (see Op::shape; empty = unknown).
  virtual Duration kernel(const Op& op, const Shape& shape) const = 0;
  Duration kernel(const Op& op) const { return kernel(op, Shape()); }
  // Of that price. Errors are taken as common to the ops of one class, and as independent between classes.
  virtual Spread spread(const Op&, const Shape&) const { return {}; }
  // One transfer alone, latency included. Throws UsageError if the machine has no such route.
  virtual Duration copy(const std::string& from, const std::string& to, Bytes bytes, bool pageable) const = 0;
  // A collective over `ranks`; `bytes` is the size of the whole (gathered) message.
  virtual Duration collective(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const = 0;
  // Likewise in a group: where its members sit decides which links they use, and so the price. Where they are not known
  // they are taken for ranks 0, 1, 2, ...
  virtual Duration collective(CollectiveKind kind, Bytes bytes, const ProcessGroup& group) const {
    return collective(kind, bytes, group.ranks);
  }
  // Bytes that one rank puts on the wire for it (ring: all-gather (N-1)/N * S, all-reduce 2(N-1)/N * S).
  virtual Bytes wire_bytes(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const = 0;
  // The whole message, of which one rank sends `sent` in a ring: what captures count in Op::bytes. 0 = not known.
  virtual Bytes message_bytes(CollectiveKind kind, Bytes sent, std::uint32_t ranks) const {
    constexpr Bytes kUnit = Bytes{1} << 40;
    const auto share = static_cast<double>(wire_bytes(kind, kUnit, ranks)) / static_cast<double>(kUnit);
    return share > 0 ? std::llround(static_cast<double>(sent) / share) : 0;
  }
  // CPU work bound by host DRAM: optimizer step, casts.
  virtual Duration host_memory_work(Bytes dram_bytes) const = 0;
  // Work on data where it lies, in the memory of a tier: of one with compute the longer of FLOPs / compute and bytes /
  // bandwidth; else by the CPU, no faster than the way there. As host_memory_work in the host's (and for a device's)
  // memory, and wherever a pricer knows of no tiers.
  virtual Duration memory_work(const std::string& /*tier*/, Bytes bytes, double /*flops*/) const {
    return host_memory_work(bytes);
  }
  // What `measured` takes as `changed` (FLOPs, bytes, type, class): measured x predicted(new) / predicted(old).
  // Where nothing is known of the old work there is no ratio: the price of the new.
  virtual Duration scaled(const Op& measured, const Shape& old_shape, const Op& changed,
                          const Shape& new_shape) const = 0;
  Duration scaled(const Op& measured, Bytes new_bytes, double new_flops) const {
    Op changed = measured;
    changed.bytes = new_bytes;
    changed.flops = new_flops;
    return scaled(measured, Shape(), changed, Shape());
  }
};

}  // namespace memwall
