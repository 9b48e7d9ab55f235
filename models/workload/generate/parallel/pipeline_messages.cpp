#include "models/workload/generate/parallel/pipeline_messages.h"

#include <algorithm>
#include <array>
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
  // Calls that are not batched have a communicator and a stream for each pair of ranks, both ways (ProcessGroupNCCL).
  const bool one_pair = job.pipeline.in_rounds && ranks == 2;
  const bool apart = (interleaved && !one_pair) || job.recipe.parallel.framework == ParallelFramework::deepspeed;
  drains_ = !interleaved && job.recipe.parallel.framework == ParallelFramework::megatron;
  const std::int64_t next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  const std::uint16_t first = tape.builder().add_stream("pipeline", StreamRole::communication);
  const std::uint16_t other = apart ? tape.builder().add_stream("pipeline, other peer", StreamRole::communication) : first;
  next_ = std::make_unique<Communicator>(tape, "pipeline", pair_of(job, rank, next), first);
  previous_ = std::make_unique<Communicator>(tape, "pipeline", pair_of(job, previous, rank), other);
}

// Of two ranks each direction has a stream: from the even to the odd one the first, the other way the second.
Communicator& PipelineMessages::group_of(const PipelineMessage& m, bool send) {
  const bool interleaved = job_.pipeline.chunks > 1 && !job_.pipeline.in_rounds;
  if (job_.pipeline.ranks == 2 && interleaved) return (rank_ % 2 == 0) == send ? *next_ : *previous_;
  return m.backward != send ? *next_ : *previous_;
}

// The rendezvous of a message; a call that sends one and receives another from the same peer has the forward one's.
void PipelineMessages::append(std::span<const PipelineTransfer> transfers) {
  const auto number = [this](const PipelineMessage& m) {
    return static_cast<std::uint32_t>(2 * (m.stage * job_.pipeline.microbatches + m.microbatch) + (m.backward ? 1 : 0));
  };
  constexpr std::size_t kMost = 4;  // to and from both neighbours
  std::array<const Tensor*, kMost> reads{}, writes{};
  std::size_t read = 0, written = 0;
  const PipelineTransfer* named = &transfers.front();
  Bytes sent = 0;
  assert(transfers.size() <= kMost);
  for (const PipelineTransfer& t : transfers) {
    (t.send ? reads[read++] : writes[written++]) = &t.tensor;
    if (t.send) sent += t.tensor.bytes();
    if (!t.message.backward) named = &t;
  }
  Communicator::Collective what;
  what.kind = CollectiveKind::send_receive;
  what.name = transfers.size() > 1 ? kNames[2] : kNames[transfers.front().send ? 0 : 1];
  what.message = sent;
  what.type = transfers.front().tensor.type;
  what.rendezvous = number(named->message);
  group_of(named->message, named->send).start(what, {reads.data(), read}, {writes.data(), written});
}

void PipelineMessages::exchange(const std::vector<PipelineTransfer>& transfers) {
  if (transfers.empty() || tape_.omits_messages) return;
  append(transfers);
  group_of(transfers.front().message, transfers.front().send).wait();
  if (!drains_) return;
  Op op;
  op.kind = OpKind::synchronize;
  op.wait_for = WaitFor::device;
  tape_.append(op, "cudaDeviceSynchronize", {}, {});
}

// communicate with overlap_p2p_comm (_p2p_ops): even ranks send to the next first, odd ones receive from the previous.
PipelineMessages::Events PipelineMessages::start(std::span<const PipelineTransfer> out,
                                                 std::span<const PipelineTransfer> in) {
  Events events(out.size() + in.size());
  if (tape_.omits_messages) return events;
  const bool even = rank_ % 2 == 0;
  const auto place = [even](const PipelineTransfer& t) {
    const int kind = t.message.backward ? (t.send ? 2 : 3) : (t.send ? 0 : 1);
    return even ? kind : kind ^ 1;
  };
  const auto transfer = [&](std::size_t i) -> const PipelineTransfer& {
    return i < out.size() ? out[i] : in[i - out.size()];
  };
  // Each of four kinds in its turn: as a stable sort.
  for (int turn = 0; turn < 4; ++turn)
    for (std::size_t i = 0; i < events.size(); ++i)
      if (place(transfer(i)) == turn) events[i] = started(transfer(i));
  return events;
}

// One call, and the event behind it.
std::uint32_t PipelineMessages::started(const PipelineTransfer& transfer) {
  append({&transfer, 1});
  Op op;
  op.kind = OpKind::event_record;
  op.target = tape_.builder().add_event();
  op.stream = group_of(transfer.message, transfer.send).stream();
  tape_.append(op, "", {}, {});
  return op.target;
}

void PipelineMessages::wait(std::span<const std::uint32_t> events) {
  if (tape_.omits_messages) return;
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
