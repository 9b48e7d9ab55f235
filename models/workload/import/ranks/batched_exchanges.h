// A captured batch of sends and receives in the trace of its rank: one op per kernel of other ranks that it exchanges
// with (sim/trace/batched_sends.h), where these are several. What it exchanges with ranks that are absent, or that have
// no such message, is one op more, which keeps the captured duration of the kernel.
// Internal to ranks/.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/ranks/collective_rendezvous.h"
#include "models/workload/import/timed/rank_capture.h"
#include "sim/trace/batched_sends.h"

namespace memwall {

// A collective of a rank as it meets others.
struct MetKernel {
  OpId op = kNoOp;
  std::vector<PeerExchange> exchanges;  // at least one
};

// Of the collectives of a capture those that meet others, ascending by op. `rank`: its index into the captures.
// REQUIRES: `found` is of captures of which this is one.
std::vector<MetKernel> met_kernels(const RankCapture& capture, const CollectiveMatches& found, std::uint32_t rank);

// The rank's program with them: what meets one other gets its rendezvous and duration, what meets several becomes
// several ops, on streams that are added to the trace. REQUIRES: ops of `kernels` are collectives of the trace, and
// none of a CUDA graph, where they are batches.
Trace with_rendezvous(Trace trace, const std::vector<MetKernel>& kernels);

}  // namespace memwall
