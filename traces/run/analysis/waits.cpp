#include "traces/run/analysis/waits.h"

#include <algorithm>
#include <utility>

#include "sim/trace/ranks.h"
#include "traces/run/analysis/run_scan.h"
#include "traces/run/lane_names.h"

namespace memwall {
namespace {

void note(WaitTotal& total, Duration time) {
  if (time.count() <= 0) return;
  total.time += time;
  ++total.count;
}

void note(WaitCollector::LaneTotals& lane, WaitReason reason, Duration time) {
  if (time.count() <= 0) return;
  lane.time[static_cast<std::size_t>(reason)] += time;
  ++lane.count[static_cast<std::size_t>(reason)];
}

Time ready_time(const Run& run, OpId id) {
  const Op& op = run.trace->ops[id];
  const OpRecord& record = run.result.records[id];
  if (op.placed) return op.host_gap;
  if (op.wait_for == WaitFor::own_op) return record.host_start + op.host_cost;
  const LaunchKind kind = op.graph_member ? LaunchKind::kernel : launch_kind(op.kind);
  const Trace& trace = run.trace;
  const ReplayConstants& constants =
      trace.rank_table.empty() ? trace.constants : trace.rank_table[rank_of(trace, op)].constants;
  return std::max(record.host_start, record.host_end + constants.launch_latency[static_cast<int>(kind)]);
}

}  // namespace

WaitCollector::WaitCollector(const Run& run)
    : run_(run),
      previous_(run.trace->threads.size(), kNoOp),
      ends_(run.trace->streams.size(), kNever),
      reordered_(run.trace->streams.size(), false),
      threads_(run.trace->threads.size()),
      streams_(run.trace->streams.size()) {}

void WaitCollector::add(OpId first, OpId last) {
  for (OpId id = first; id < last; ++id) {
    add_call(id);
    if (run_.result.records[id].start != kNever) add_work(id);
  }
}

void WaitCollector::add_call(OpId id) {
  const Op& op = run_.trace->ops[id];
  if (op.placed) return;
  const OpRecord& record = run_.result.records[id];
  const auto wait = [&](WaitReason reason, Duration time) {
    note(waits_.host[static_cast<std::size_t>(reason)], time);
    note(threads_[op.thread], reason, time);
  };
  OpId& before = previous_[op.thread];
  if (record.host_reason == WaitReason::hand_over) {
    const Time stood_since = before == kNoOp ? Time{} : run_.result.records[before].host_end;
    wait(WaitReason::hand_over, record.host_start - op.host_gap - stood_since);
  }
  before = id;
  const Duration beyond = record.host_end - record.host_start - op.host_cost;
  if (record.host_end_waited)
    wait(record.host_end_reason, beyond);
  else if (op.kind == OpKind::host_work && op.wait_for != WaitFor::nothing)
    wait(WaitReason::synchronize, beyond - op.duration);
}

void WaitCollector::add_work(OpId id) {
  const std::vector<OpRecord>& records = run_.result.records;
  const OpRecord& record = records[id];
  const Time ready = ready_time(run_, id);
  WaitTotal& total = waits_.device[static_cast<std::size_t>(record.device_reason)];
  if (record.device_reason == WaitReason::launch)
    ++total.count;
  else
    note(total, record.start - ready);
  if (record.peer < records.size())
    note(waits_.device[static_cast<std::size_t>(WaitReason::peer)], records[record.peer].start - record.start);
  if (runs_on_device(run_.trace->ops[id].kind)) add_standstill(id, ready);
}

void WaitCollector::add_standstill(OpId id, Time ready) {
  const OpRecord& record = run_.result.records[id];
  const std::uint16_t stream = run_.trace->ops[id].stream;
  const bool launched_last = record.device_reason == WaitReason::launch || record.device_reason == WaitReason::none;
  const Time launched = launched_last ? record.start : std::min(ready, record.start);
  Time& end = ends_[stream];
  Time since = launched;  // of its first op
  if (end != kNever) {
    if (record.start < end) reordered_[stream] = true;
    note(streams_[stream], WaitReason::launch, launched - end);
    since = std::max(end, launched);
  }
  note(streams_[stream], record.device_reason, record.start - since);
  if (record.peer < run_.result.records.size())
    note(streams_[stream], WaitReason::peer, run_.result.records[record.peer].start - record.start);
  end = end == kNever ? record.end : std::max(end, record.end);
}

// Two threads that launch into one stream may come in another order than the trace has them.
void WaitCollector::add_reordered_streams() {
  const Trace& trace = run_.trace;
  const std::vector<OpRecord>& records = run_.result.records;
  if (std::find(reordered_.begin(), reordered_.end(), true) == reordered_.end()) return;
  std::vector<OpId> ops;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (runs_on_device(trace.ops[id].kind) && records[id].start != kNever && reordered_[trace.ops[id].stream])
      ops.push_back(id);
  std::stable_sort(ops.begin(), ops.end(), [&](OpId a, OpId b) {
    return std::pair(records[a].start, records[a].end) < std::pair(records[b].start, records[b].end);
  });
  for (std::size_t s = 0; s < streams_.size(); ++s)
    if (reordered_[s]) {
      streams_[s] = {};
      ends_[s] = kNever;
    }
  for (const OpId id : ops) add_standstill(id, ready_time(run_, id));
}

const Waits& WaitCollector::waits() {
  add_reordered_streams();
  waits_.lanes.clear();
  const Trace& trace = run_.trace;
  const auto add_lane = [&](const LaneTotals& lane, const std::string& name, bool on_host) {
    for (std::size_t r = 0; r < kWaitReasons; ++r)
      if (lane.count[r] > 0)
        waits_.lanes.push_back({name, on_host, static_cast<WaitReason>(r), lane.time[r], lane.count[r]});
  };
  for (std::size_t t = 0; t < threads_.size(); ++t)
    add_lane(threads_[t], thread_lane_name(trace, trace.threads[t]), true);
  const bool several_devices = has_several_devices(trace);
  for (std::size_t s = 0; s < streams_.size(); ++s)
    add_lane(streams_[s], stream_lane_name(trace, trace.streams[s], several_devices), false);
  return waits_;
}

Waits total_waits(const Run& run) {
  WaitCollector waits(run);
  scan(run, waits);
  return waits.waits();
}

void OriginCollector::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  for (OpId id = first; id < last; ++id) {
    const OpRecord& record = run_.result.records[id];
    if (record.start == kNever) continue;
    const Duration time = record.end - record.start;
    switch (trace.ops[id].origin) {
      case Origin::measured:
        shares_.measured += time;
        break;
      case Origin::transferred:
        shares_.transferred += time;
        break;
      case Origin::modelled:
        shares_.modelled += time;
        break;
    }
  }
}

OriginShares origin_shares(const Run& run) {
  OriginCollector origins(run);
  scan(run, origins);
  return origins.shares();
}

}  // namespace memwall
