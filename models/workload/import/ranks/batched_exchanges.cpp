#include "models/workload/import/ranks/batched_exchanges.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

namespace memwall {
namespace {

constexpr Bytes kMostBytes = Bytes{1} << 50;

struct Carried {
  Bytes sent = 0, received = 0;
};

void add(Carried& carried, const CapturedCollective& message, std::int64_t self) {
  if (message.elements <= 0 || message.elements >= std::int64_t{1} << 42) return;
  Bytes& bytes = message.source == self ? carried.sent : carried.received;
  bytes = std::min<Bytes>(bytes + message.elements * bytes_of(message.type), kMostBytes);
}

// Messages of one kernel, which stand one behind the other: by rendezvous, in the order of the first message of each.
MetKernel batch_of(const RankCapture& capture, const CollectiveMatches& found, std::uint32_t rank, std::size_t first,
                   std::size_t last) {
  MetKernel kernel{.op = capture.collectives[first].op, .exchanges = {}};
  std::map<std::uint32_t, std::size_t> place;
  std::vector<Carried> carried;
  for (std::size_t i = first; i < last; ++i) {
    const CapturedCollective& message = capture.collectives[i];
    const std::uint32_t number = found.rendezvous_of[rank][i];
    const auto [at, is_new] = place.try_emplace(number, carried.size());
    if (is_new) {
      carried.emplace_back();
      kernel.exchanges.push_back(
          {.rendezvous = number,
           .group = message.group,
           .duration = number == kNoRendezvous ? message.end - message.start : found.rendezvous[number].own});
    }
    add(carried[at->second], message, capture.rank);
  }
  for (std::size_t i = 0; i < carried.size(); ++i)
    kernel.exchanges[i].bytes = std::max(carried[i].sent, carried[i].received);
  return kernel;
}

// Writes the program once more, kernel by kernel.
class Rewriter {
 public:
  Rewriter(const Trace& base, const std::vector<MetKernel>& kernels)
      : base_(base), builder_(TraceBuilder::like(base)), first_(base.ops.size()), last_(base.ops.size()) {
    for (const MetKernel& kernel : kernels)
      if (kernel.exchanges.size() > 1) add_streams(kernel);
  }

  Trace run(const std::vector<MetKernel>& kernels) && {
    auto next = kernels.begin();
    for (OpId id = 0; id < base_.ops.size(); ++id) {
      while (next != kernels.end() && next->op < id) ++next;
      first_[id] = static_cast<OpId>(builder_.trace().ops.size());
      if (next != kernels.end() && next->op == id && next->exchanges.size() > 1)
        append_batch(*next);
      else
        append(id);
      last_[id] = static_cast<OpId>(builder_.trace().ops.size() - 1);
    }
    renumber_rest();
    return std::move(builder_).finish();
  }

 private:
  void add_streams(const MetKernel& kernel) {
    const std::uint16_t stream = base_.ops[kernel.op].stream;
    std::vector<std::uint16_t>& beside = beside_[stream];
    while (beside.size() + 1 < kernel.exchanges.size())
      beside.push_back(builder_.add_stream(
          base_.streams[stream].name + ", peer " + std::to_string(beside.size() + 2) + " of a batch",
          StreamRole::communication, base_.streams[stream].device));
  }

  Op renumbered(OpId id) const {
    Op op = base_.ops[id];
    if (op.source != kNoOp) op.source = last_[op.source];
    // The other thread goes on when all of what it waits for has been issued.
    if (op.kind == OpKind::hand_over) op.target = last_[op.target];
    return op;
  }

  void append(OpId id) { builder_.append(renumbered(id), base_.uses_of(base_.ops[id])); }

  void append_batch(const MetKernel& kernel) {
    const std::vector<std::uint16_t>& beside = beside_.at(base_.ops[kernel.op].stream);
    append_batched_sends(builder_, renumbered(kernel.op), kernel.exchanges,
                         std::span(beside).first(kernel.exchanges.size() - 1), base_.uses_of(base_.ops[kernel.op]));
  }

  void renumber_rest() {
    Trace& trace = builder_.trace();
    const auto moved = [&](OpId id) { return id < first_.size() ? first_[id] : static_cast<OpId>(trace.ops.size()); };
    trace.steps = base_.steps;
    for (Step& step : trace.steps) {
      step.first = moved(step.first);
      step.last = moved(step.last);
    }
    for (StorageId s = 0; s < trace.storages.size(); ++s)
      if (const OpId op = base_.storages[s].last_referenced; op < last_.size())
        trace.storages[s].last_referenced = last_[op];
  }

  const Trace& base_;
  TraceBuilder builder_;
  std::vector<OpId> first_, last_;                              // of each op of the base: where it stands
  std::map<std::uint16_t, std::vector<std::uint16_t>> beside_;  // by stream
};

}  // namespace

std::vector<MetKernel> met_kernels(const RankCapture& capture, const CollectiveMatches& found, std::uint32_t rank) {
  std::vector<MetKernel> kernels;
  for (std::size_t i = 0; i < capture.collectives.size();) {
    std::size_t last = i + 1;
    while (last < capture.collectives.size() && capture.collectives[last].op == capture.collectives[i].op) ++last;
    MetKernel kernel = batch_of(capture, found, rank, i, last);
    i = last;
    if (kernel.exchanges.size() > 1 || kernel.exchanges.front().rendezvous != kNoRendezvous)
      kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Trace with_rendezvous(Trace trace, const std::vector<MetKernel>& kernels) {
  bool several = false;
  for (const MetKernel& kernel : kernels) {
    several = several || kernel.exchanges.size() > 1;
    if (kernel.exchanges.size() > 1) continue;
    trace.ops[kernel.op].target = kernel.exchanges.front().rendezvous;
    trace.ops[kernel.op].duration = kernel.exchanges.front().duration;
  }
  return several ? Rewriter(trace, kernels).run(kernels) : trace;
}

}  // namespace memwall
