// The largest batch at which a plan keeps to a budget, and of those tried the one with the most samples per second.
#pragma once

#include <string>

#include "study/largest_batch.h"
#include "study/step_advice.h"

namespace memwall {

// One size with a plan that was searched for.
struct PlannedBatch {
  Scenario scenario;   // at that size, without the plan
  BatchProbe probe;    // with the plan
  std::string policy;  // of the plan
};

struct BatchAdvice {
  LargestBatch found;  // each size with the first plan that keeps to the budget (search=0)
  std::string given_budget;  // as it was asked for; "" = the whole device
  Bytes budget = 0;
  bool is_cut_short = false;  // sizes between the largest that fits and the smallest that does not were not all tried
  PlannedBatch largest, fastest;  // samples 0 where nothing fits
};

// Throws UsageError where the scenario sets the batch, or the request lays the step out over ranks, and as Study::run.
BatchAdvice advise_batch(Study& study, const AdviceRequest& request, Watch* watch = nullptr);

}  // namespace memwall
