#include "traces/run/run_outline_source.h"

#include "traces/run/lane_names.h"

namespace memwall {
namespace {

Trace small_parts(const Trace& trace) {
  Trace out;
  out.name = trace.name;
  out.machine = trace.machine;
  out.threads = trace.threads;
  out.streams = trace.streams;
  out.places = trace.places;
  out.steps = trace.steps;
  out.constants = trace.constants;
  out.knowledge = trace.knowledge;
  out.event_count = trace.event_count;
  out.ranks = trace.ranks;
  out.rank_table = trace.rank_table;
  out.job_ranks = trace.job_ranks;
  out.groups = trace.groups;
  out.samples_per_step = trace.samples_per_step;
  out.tokens_per_step = trace.tokens_per_step;
  out.untracked_bytes = trace.untracked_bytes;
  out.reserved_at_start = trace.reserved_at_start;
  out.notes = trace.notes;
  out.recipe = trace.recipe;
  out.completeness = trace.completeness;
  out.completeness_reason = trace.completeness_reason;
  out.budgets = trace.budgets;
  return out;
}

}  // namespace

Run small_parts(const Run& run) {
  Run out;
  out.trace = small_parts(run.trace);
  out.machine = run.machine;
  out.policies = run.policies;
  out.pager = run.pager;
  out.allocator = run.allocator;
  out.allocator_settings = run.allocator_settings;
  out.changes = run.changes;
  out.warnings = run.warnings;
  out.inputs = run.inputs;
  out.result.end = run.result.end;
  out.result.gpu_span = run.result.gpu_span;
  out.result.steps = run.result.steps;
  out.result.tiers = run.result.tiers;
  out.result.links = run.result.links;
  out.result.fits = run.result.fits;
  out.result.events = run.result.events;
  out.unchanged = run.unchanged;
  out.unchanged_step = run.unchanged_step;
  out.steady_step = run.steady_step;
  out.alone_step = run.alone_step;
  out.contended_steps = run.contended_steps;
  out.first_step = run.first_step;
  out.tried = run.tried;
  out.speedups = run.speedups;
  out.provenance = run.provenance;
  return out;
}

EngineLanes engine_lanes_of(const RunOutline& outline) {
  EngineLanes engines(outline.run.trace, outline.run.machine);
  for (std::size_t i = 0; i < outline.lanes.size() && i < kNoLane; ++i)
    if (const RunLane& lane = outline.lanes[i]; lane.kind == RunLaneKind::engine)
      engines.set_lane(lane.engine, lane.device, static_cast<std::uint8_t>(i));
  return engines;
}

void reserve_spans(SpanBlock& block, std::size_t count) {
  const auto reserve = [count](auto&... columns) { (columns.reserve(count), ...); };
  reserve(block.call_begin, block.begin, block.call_time, block.time, block.name, block.module, block.thread,
          block.stream, block.kind, block.phase, block.engine, block.call_reason, block.return_reason, block.reason);
}

void append_span(SpanBlock& block, const Op& op, const OpRecord& record, const EngineLanes& engines) {
  const bool call = has_call(op, record), work = has_work(op, record);
  block.call_begin.push_back(call ? record.host_start : kNever);
  block.call_time.push_back(call ? record.host_end - record.host_start : Duration{});
  block.begin.push_back(work ? record.start : kNever);
  block.time.push_back(work ? record.end - record.start : Duration{});
  block.name.push_back(op.name != 0 ? op.name : op.operator_name);
  block.module.push_back(op.module);
  block.thread.push_back(op.thread);
  block.stream.push_back(op.stream);
  block.kind.push_back(op.kind);
  block.phase.push_back(op.phase);
  block.engine.push_back(work ? engines.lane_of(op) : kNoLane);
  block.call_reason.push_back(record.host_reason);
  block.return_reason.push_back(record.host_end_reason);
  block.reason.push_back(record.device_reason);
}

std::size_t SpanBlock::bytes() const {
  const auto of = [](const auto&... columns) {
    return (std::size_t{0} + ... + (columns.capacity() * sizeof(columns[0])));
  };
  return sizeof(SpanBlock) + of(call_begin, begin, call_time, time, name, module, thread, stream, kind, phase, engine,
                                call_reason, return_reason, reason);
}

}  // namespace memwall
