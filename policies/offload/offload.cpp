// Planned offload: what a step does not need on the GPU for a while waits on the host, on NVMe, on
// a peer GPU or in another tier of the machine. Rhu et al. 2016 (vDNN) for activations, Ren et al. 2021 (ZeRO-Offload)
// for the optimizer, Rajbhandari et al. 2021 (ZeRO-Infinity) for parameters and NVMe.
#include <algorithm>
#include <optional>

#include "policies/offload/offload_adam.h"
#include "policies/offload/offload_residency.h"
#include "policies/offload/offload_settings.h"
#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

using Part = Trace(const Trace&, const Machine&, const Pricer&, const OffloadSettings&);

class Offload : public Rewriter {
 public:
  explicit Offload(const PolicyArguments& arguments) : settings_(offload_settings(arguments)) {}

  RewriterKind kind() const override { return RewriterKind::offload; }

  Knowledge needs() const override {
    Knowledge knowledge;
    knowledge.allocations = true;
    knowledge.dataflow = true;
    return knowledge;
  }

  // The optimizer goes first: it decides whether gradients come back and who updates parameters.
  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    const OffloadSettings settings = settings_on(machine, settings_);
    std::optional<Trace> result;
    const auto offload = [&](bool wanted, Part* part, const char* what = nullptr) {
      if (wanted) result = part(result ? *result : trace, machine, pricer, settings);
      if (result && what != nullptr) require_something_left(trace, *result, what);
    };
    offload(settings.optimizer, settings.cpu_adam ? offload_optimizer_to_cpu : stream_optimizer_states);
    offload(settings.gradients, offload_gradients, "gradients");
    offload(settings.parameters, offload_parameters, "parameters");
    offload(settings.activations, offload_activations, "activations");
    return result ? *std::move(result) : trace;
  }

 private:
  // Two offloads may share what there is (fraction=0.5 to the host, the rest to a peer). Where the first has
  // taken everything, the second contradicts it: the order of their texts would decide who wins.
  static void require_something_left(const Trace& before, const Trace& after, const std::string& what) {
    const auto says = [&](const std::string& note, const std::string& number) {
      return note.starts_with("offload: " + number) && note.find(" " + what + " of ") != std::string::npos;
    };
    const bool nothing = std::any_of(after.notes.begin() + static_cast<std::ptrdiff_t>(before.notes.size()),
                                     after.notes.end(), [&](const std::string& note) { return says(note, "0 "); });
    const bool earlier =
        std::any_of(before.notes.begin(), before.notes.end(), [&](const std::string& note) { return says(note, ""); });
    if (nothing && earlier)
      throw UsageError("Policy 'offload': an earlier offload has moved all " + what +
                       "; nothing is left for the second. Give it once, or the first a fraction=.");
  }

  OffloadSettings settings_;
};

const RegisterPolicy registered{
    {"offload",
     "moves activations, optimizer states, gradients or parameters to the host, NVMe, a peer GPU or another tier while "
     "they rest",
     offload_parameters(),
     [](const PolicyArguments& arguments) { return std::make_unique<Offload>(arguments); },
     {}}};

}  // namespace
}  // namespace memwall
