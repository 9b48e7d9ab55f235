// What an offload is asked to do, read from the policy's arguments and checked against each other
// and against the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/registry.h"

namespace memwall {

struct OffloadSettings {
  bool activations = false, optimizer = false, gradients = false, parameters = false;
  std::string to;      // tier: "host", "nvme", "peer_hbm", or another of the machine
  std::string via;     // "auto", "none", or the tier that copies are staged in on their way
  bool pinned = true;  // host memory page-locked; false: every copy blocks the host
  // Copies run on streams of their own, beside the compute stream. False: in the compute stream itself, and a
  // copy that leaves blocks the host, as in PyTorch's save_on_cpu; always so with pageable memory.
  bool side_streams = true;
  std::uint32_t prefetch = 1;      // how many consuming ops ahead a fetch is issued
  std::uint32_t buffers = 5;       // copies in flight before the oldest one's device memory is waited for
  std::uint32_t staging = 2;       // pinned buffers per direction where copies are staged
  Bytes min_bytes = 0;             // smaller storages stay
  double fraction = 1;             // share of the eligible bytes that goes, in order of first departure
  bool hides = false;              // activations: as many, in that order, as leave the step no longer
  bool inputs = false;             // activations: also storages of kind input
  bool cpu_adam = true;            // optimizer: the step runs on the CPU, or in the tier where that has compute
  bool pipeline = false;           // optimizer on storage: reads and writes overlap the CPU step
  std::int64_t group = 0;          // optimizer on storage: parameters per sub-group
  std::vector<std::string> given;  // keys that are not left to their default

  // From the machine; see settings_on.
  std::string through;                     // where copies are staged on their way; "" = they go straight
  TierClass tier_class = TierClass::host;  // of `to`
  bool near_memory = false;                // the optimizer step runs in `to`, which has compute

  bool is_given(std::string_view key) const;
  // Of a storage at `to`.
  bool pins_memory() const { return tier_class == TierClass::host && pinned; }
  // How copies to `to` are carried out.
  TransferStyle style() const { return {to, through, pinned, side_streams, staging, tier_class}; }
  // Where an optimizer step off the GPU finds gradients and leaves parameters.
  std::string work_tier() const;
};

// The parameters of the policy, for its registration.
std::vector<ParameterInfo> offload_parameters();

// Throws UsageError for an unknown value and for settings that contradict each other.
OffloadSettings offload_settings(const PolicyArguments& arguments);

// The settings with what depends on the machine filled in. Throws UsageError where it lacks the tier or a way to it and
// back, and for settings that contradict what that tier is.
OffloadSettings settings_on(const Machine& machine, OffloadSettings settings);

}  // namespace memwall
