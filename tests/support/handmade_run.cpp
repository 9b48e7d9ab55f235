#include "tests/support/handmade_run.h"

#include <algorithm>

#include "tests/support/test_machine.h"

namespace memwall {

HandmadeRun::HandmadeRun() {
  run.machine = machine_of_ranks(test_machine(), run.trace);
  Trace& trace = run.trace.edit();
  trace.name = "hand";
  trace.knowledge.allocations = true;
  trace.threads = {{"main"}};
  trace.streams = {{"compute", 0, StreamRole::compute},
                   {"copy", 0, StreamRole::copy},
                   {"communication", 0, StreamRole::communication},
                   {"storage", 0, StreamRole::storage}};
  trace.places = {"hbm", "host", "nvme"};
  run.result.tiers.resize(run.machine.tiers.size());
  run.result.links.resize(run.machine.links.size());
  run.memory.resize(run.machine.tiers.size());
  run.at_peak.resize(run.machine.tiers.size());
  run.link_rates.resize(run.machine.links.size());
}

OpId HandmadeRun::host(OpKind kind, std::string_view name, double begin, double end) {
  Op op;
  op.kind = kind;
  op.name = run.trace.edit().strings.intern(name);
  OpRecord record;
  record.host_start = from_microseconds(begin);
  record.host_end = from_microseconds(end);
  record.host_cause = previous_;
  record.host_reason = previous_ == kNoOp ? WaitReason::none : WaitReason::program_order;
  const Time before = previous_ == kNoOp ? Time{} : run.result.records[previous_].host_end;
  op.host_gap = std::max(Duration{}, record.host_start - before);
  op.host_cost = record.host_end - record.host_start;
  run.trace.edit().ops.push_back(op);
  run.result.records.push_back(record);
  previous_ = static_cast<OpId>(run.trace->ops.size() - 1);
  return previous_;
}

OpId HandmadeRun::device(OpKind kind, std::string_view name, std::uint16_t stream, double begin, double end, double start,
                     double finish, WaitReason reason, OpId cause) {
  const OpId id = host(kind, name, begin, end);
  op(id).stream = stream;
  op(id).duration = from_microseconds(finish) - from_microseconds(start);
  record(id).start = from_microseconds(start);
  record(id).end = from_microseconds(finish);
  record(id).device_reason = reason;
  record(id).device_cause = reason == WaitReason::launch ? id : cause;
  return id;
}

void HandmadeRun::waited(OpId id, WaitReason reason, OpId cause) {
  record(id).host_end_waited = true;
  record(id).host_end_reason = reason;
  record(id).host_end_cause = cause;
}

void HandmadeRun::step(std::string_view name, OpId first, OpId last) {
  run.trace.edit().steps.push_back({std::string(name), first, last});
}

Run HandmadeRun::finish() {
  SimulationResult& result = run.result;
  Time first = kNever, last{};
  for (const OpRecord& record : result.records) {
    result.end = std::max(result.end, record.host_end);
    if (record.end == kNever) continue;
    result.end = std::max(result.end, record.end);
    first = std::min(first, record.start);
    last = std::max(last, record.end);
  }
  result.gpu_span = first == kNever ? Duration{} : last - first;
  if (!run.trace->steps.empty())
    for (const StepWindow& window : step_windows(run))
      result.steps.push_back({window.name, window.end - window.begin, result.gpu_span});
  return run;
}

}  // namespace memwall
