#include "models/workload/generate/operators/communicator.h"

#include <cassert>

namespace memwall {
namespace {

constexpr std::uint16_t kWorkStream = 0;
constexpr std::size_t kTokens = 1;  // the dimension

// Bytes on the wire per rank, in a ring: shares of the message in n - 1 rounds, for an all-reduce twice. What does not
// divide is rounded down, as GradientReduction and models/hw do.
Bytes sent_bytes(CollectiveKind kind, Bytes message, Bytes ranks) {
  const Bytes once = message / ranks * (ranks - 1) + message % ranks * (ranks - 1) / ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * once;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return once;
    default:
      return message;
  }
}

}  // namespace

void hand_over(Tape& tape, std::uint16_t from, std::uint16_t to) {
  Op op;
  op.target = tape.builder().add_event();
  op.kind = OpKind::event_record;
  op.stream = from;
  tape.append(op, "", {}, {});
  op.kind = OpKind::event_wait;
  op.stream = to;
  tape.append(op, "", {}, {});
}

Communicator::Communicator(Tape& tape, std::string_view name, std::vector<std::uint32_t> members, std::uint16_t stream)
    : tape_(tape), ranks_(static_cast<std::int64_t>(members.size())), stream_(stream) {
  if (ranks_ == 1) return;
  auto& groups = tape.trace().groups;
  group_ = static_cast<std::uint16_t>(groups.size());
  groups.push_back({std::string(name), static_cast<std::uint32_t>(ranks_), std::move(members)});
}

void Communicator::start(const Collective& what, Tape::Refs reads, Tape::Refs writes) {
  if (ranks_ == 1) return;
  if (what.others_first) hand_over(tape_, kWorkStream, stream_);
  Op op;
  op.kind = OpKind::collective;
  op.collective = what.kind;
  op.stream = stream_;
  op.group = group_;
  op.data_type = what.type;
  op.target = what.rendezvous;
  op.bytes = sent_bytes(what.kind, what.message, ranks_);
  tape_.append(op, what.name, reads, writes);
}

void Communicator::wait() {
  if (ranks_ > 1) hand_over(tape_, stream_, kWorkStream);
}

void Communicator::start_all_reduce(const Tensor& x) {
  const Tensor* const one[] = {&x};
  start({CollectiveKind::all_reduce, "c10d::allreduce_", x.bytes(), x.type}, one, one);
}

void Communicator::all_reduce(const Tensor& x, std::uint32_t rendezvous) {
  const Tensor* const one[] = {&x};
  start({CollectiveKind::all_reduce, "c10d::allreduce_", x.bytes(), x.type, rendezvous}, one, one);
  wait();
}

void Communicator::start_all_gather(const Tensor& x, const Tensor& into) {
  const Tensor* const from[] = {&x};
  const Tensor* const to[] = {&into};
  start({CollectiveKind::all_gather, "c10d::_allgather_base_", into.bytes(), x.type}, from, to);
}

Tensor Communicator::all_gather(const Tensor& x) {
  if (ranks_ == 1) return x;
  Tensor whole = tape_.make("c10d::_allgather_base_", gathered(x.shape), x.type);
  start_all_gather(x, whole);
  wait();
  return whole;
}

Tensor Communicator::start_reduce_scatter(const Tensor& x) {
  if (ranks_ == 1) return x;
  Tensor part = tape_.make("c10d::_reduce_scatter_base_", scattered(x.shape), x.type);
  const Tensor* const from[] = {&x};
  const Tensor* const to[] = {&part};
  start({CollectiveKind::reduce_scatter, "c10d::_reduce_scatter_base_", x.bytes(), x.type}, from, to);
  return part;
}

Tensor Communicator::reduce_scatter(const Tensor& x) {
  Tensor part = start_reduce_scatter(x);
  wait();
  return part;
}

void Communicator::broadcast(const Tensor& x) {
  const Tensor* const one[] = {&x};
  start({CollectiveKind::broadcast, "c10d::broadcast_", x.bytes(), x.type}, one, one);
  wait();
}

Shape Communicator::gathered(const Shape& shape) const {
  Shape whole = shape;
  whole[kTokens] *= ranks_;
  return whole;
}

Shape Communicator::scattered(const Shape& shape) const {
  Shape part = shape;
  assert(part[kTokens] % ranks_ == 0);
  part[kTokens] /= ranks_;
  return part;
}

}  // namespace memwall
