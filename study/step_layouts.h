// The same step on several GPUs, laid out in other ways: with ZeRO stages 0 to 3, and of a generated step in other
// micro-batches. All of them train on the same samples per update.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/advised_plan.h"
#include "study/watch.h"

namespace memwall {

struct StepLayout {
  Scenario scenario;                         // its step and policies say all of the below
  std::optional<int> zero_stage;             // none: one GPU
  std::int64_t micro_batch = 0, passes = 0;  // samples per pass, passes per update; 0: as the step is
  std::string refusal;                       // why it cannot be; "" = what follows holds
  AdvisedPlan unplanned;
  Duration bound{};                    // no plan within the budget is faster; 0 = not known
  std::optional<AdvisedPlan> planned;  // absent: it fits without, or is slower without than another one with
  const AdvisedPlan& best() const { return planned ? *planned : unplanned; }
};

// Not simulated yet: `scenario` itself first, then by stage and ever smaller micro-batches. Throws UsageError where the
// scenario decides about ZeRO itself, or holds several ranks' programs. REQUIRES: ranks >= 1.
std::vector<StepLayout> layouts_of(Study& study, const Scenario& scenario, std::uint32_t ranks);

struct LayoutPlanning {
  std::string policy;  // that plans what does not fit
  Bytes budget = 0;
  std::vector<std::string> tiers = {"host"};  // where its storages may wait
  unsigned jobs = 1;                          // threads; the result is the same for any number
};

// Simulates them, and those that do not fit with a plan too, as long as their bound is below the best that was found.
// The best stands first: of what fits the fastest, else what lacks least; what was refused last. Throws UsageError
// where all were refused.
void compare_layouts(Study& study, std::vector<StepLayout>& layouts, const LayoutPlanning& planning);

}  // namespace memwall
