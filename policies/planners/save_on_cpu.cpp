// What autograd saves goes to the host right away, and comes back when backward asks for it.
//
// PyTorch 2.x, torch.autograd.graph.save_on_cpu(pin_memory=...): a name for settings of the policy `offload`.
//   pin_memory=1  the copy out is made on the compute stream and blocks the host; the copy back, on that stream, too,
//                 does not.
//   pin_memory=0  both copies block the host, to and from memory that is not page-locked.
// There is no prefetch. Left out: PyTorch copies what is saved by several operators once for each, and parameters
// that operators save, too, which stay on the device nonetheless; here each storage is copied once, and parameters are
// not. So the real one copies more, and its step is longer.
#include <memory>
#include <string>

#include "policies/planners/host_transfer.h"
#include "policies/planners/planner.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kAllActivations = "offload:what=activations,to=host,min_bytes=0,inputs=1";

// The sentence of a refusal, in the name that was asked for.
std::string in_own_name(std::string sentence) {
  const std::string other = "Policy 'offload'";
  if (sentence.starts_with(other)) sentence.replace(0, other.size(), "Policy 'save_on_cpu'");
  return sentence;
}

MemoryPlan offloaded(const StepProfile& profile, const Machine& machine, const Pricer& pricer, bool pinned) {
  const std::string call = std::string(kAllActivations) + (pinned ? ",stream=compute" : ",pinned=0");
  try {
    const PolicySpec offload = parse_policy(call);
    return offload.info->make_rewriter(offload.arguments)->memory_plan(profile.trace(), machine, pricer).value();
  } catch (const UsageError& error) {
    throw UsageError(in_own_name(error.what()));
  }
}

const RegisterPlanner registered_save_on_cpu{
    {.name = "save_on_cpu",
     .sentence = "sends what autograd saves to the host at once, and back when it is asked for (torch.autograd.graph)",
     .heeds_budget = false,
     .parameters = {flag("pin_memory", false, "1: page-locked memory of the host, and copies back do not block it.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const bool pinned = arguments.flag("pin_memory");
       return [pinned](const StepProfile& profile, const Budget&, const Machine& machine, const Pricer& pricer) {
         require_host("save_on_cpu", machine);
         return offloaded(profile, machine, pricer, pinned);
       };
     }}};

}  // namespace
}  // namespace memwall
