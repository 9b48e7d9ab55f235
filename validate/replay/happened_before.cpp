#include "validate/replay/happened_before.h"

#include <algorithm>

namespace memwall {
namespace {

void merge(VectorClock& into, const VectorClock& from) {
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

bool covers(const VectorClock& clock, const VectorClock& needed) {
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (clock[i] < needed[i]) return false;
  return true;
}

HappenedBefore::HappenedBefore(const Trace& trace)
    : t_(trace),
      none_(trace.streams.size() + trace.threads.size(), 0),
      hosts_(trace.threads.size(), none_),
      streams_(trace.streams.size(), none_),
      events_(trace.event_count) {
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::hand_over) handed_[op.target];
}

std::optional<HappenedBefore::Work> HappenedBefore::enter(OpId id) {
  const Op& op = t_.ops[id];
  VectorClock& host = hosts_[op.thread];
  const std::size_t lane = t_.streams.size() + op.thread;
  ++host[lane];
  if (op.kind == OpKind::synchronize || op.kind == OpKind::host_work) await(op, host);
  std::optional<Work> work;
  if (runs_on_device(op.kind)) {
    VectorClock& stream = streams_[op.stream];
    merge(stream, host);
    work.emplace(Work{stream, op.stream, ++stream[op.stream]});
    if (op.wait_for != WaitFor::nothing) merge(host, stream);
  } else if (op.kind == OpKind::host_work) {
    work.emplace(Work{host, lane, host[lane]});
  } else if (op.kind == OpKind::event_record) {
    events_[op.target] = streams_[op.stream];
    merge(events_[op.target], host);
  } else if (op.kind == OpKind::event_wait) {
    merge(streams_[op.stream], events_[op.target]);
  } else if (op.kind == OpKind::hand_over) {
    merge(host, handed_[op.target]);
  }
  if (const auto found = handed_.find(id); found != handed_.end()) found->second = host;
  return work;
}

const VectorClock& HappenedBefore::before(const Op& op) {
  merge(streams_[op.stream], hosts_[op.thread]);
  return streams_[op.stream];
}

void HappenedBefore::wait(std::uint16_t stream, std::uint16_t other) { merge(streams_[stream], streams_[other]); }

void HappenedBefore::await(const Op& op, VectorClock& host) const {
  if (op.wait_for == WaitFor::event) merge(host, events_[op.target]);
  if (op.wait_for == WaitFor::stream) merge(host, streams_[op.stream]);
  if (op.wait_for == WaitFor::device)
    for (std::size_t s = 0; s < streams_.size(); ++s)
      if (t_.streams[s].role != StreamRole::storage) merge(host, streams_[s]);
}

}  // namespace memwall
