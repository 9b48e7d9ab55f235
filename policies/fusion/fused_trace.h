// Writes a plan of fusion into a trace: each group becomes one op where its last member stood.
//
// The merged op reads what its members read of storages that they do not make, and writes what they make and
// others still use. Allocs and frees of what vanishes go; what the group touches and the program freed before it
// runs is freed right behind it. FLOPs are the members' sum. Bytes are the members' less what no longer moves:
// reads of what a member has made, second reads of one operand, writes of what vanishes. It is one kernel, issued
// as a compiler's code issues it: Dispatch::compiled, without a dispatch of the framework.
#pragma once

#include <span>
#include <vector>

#include "policies/fusion/fusion_plan.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// Host time: of its last member, or, where members were modelled and dispatched by a framework, what the machine's
// file says of compiled calls. Durations: where all members were modelled the price of the merged op; else their sum,
// scaled by that price over the members' prices, and of origin `transferred`. Never more than the members took. The
// merged op is not `added`: it stands in its members' stream, where nothing runs beside it that did not before.
// REQUIRES: `groups` was planned for `trace`.
Trace with_fusion(const Trace& trace, std::span<const FusionGroup> groups, const HostCosts& host, const Pricer& pricer);

}  // namespace memwall
