#include "traces/run/analysis/waits.h"

#include <algorithm>

#include "sim/trace/ranks.h"
#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

void note(WaitTotal& total, Duration time) {
  if (time.count() <= 0) return;
  total.time += time;
  ++total.count;
}

void note_host(Waits& waits, const Run& run, OpId id, std::vector<OpId>& previous) {
  const Op& op = run.trace->ops[id];
  if (op.placed) return;
  const OpRecord& record = run.result.records[id];
  const auto total = [&](WaitReason reason) -> WaitTotal& { return waits.host[static_cast<std::size_t>(reason)]; };
  OpId& before = previous[op.thread];
  if (record.host_reason == WaitReason::hand_over) {
    const Time stood_since = before == kNoOp ? Time{} : run.result.records[before].host_end;
    note(total(WaitReason::hand_over), record.host_start - op.host_gap - stood_since);
  }
  before = id;
  const Duration beyond = record.host_end - record.host_start - op.host_cost;
  if (record.host_end_waited)
    note(total(record.host_end_reason), beyond);
  else if (op.kind == OpKind::host_work && op.wait_for != WaitFor::nothing)
    note(total(WaitReason::synchronize), beyond - op.duration);
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

WaitCollector::WaitCollector(const Run& run) : run_(run), previous_(run.trace->threads.size(), kNoOp) {}

void WaitCollector::add(OpId first, OpId last) {
  const std::vector<OpRecord>& records = run_.result.records;
  for (OpId id = first; id < last; ++id) {
    note_host(waits_, run_, id, previous_);
    const OpRecord& record = records[id];
    if (record.start == kNever) continue;
    WaitTotal& total = waits_.device[static_cast<std::size_t>(record.device_reason)];
    if (record.device_reason == WaitReason::launch)
      ++total.count;
    else
      note(total, record.start - ready_time(run_, id));
    if (record.peer < records.size())
      note(waits_.device[static_cast<std::size_t>(WaitReason::peer)], records[record.peer].start - record.start);
  }
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
