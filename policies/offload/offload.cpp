// Planned offload: what a step does not need on the GPU for a while waits on the host, on NVMe, on
// a peer GPU or in another tier of the machine. Rhu et al. 2016 (vDNN) for activations, Ren et al. 2021 (ZeRO-Offload)
// for the optimizer, Rajbhandari et al. 2021 (ZeRO-Infinity) for parameters and NVMe.
#include "policies/offload/offload_adam.h"
#include "policies/offload/offload_residency.h"
#include "policies/offload/offload_settings.h"
#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

class Offload : public Rewriter {
 public:
  explicit Offload(const PolicyArguments& arguments) : settings_(offload_settings(arguments)) {}

  // The optimizer goes first: it decides whether gradients come back and who updates parameters.
  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    const OffloadSettings settings = settings_on(machine, settings_);
    Trace current = trace;
    if (settings.optimizer)
      current = settings.cpu_adam ? offload_optimizer_to_cpu(current, machine, pricer, settings)
                                  : stream_optimizer_states(current, machine, pricer, settings).trace;
    if (settings.gradients)
      current = something_moved(offload_gradients(current, machine, pricer, settings), trace, StorageKind::gradient);
    if (settings.parameters)
      current = something_moved(offload_parameters(current, machine, pricer, settings), trace, StorageKind::parameter);
    if (settings.activations)
      current =
          something_moved(offload_activations(current, machine, pricer, settings), trace, StorageKind::activation);
    return current;
  }

 private:
  // Two offloads may share what there is (fraction=0.5 to the host, the rest to a peer). Where the first has
  // taken everything, the second contradicts it: the order of their texts would decide who wins.
  static Trace something_moved(OffloadedStep part, const Trace& before, StorageKind kind) {
    if (part.storages == 0 && moved_before(before, kind))
      throw UsageError("Policy 'offload': an earlier offload has moved every " + std::string(to_string(kind)) +
                       "; nothing is left for the second. Give it once, or the first a fraction=.");
    return std::move(part.trace);
  }

  OffloadSettings settings_;
};

const RegisterPolicy registered{
    {.name = "offload",
     .sentence =
         "moves activations, optimizer states, gradients or parameters to the host, NVMe, a peer GPU or another "
         "tier while they rest",
     .kind = PolicyKind::offload,
     .needs = {.allocations = true, .dataflow = true},
     .may_repeat = true,
     .parameters = offload_parameters(),
     .make_rewriter = [](const PolicyArguments& arguments) { return std::make_unique<Offload>(arguments); }}};

}  // namespace
}  // namespace memwall
