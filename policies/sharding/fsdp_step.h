// A step under PyTorch's FSDP, of one of its ranks: what its units' hooks do, in the order of the host.
#pragma once

#include <cstdint>

#include "policies/sharding/fsdp_clipping.h"
#include "policies/sharding/fsdp_layout.h"
#include "policies/sharding/fsdp_precision.h"
#include "policies/sharding/fsdp_settings.h"
#include "policies/sharding/fsdp_units.h"
#include "policies/sharding/zero_analysis.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"

namespace memwall {

struct FsdpSummary {
  std::size_t units = 0;  // with parameters
  NormSums norms;         // of gradients
  std::uint64_t gathers = 0, reduce_scatters = 0, all_reduces = 0;
  Bytes gathers_sent = 0, reduce_scatters_sent = 0, all_reduces_sent = 0;  // by one rank, over the whole trace
  Bytes largest_gather = 0, largest_reduction = 0;                         // buffers
};

// Puts the units' hooks into `edit`, whose base is the trace that all of these describe; after split_update().
// Throws UsageError for an op that uses a parameter where its unit is not gathered.
FsdpSummary apply_fsdp(TraceEdit& edit, const Dataflow& flow, const ZeroAnalysis& analysis, const FsdpUnits& units,
                       const FsdpLayout& layout, const FsdpPrecision& precision, const FsdpSettings& settings,
                       const Pricer& pricer);

}  // namespace memwall
