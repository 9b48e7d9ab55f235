// What may make a step fit that does not: a few changes that people try first, each simulated like the step itself.
//
// On the same GPU: allocator settings, checkpointing, offload of activations (the least part that is enough, and all)
// and of the optimizer, the planners rotor and capuchin. Else: half the batch, ZeRO over the GPUs of a node. Where none
// does alone on the same GPU and batch, several together, parameters offloaded, too. Policies that refuse the step are
// left out, as is what the scenario has already. Of steps of more than kOpsTriedUnasked ops nobody asks.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "study/scenario.h"
#include "traces/run/run.h"

namespace memwall {

// Best first: what fits on the same GPU by step time (of equally fast ones what leaves most memory first), then what
// fits otherwise, then what comes nearest; at most six.
// `refused`: the run of `scenario`. `run_changed`: simulates a scenario; what it throws as UsageError is left out.
// Nothing where a pager decides or memory was not recorded. REQUIRES: !refused.result.fits.
std::vector<TriedChange> try_remedies(const Run& refused, const Scenario& scenario,
                                      const std::function<Run(const Scenario&)>& run_changed);

}  // namespace memwall
