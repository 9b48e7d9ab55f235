// What an offload is asked to do, read from the policy's arguments and checked against each other
// and against the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/machine.h"
#include "sim/registry.h"

namespace memwall {

struct OffloadSettings {
  bool activations = false, optimizer = false, gradients = false, parameters = false;
  std::string to;              // tier: "host", "nvme", "peer_hbm"
  bool pinned = true;          // host memory page-locked; false: every copy blocks the host
  // Copies run on streams of their own, beside the compute stream. False: in the compute stream itself, and a
  // copy that leaves blocks the host, as in PyTorch's save_on_cpu; always so with pageable memory.
  bool side_streams = true;
  std::uint32_t prefetch = 1;  // how many consuming ops ahead a fetch is issued
  std::uint32_t buffers = 5;   // copies in flight before the oldest one's device memory is waited for
  std::uint32_t staging = 2;   // pinned host buffers per direction on the way to nvme
  Bytes min_bytes = 0;         // smaller storages stay
  double fraction = 1;         // share of the eligible bytes that goes, in order of first departure
  bool inputs = false;         // activations: also storages of kind input
  bool cpu_adam = true;        // optimizer: the step runs on the CPU
  bool pipeline = false;       // optimizer on nvme: reads and writes overlap the CPU step
  std::int64_t group = 0;      // optimizer on nvme: parameters per sub-group
};

// The parameters of the policy, for its registration.
std::vector<ParameterInfo> offload_parameters();

// Throws UsageError for an unknown value and for settings that contradict each other.
OffloadSettings offload_settings(const PolicyArguments& arguments);

// Throws UsageError where the machine lacks the tier or a route to it and back.
void require_routes(const OffloadSettings& settings, const Machine& machine);

}  // namespace memwall
