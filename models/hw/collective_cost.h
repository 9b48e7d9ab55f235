// How long a collective takes over the fabric that reaches its ranks.
//
//   duration = base + steps * step + wire bytes / (bus bandwidth * efficiency(message) * adapters)
//
//   ring       2 (N-1) steps for an all-reduce, else N-1
//   tree       2 ceil(log2 nodes) steps of this fabric and 2 (ranks of a node - 1) inner ones for an all-reduce, else
//              half of it; all-reduce, broadcast and reduce
//   in_switch  2 steps for an all-reduce (up, down), else 1: the switch adds and copies (NVLink SHARP, "NVLS");
//              all-reduce, reduce-scatter and all-gather
//
// Bandwidths are nccl-tests' bus bandwidths (its doc/PERFORMANCE.md): wire bytes are those of a ring, whatever the
// algorithm. They are those of a group with all GPUs of each node: `adapters` is the share of a node's adapters that
// the group's members have (sim/machine/group_place.h), and a group that goes through nodes is no faster than a ring
// within them. In the switch it is that of the most ranks, and of fewer what leaves each rank's port the same. A send
// takes one adapter; of an all-to-all each rank's part for other nodes leaves by its own adapter while the rest stays
// inside (NCCL issue 267).
//
// Steps follow NCCL src/graph/tuning.cc: where a model has an inner step latency, a ring's steps are those between
// nodes and the rest within them; a node is what the nested fabric reaches. Of the models that fit kind and ranks the
// fastest is taken. Where none fits: of a fabric with a medium and without a measured efficiency what NCCL's tuner
// estimates (nccl_estimate.h), else one ring, all of whose steps are alike.
#pragma once

#include <string>

#include "sim/machine/group_place.h"
#include "sim/machine/machine.h"

namespace memwall {

struct CollectiveCost {
  Duration duration{};
  Bytes sent = 0;       // that one rank puts on the wire
  double residual = 0;  // 90 % of measurements lie within duration x (1 +- residual); 0 = not known
  std::string model;    // "" = the fabric's own ring
};

// Of a message of `bytes` (the whole, gathered one) in a group of this place. Nothing for one rank. Throws UsageError
// where no fabric reaches the group.
CollectiveCost collective_cost(const Machine& machine, CollectiveKind kind, Bytes bytes, const GroupPlace& place);
// Among ranks 0 to `ranks` - 1.
CollectiveCost collective_cost(const Machine& machine, CollectiveKind kind, Bytes bytes, std::uint32_t ranks);

// Bytes that one rank sends of a message in a ring, as a multiple of its size.
double ring_share(CollectiveKind kind, double ranks);

}  // namespace memwall
