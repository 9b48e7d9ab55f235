// A batch of sends and receives with several peers: one call, one kernel (ncclGroupStart ... ncclGroupEnd, PyTorch's
// batch_isend_irecv).
//
// An op belongs to one rendezvous. So a batch is one op per peer: the first on the stream of the batch, each other one
// on a stream of its own, which waits for what stands before the batch, and for which what comes behind it waits. All
// begin when the batch may; each exchange takes its own time from when both sides have begun; the stream goes on when
// all are done, and each peer as soon as its own exchange is, whomever else the batch still waits for. That is how NCCL
// runs it: channels of different peers work beside one another in one kernel. What goes
// beside pays ReplayConstants::event_latency before and behind it, where one kernel pays nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace/trace_builder.h"

namespace memwall {

// What a batch exchanges with one peer, both ways.
struct PeerExchange {
  std::uint32_t rendezvous = kNoRendezvous;  // common with one op of the peer
  std::uint16_t group = 0;                   // into Trace::groups: the two of them
  Bytes bytes = 0;                           // on the wire of this rank
  Duration duration{};                       // alone
};

// Appends the batch to the builder's trace; returns its ops, in the order of the peers. `batch` says what they have in
// common: stream, thread, phase, names, costs on the host, which are of one call. `beside`: streams of the same device
// for the second peer and on, used by nothing but batches of the same stream. `uses`: of the whole batch; the first op
// has them. REQUIRES: at least one peer, as many streams as peers but one.
std::vector<OpId> append_batched_sends(TraceBuilder& builder, Op batch, std::span<const PeerExchange> peers,
                                       std::span<const std::uint16_t> beside, std::span<const Use> uses = {});

}  // namespace memwall
