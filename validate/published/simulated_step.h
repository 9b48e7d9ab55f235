// A published row's step, simulated: in full, or, where a model is divided and its step is long, by what its first few
// micro-batches say (grown_steps.h).
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "sim/trace/shared_trace.h"
#include "validate/published/grown_steps.h"
#include "validate/published/published.h"

namespace memwall {

// Steps of one job, written down once for all constants that it is simulated with.
class WrittenSteps {
 public:
  SharedTrace of(const TrainingJob& job);

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, SharedTrace> steps_;
};

// Is its model divided over several GPUs, by layers or within them?
bool is_divided(const PublishedCase& one);

// With the row's batch, or the first of its `batches` that fits. Throws UsageError where generators or policies refuse
// it.
SimulatedStep simulated(const PublishedCase& one, WrittenSteps& steps, GrownSteps& grown);

}  // namespace memwall
