#include "models/workload/generate/parallel/pipeline_messages.h"

#include <algorithm>
#include <cassert>

namespace memwall {
namespace {

constexpr std::string_view kNames[] = {"c10d::send", "c10d::recv_", "c10d::batch_isend_irecv"};

std::vector<std::uint32_t> pair_of(const ParallelJob& job, std::int64_t a, std::int64_t b) {
  std::vector<std::uint32_t> members{job.number(a), job.number(b)};
  std::sort(members.begin(), members.end());
  return members;
}

}  // namespace

// Batched calls are on the stream of the pipeline's group; others get one per pair of ranks (PyTorch's process group).
PipelineMessages::PipelineMessages(Tape& tape, const ParallelJob& job, std::int64_t rank)
    : tape_(tape), job_(job), rank_(rank) {
  const std::int64_t ranks = job.pipeline.ranks;
  if (ranks == 1) return;
  const bool interleaved = job.pipeline.chunks > 1;
  const bool apart = interleaved || job.recipe.parallel.framework == ParallelFramework::deepspeed;
  drains_ = !interleaved && job.recipe.parallel.framework == ParallelFramework::megatron;
  const std::int64_t next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  const std::uint16_t first = tape.builder().add_stream("pipeline", StreamRole::communication);
  const std::uint16_t other = apart ? tape.builder().add_stream("pipeline, other peer", StreamRole::communication) : first;
  next_ = std::make_unique<Communicator>(tape, "pipeline", pair_of(job, rank, next), first);
  previous_ = std::make_unique<Communicator>(tape, "pipeline", pair_of(job, previous, rank), other);
}

// Of two ranks each direction has a stream: from the even to the odd one the first, the other way the second.
Communicator& PipelineMessages::group_of(const PipelineMessage& m, bool send) {
  const bool interleaved = job_.pipeline.chunks > 1;
  if (job_.pipeline.ranks == 2 && interleaved) return (rank_ % 2 == 0) == send ? *next_ : *previous_;
  return m.backward != send ? *next_ : *previous_;
}

// The rendezvous of a message; a call that sends one and receives another from the same peer has the forward one's.
void PipelineMessages::append(const std::vector<PipelineTransfer>& transfers) {
  const auto number = [this](const PipelineMessage& m) {
    return static_cast<std::uint32_t>(2 * (m.stage * job_.pipeline.microbatches + m.microbatch) + (m.backward ? 1 : 0));
  };
  std::vector<const Tensor*> reads, writes;
  const PipelineTransfer* named = &transfers.front();
  Bytes sent = 0;
  for (const PipelineTransfer& t : transfers) {
    (t.send ? reads : writes).push_back(&t.tensor);
    if (t.send) sent += t.tensor.bytes();
    if (!t.message.backward) named = &t;
  }
  Communicator::Collective what;
  what.kind = CollectiveKind::send_receive;
  what.name = transfers.size() > 1 ? kNames[2] : kNames[transfers.front().send ? 0 : 1];
  what.message = sent;
  what.type = transfers.front().tensor.type;
  what.rendezvous = number(named->message);
  group_of(named->message, named->send).start(what, reads, writes);
}

void PipelineMessages::exchange(const std::vector<PipelineTransfer>& transfers) {
  if (transfers.empty()) return;
  append(transfers);
  group_of(transfers.front().message, transfers.front().send).wait();
  if (!drains_) return;
  Op op;
  op.kind = OpKind::synchronize;
  op.wait_for = WaitFor::device;
  tape_.append(op, "cudaDeviceSynchronize", {}, {});
}

// communicate with overlap_p2p_comm (_p2p_ops): even ranks send to the next first, odd ones receive from the previous.
PipelineMessages::Events PipelineMessages::start(const std::vector<PipelineTransfer>& transfers) {
  const bool even = rank_ % 2 == 0;
  const auto place = [even](const PipelineTransfer& t) {
    const int kind = t.message.backward ? (t.send ? 2 : 3) : (t.send ? 0 : 1);
    return even ? kind : kind ^ 1;
  };
  std::vector<std::size_t> order(transfers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place(transfers[a]) < place(transfers[b]); });
  Events events(transfers.size());
  for (const std::size_t i : order) {
    append({transfers[i]});
    Op op;
    op.kind = OpKind::event_record;
    op.target = events[i] = tape_.builder().add_event();
    op.stream = group_of(transfers[i].message, transfers[i].send).stream();
    tape_.append(op, "", {}, {});
  }
  return events;
}

void PipelineMessages::wait(const Events& events) {
  for (const std::uint32_t event : events) {
    Op op;
    op.kind = OpKind::event_wait;
    op.target = event;
    op.stream = 0;
    tape_.append(op, "", {}, {});
  }
}

std::uint32_t PipelineMessages::first_free_rendezvous() const {
  return static_cast<std::uint32_t>(2 * job_.pipeline.ranks * job_.pipeline.chunks * job_.pipeline.microbatches);
}

}  // namespace memwall
