#include "validate/report/measured_causes.h"

#include <algorithm>
#include <map>
#include <utility>

namespace memwall {
namespace {

// Ops in the order in which the host issued them, all threads merged.
std::vector<OpId> issue_order(const Trace& trace, const std::vector<OpRecord>& records) {
  std::vector<OpId> order(trace.ops.size());
  for (OpId id = 0; id < order.size(); ++id) order[id] = id;
  std::stable_sort(order.begin(), order.end(),
                   [&](OpId a, OpId b) { return records[a].host_start < records[b].host_start; });
  return order;
}

class Conclusion {
 public:
  Conclusion(const Trace& trace, const Machine& machine, std::vector<OpRecord>& records)
      : trace_(trace),
        machine_(machine),
        records_(records),
        previous_of_thread_(trace.threads.size(), kNoOp),
        streams_(trace.streams.size()),
        events_(trace.event_count) {}

  void all() {
    const std::vector<OpId> order = issue_order(trace_, records_);
    serve_engines(order);
    for (const OpId id : order) {
      host(id);
      const Op& op = trace_.ops[id];
      if (runs_on_device(op.kind)) device(id);
      if (op.kind == OpKind::event_record) events_[op.target] = behind(streams_[op.stream]);
      if (op.kind == OpKind::event_wait) add(streams_[op.stream].awaited, events_[op.target]);
    }
  }

 private:
  struct StreamEnd {
    OpId last = kNoOp;
    std::vector<OpId> awaited;  // events that the next op waits for, as the ops that they stand behind
  };

  static void add(std::vector<OpId>& to, const std::vector<OpId>& ops) { to.insert(to.end(), ops.begin(), ops.end()); }

  static std::vector<OpId> behind(const StreamEnd& stream) {
    std::vector<OpId> ops = stream.awaited;
    if (stream.last != kNoOp) ops.push_back(stream.last);
    return ops;
  }

  OpId last_to_end(const std::vector<OpId>& ops) const {
    OpId last = kNoOp;
    for (const OpId id : ops)
      if (last == kNoOp || records_[id].end > records_[last].end) last = id;
    return last;
  }

  // One copy after the other per engine and device, in order of their ends.
  void serve_engines(const std::vector<OpId>& order) {
    std::map<std::pair<std::uint16_t, int>, std::vector<OpId>> engines;
    for (const OpId id : order) {
      const Op& op = trace_.ops[id];
      if (op.kind != OpKind::copy || op.from == op.to || records_[id].start == kNever) continue;
      const int from = machine_.tier(trace_.places[op.from]), to = machine_.tier(trace_.places[op.to]);
      if (from < 0 || to < 0) continue;
      const Route* route = machine_.route(from, to, op.pageable);
      if (route != nullptr) engines[{trace_.streams[op.stream].device, route->engine}].push_back(id);
    }
    before_on_engine_.assign(trace_.ops.size(), kNoOp);
    for (auto& [key, copies] : engines) {
      std::stable_sort(copies.begin(), copies.end(), [&](OpId a, OpId b) { return records_[a].end < records_[b].end; });
      for (std::size_t i = 1; i < copies.size(); ++i) {
        before_on_engine_[copies[i]] = copies[i - 1];
        OpRecord& record = records_[copies[i]];
        record.start = std::max(record.start, records_[copies[i - 1]].end);
      }
    }
  }

  void host(OpId id) {
    const Op& op = trace_.ops[id];
    OpRecord& record = records_[id];
    if (op.placed) return;
    OpId& previous = previous_of_thread_[op.thread];
    record.host_cause = previous;
    record.host_reason = previous == kNoOp ? WaitReason::none : WaitReason::program_order;
    if (op.kind == OpKind::hand_over &&
        (previous == kNoOp || records_[op.target].host_end > records_[previous].host_end)) {
      record.host_cause = op.target;
      record.host_reason = WaitReason::hand_over;
    }
    previous = id;
    const OpId awaited = last_to_end(awaited_by(id));
    if (awaited == kNoOp || records_[awaited].end <= record.host_start || op.kind == OpKind::host_work) return;
    record.host_end_waited = true;
    record.host_end_reason = WaitReason::synchronize;
    record.host_end_cause = awaited;
  }

  std::vector<OpId> awaited_by(OpId id) const {
    const Op& op = trace_.ops[id];
    switch (op.wait_for) {
      case WaitFor::nothing:
        return {};
      case WaitFor::own_op:
        return records_[id].end == kNever ? std::vector<OpId>{} : std::vector<OpId>{id};
      case WaitFor::stream:
        return behind(streams_[op.stream]);
      case WaitFor::event:
        return events_[op.target];
      case WaitFor::device:
        break;
    }
    std::vector<OpId> all;
    for (std::size_t s = 0; s < streams_.size(); ++s)
      if (trace_.streams[s].role != StreamRole::storage) add(all, behind(streams_[s]));
    return all;
  }

  void device(OpId id) {
    const Op& op = trace_.ops[id];
    OpRecord& record = records_[id];
    StreamEnd& stream = streams_[op.stream];
    // Where the call went on after the start, its beginning is all that must have been before.
    Time latest = record.host_end <= record.start ? record.host_end : std::min(record.host_start, record.start);
    record.device_reason = WaitReason::launch;
    record.device_cause = id;
    const auto raise = [&](OpId cause, WaitReason reason) {
      if (cause == kNoOp || records_[cause].end > record.start || records_[cause].end <= latest) return;
      latest = records_[cause].end;
      record.device_reason = reason;
      record.device_cause = cause;
    };
    raise(stream.last, WaitReason::stream_order);
    for (const OpId producer : stream.awaited) raise(producer, WaitReason::event);
    raise(before_on_engine_[id], WaitReason::copy_engine);
    stream.last = id;
    stream.awaited.clear();
  }

  const Trace& trace_;
  const Machine& machine_;
  std::vector<OpRecord>& records_;
  std::vector<OpId> previous_of_thread_;
  std::vector<OpId> before_on_engine_;
  std::vector<StreamEnd> streams_;
  std::vector<std::vector<OpId>> events_;
};

}  // namespace

void conclude_causes(const Trace& trace, const Machine& machine, std::vector<OpRecord>& records) {
  Conclusion(trace, machine, records).all();
}

}  // namespace memwall
