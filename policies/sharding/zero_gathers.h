// Brings parameters together again: after the update in stages 1 and 2, before each use in stage 3.
//
// Stage 3 goes by units: a repeated block ("layers.3", or any module without such a block) where modules
// are known, else a bucket of parameters that are first used one after the other. A execution is a run of ops
// of one unit in one phase (forward, recompute, backward). Before a execution the unit's parameters are
// gathered into storages of their own, after it these are freed; with prefetch the gather leaves when the
// execution before begins. A parameter that a later execution needs is kept instead if less than the reuse
// distance of other parameters is used in between and no update happens. Re-runs of single operators gather what they
// read, and a unit's backward that they interrupt keeps its parameters.
//
// Every parameter is thus gathered twice per step (forward, backward: with the reduce-scatter of
// gradients 3 parameters' worth of traffic). Where the step itself re-runs whole units, a unit's re-run right before
// its backward shares a gather with it; one that stands further away gathers once more, unless the reuse distance spans
// what lies between (GatherSummary::kept_distance). Policies that re-run ops come later and keep to the same rule
// (policies/recompute/rerun_gathers.h); Trace::reuse_distance tells them the setting. Source: Rajbhandari et al. 2020,
// "ZeRO", section 7; Rajbhandari et al. 2021, "ZeRO-Infinity", section 4; deepspeedai/DeepSpeed,
// partitioned_param_coordinator.py.
#pragma once

#include "policies/sharding/zero_analysis.h"
#include "policies/sharding/zero_communication.h"
#include "policies/sharding/zero_partition.h"
#include "policies/sharding/zero_settings.h"
#include "policies/trace/trace_edit.h"

namespace memwall {

struct GatherSummary {
  std::uint64_t gathers = 0, units = 0;
  Bytes bytes_sent = 0;    // by one rank, over the whole trace
  Bytes largest_unit = 0;  // gathered at once
  // A larger reuse distance at which backward would find what a re-run has gathered, and what would be sent then; 0:
  // there is none.
  Bytes kept_distance = 0, kept_bytes_sent = 0;
};

// Stages 1 and 2: once an optimizer step has updated the last parameter of a bucket, it is gathered in
// place. Compute waits after the step's last update. Throws UsageError if no update writes a parameter.
GatherSummary gather_updated(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& messages,
                             const ZeroSettings& settings, const Pricer& pricer);

// Stage 3. After split_update(): the parameters of `edit` are slices.
GatherSummary gather_before_use(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& messages,
                                const ZeroSettings& settings, const Pricer& pricer);

}  // namespace memwall
