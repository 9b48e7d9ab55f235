// Fusion until nothing more merges.
#pragma once

#include <cstddef>
#include <string>

#include "policies/fusion/fusion_plan.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

struct MergedChains {
  Trace trace;
  std::size_t ops = 0, into = 0;  // what was merged; kernels that it became
  std::size_t vanished = 0;       // intermediates that never reach memory
  Bytes vanished_bytes = 0;
};

// Merging moves ops, which may let others meet: in rounds, each time there are fewer.
MergedChains with_merged_chains(const Trace& trace, const FusionRules& rules, const HostCosts& host,
                                const Pricer& pricer);

// "12 ops became 4; 6 intermediates (3.0 MB) never reach memory; kernels 20 -> 12, their traffic ..., their time ...".
std::string merged_text(const Trace& before, const MergedChains& merged);

}  // namespace memwall
