// A rewriter turns one trace into another before anything is simulated: sharding,
// static checkpointing, planned offload. What it adds are ordinary ops, so the
// result can be saved, read, compared, simulated and executed on a real GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/plan_allocator.h"
#include "sim/policy/plan_cache.h"
#include "sim/policy/plan_realization.h"
#include "sim/policy/plan_restriction.h"
#include "sim/trace/trace.h"

namespace memwall {

class Rewriter {
 public:
  virtual ~Rewriter() = default;
  // What the trace must know with these arguments, beyond what the policy declares (PolicyInfo::needs).
  virtual Knowledge needs() const { return {}; }
  // Of several rewriters of one kind the lower goes first; between equals their texts decide. Of memory plans: 0
  // re-runs ops, what only moves storages is higher.
  virtual int precedence() const { return 0; }
  // A pure function. Added ops have Op::added set and an origin other than measured. A recomputed op
  // is not `added`: it stands in its original's stream, with its original's time, origin and overlap.
  // Appends to Trace::notes what it decided.
  // Throws UsageError with a sentence where the policy has no meaning for this trace.
  virtual Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const = 0;
  // What rewrite() carries out, where that is a memory plan for this trace and nothing else. Throws as rewrite() does.
  virtual std::optional<MemoryPlan> memory_plan(const Trace&, const Machine&, const Pricer&) const {
    return std::nullopt;
  }
  // Of one that moves the optimizer's states off the device: how its step runs then.
  virtual std::optional<NamedOptimizer> named_optimizer(const Machine&) const { return std::nullopt; }
  // From now on its memory plans, those that rewrite() carries out among them, are what this makes of them. Who makes
  // none takes no notice.
  void restrict_plans(PlanRestriction restriction) { restriction_ = std::move(restriction); }
  // From now on its memory plans are simulated with this allocator, where it simulates them.
  void simulate_plans_with(PlanAllocator allocator) { allocator_ = std::move(allocator); }
  // From now on a memory plan that takes long is asked for there before it is made. `key`: what names the trace, the
  // machine, the pricer and all of the above to this cache.
  void remember_plans_in(PlanCache cache, std::string key) {
    plan_cache_ = std::move(cache);
    key_ = std::move(key);
  }

 protected:
  const PlanRestriction& restriction() const { return restriction_; }
  const PlanAllocator& allocator() const { return allocator_; }
  std::shared_ptr<const MadePlan> remembered(const std::function<MadePlan()>& make) const {
    return plan_cache_ ? plan_cache_(key_, make) : std::make_shared<const MadePlan>(make());
  }

 private:
  PlanRestriction restriction_;
  PlanAllocator allocator_;
  PlanCache plan_cache_;
  std::string key_;
};

}  // namespace memwall
