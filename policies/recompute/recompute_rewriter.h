// The rewriter behind the policies that recompute units: chooses them, plans them, and writes the plan into the trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/recompute/recompute_plan.h"
#include "policies/recompute/unit_choice.h"
#include "sim/policy/rewriter.h"

namespace memwall {

struct RecomputeSettings {
  UnitChoice units;
  RecomputeRules rules;             // but for kept_results, which follow from `save`
  std::vector<std::string> save{};  // operators whose results are kept
};

class RecomputeRewriter : public Rewriter {
 public:
  explicit RecomputeRewriter(RecomputeSettings settings) : s_(std::move(settings)) {}

  Knowledge needs() const override { return {.modules = s_.units.mode == "modules"}; }
  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override;
  std::optional<MemoryPlan> memory_plan(const Trace& trace, const Machine& machine,
                                        const Pricer& pricer) const override;

 private:
  struct Decision {
    RecomputePlan plan;
    std::string hidden{};  // with hides=1: what was found
  };
  Decision decide(const Trace& trace, const Machine& machine, const Pricer& pricer, const Dataflow& flow,
                  const std::vector<Pass>& all) const;
  RestrictedPlan restricted_plan(const Trace& trace, const Dataflow& flow, const RecomputePlan& plan) const;
  // With so many units of every pass, or as many as the settings say.
  RecomputePlan plan_with(const Trace& trace, const Dataflow& flow, const std::vector<Pass>& all,
                          std::optional<std::size_t> units) const;
  void refuse_idle_words(const Trace& trace, const std::vector<Pass>& all) const;
  std::vector<OpId> kept_results(const Trace& trace, const Pass& pass) const;
  void refuse_if_nothing_is_left(const Trace& trace, const RecomputePlan& plan) const;

  RecomputeSettings s_;
};

// Why no unit of the trace can be recomputed by `policy`, whatever its arguments; "" = perhaps some can.
std::string refusal_without_passes(const std::string& policy, const Trace& trace);

}  // namespace memwall
