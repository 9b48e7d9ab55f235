// Which storages an offload takes and when they are on the device: activations between forward and
// backward, gradients between backward and optimizer, parameters and (without a CPU optimizer)
// optimizer states except while ops use them.
#pragma once

#include <optional>

#include "policies/offload/offload_settings.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

struct OffloadedStep {
  Trace trace;
  std::size_t storages = 0;  // that travel; those that stay because a copy would still be in flight are none
  std::optional<MemoryPlan> plan{};  // where the step is what a plan makes of the trace that was given
};

// Each offloads what it names, and throws UsageError if the trace has nothing of the kind (of at least
// settings.min_bytes). Durations come from `pricer`, host costs from `machine`.

// Made in forward, touched again in backward or recompute.
OffloadedStep offload_activations(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                  const OffloadSettings& settings);
// Leave after each backward pass. They come back for the optimizer, or, where a CPU optimizer has
// copied them, not at all.
OffloadedStep offload_gradients(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                const OffloadSettings& settings);
// The gradients that a CPU optimizer has copied give their device memory back once they have arrived. What lives from
// step to step (zero_grad(set_to_none=False)) stays, as does what is used again after it was sent; a note says so.
Trace release_sent_gradients(Trace trace, const Machine& machine, const Pricer& pricer,
                             const OffloadSettings& settings);
// Live far away. Between two touches they stay if no more than `prefetch` other offloaded
// parameters are touched: these would already be on their way (DeepSpeed's reuse distance).
OffloadedStep offload_parameters(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                 const OffloadSettings& settings);
// The same for optimizer states; the step stays on the GPU.
OffloadedStep stream_optimizer_states(const Trace& trace, const Machine& machine, const Pricer& pricer,
                                      const OffloadSettings& settings);

// Do copies that a policy added move storages of the kind already?
bool moved_before(const Trace& trace, StorageKind kind);

}  // namespace memwall
