// Planned offload: what a step does not need on the GPU for a while waits on the host, on NVMe, on
// a peer GPU or in another tier of the machine. Rhu et al. 2016 (vDNN) for activations, Ren et al. 2021 (ZeRO-Offload)
// for the optimizer, Rajbhandari et al. 2021 (ZeRO-Infinity) for parameters and NVMe.
#include <optional>

#include "policies/offload/offload_adam.h"
#include "policies/offload/offload_residency.h"
#include "policies/offload/offload_settings.h"
#include "policies/plan/plan_writer.h"
#include "policies/plan/staging_copies.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

using Part = OffloadedStep(const Trace&, const Machine&, const Pricer&, const OffloadSettings&);

class Offload : public Rewriter {
 public:
  explicit Offload(const PolicyArguments& arguments) : settings_(offload_settings(arguments)) {}

  // Behind what is re-run. The optimizer goes first: it decides whether gradients come back and who updates parameters.
  // So it does where each has a policy of its own.
  int precedence() const override {
    return settings_.optimizer ? 1 : settings_.gradients ? 2 : settings_.parameters ? 3 : 4;
  }

  // How long a step takes is asked of a simulation.
  Knowledge needs() const override { return {.timing = settings_.hides}; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    const OffloadSettings settings = settings_on(machine, settings_);
    std::optional<Trace> result;
    const auto offload = [&](Part* part, StorageKind kind) {
      OffloadedStep step = part(result ? *result : trace, machine, pricer, settings);
      require_something_moved(step, trace, kind);
      result = std::move(step.trace);
    };
    if (restriction() && settings.activations && !(settings.optimizer || settings.gradients || settings.parameters))
      return restricted_activations(trace, machine, pricer, settings);
    if (settings.optimizer && settings.cpu_adam && moved_before(trace, StorageKind::optimizer_state))
      refuse_moved(StorageKind::optimizer_state);
    if (settings.optimizer)
      result = settings.cpu_adam ? offload_optimizer_to_cpu(trace, machine, pricer, settings)
                                 : stream_optimizer_states(trace, machine, pricer, settings).trace;
    if (settings.gradients)
      offload(offload_gradients, StorageKind::gradient);
    else if (settings.optimizer && settings.cpu_adam)
      result = release_sent_gradients(*std::move(result), machine, pricer, settings);
    if (settings.parameters) offload(offload_parameters, StorageKind::parameter);
    if (settings.activations) offload(offload_activations, StorageKind::activation);
    return result ? *std::move(result) : trace;
  }

  // Of activations alone: elsewhere an optimizer moves, too, or homes change.
  std::optional<MemoryPlan> memory_plan(const Trace& trace, const Machine& machine,
                                        const Pricer& pricer) const override {
    if (settings_.optimizer || settings_.gradients || settings_.parameters) return std::nullopt;
    return restricted(restriction(),
                      offload_activations(trace, machine, pricer, settings_on(machine, settings_)).plan.value(), trace,
                      "Policy 'offload'")
        .plan;
  }

  std::optional<NamedOptimizer> named_optimizer(const Machine& machine) const override {
    if (!settings_.optimizer) return std::nullopt;
    const OffloadSettings s = settings_on(machine, settings_);
    return NamedOptimizer{.place = s.to,
                          .through = s.through,
                          .implementation = s.cpu_adam ? "cpu_adam" : "streamed",
                          .pinned = s.pinned,
                          .side_streams = s.side_streams,
                          .near_memory = s.near_memory,
                          .pipeline = s.pipeline,
                          .group_parameters = static_cast<std::uint64_t>(s.group),
                          .prefetch = s.prefetch,
                          .buffers = s.buffers,
                          .staging = s.staging};
  }

 private:
  // What of it some program executes.
  Trace restricted_activations(const Trace& trace, const Machine& machine, const Pricer& pricer,
                               const OffloadSettings& settings) const {
    OffloadedStep step = offload_activations(trace, machine, pricer, settings);
    require_something_moved(step, trace, StorageKind::activation);
    const RestrictedPlan plan = restricted(restriction(), std::move(step.plan).value(), trace, "Policy 'offload'");
    TraceEdit edit(trace, machine.host);
    const WrittenPlan written = write_plan(plan.plan, Dataflow(trace), pricer, edit);
    give_back_reserved(edit);
    Trace result = std::move(edit).apply();
    result.notes.push_back("offload: " + counted_text(plan.plan.storages.size(), "activation") + " go to " +
                           settings.to + "; " + human_bytes(written.bytes_out) + " are copied out, " +
                           human_bytes(written.bytes_in) + " back.");
    if (!plan.note.empty()) result.notes.push_back("offload: " + plan.note);
    return result;
  }

  // Two offloads may share what there is (fraction=0.5 to the host, the rest to a peer). Where the first has
  // taken everything, the second contradicts it: the order of their texts would decide who wins.
  static void require_something_moved(const OffloadedStep& part, const Trace& before, StorageKind kind) {
    if (part.storages == 0 && moved_before(before, kind)) refuse_moved(kind);
  }

  [[noreturn]] static void refuse_moved(StorageKind kind) {
    throw UsageError("Policy 'offload': an earlier offload has moved every " + std::string(to_string(kind)) +
                     "; nothing is left for the second. Give it once, or the first a fraction=.");
  }

  OffloadSettings settings_;
};

const RegisterPolicy registered_offload{
    {.name = "offload",
     .sentence =
         "moves activations, optimizer states, gradients or parameters to the host, NVMe, a peer GPU or another "
         "tier while they rest",
     .kind = PolicyKind::memory_plan,
     .needs = {.allocations = true, .dataflow = true},
     .may_repeat = true,
     .parameters = offload_parameters(),
     .make_rewriter = [](const PolicyArguments& arguments) { return std::make_unique<Offload>(arguments); }}};

}  // namespace
}  // namespace memwall
