// An execution that never happened: what a machine would have measured if it behaved exactly as the simulator
// says, or a little otherwise. For tests of what compares the two.
#pragma once

#include <string>

#include "validate/report/measured_run.h"

namespace memwall {

// The trace without its times, as a schedule has none.
inline Trace without_times(Trace trace) {
  for (Op& op : trace.ops) op.duration = op.host_gap = op.host_cost = op.return_delay = Duration{};
  trace.constants = ReplayConstants{.event_latency = Duration{}, .launch_queue_depth = 0};
  trace.knowledge.timing = false;
  return trace;
}

inline Duration whole_nanoseconds(Duration d) { return d == kNever ? d : nanoseconds(d.count() / 1000); }

// Kernels and host work take `trace`'s own durations alone; everything happens as `machine` has it.
inline Execution synthetic_execution(const Trace& trace, const Machine& machine) {
  Execution e;
  e.schedule = trace.name;
  e.schedule_hash = "fnv1a64:0000000000000000";
  e.environment = {{"backend", "host"}, {"date", "2026-01-02"}};
  e.times.resize(trace.ops.size());
  e.alone.resize(trace.ops.size());
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::kernel || trace.ops[id].kind == OpKind::host_work)
      e.alone[id] = whole_nanoseconds(trace.ops[id].duration);
  const Run run = simulated_run(without_times(trace), e, machine);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const OpRecord& r = run.result.records[id];
    e.times[id] = {whole_nanoseconds(r.host_start), whole_nanoseconds(r.host_end), whole_nanoseconds(r.start),
                   whole_nanoseconds(r.end)};
  }
  e.totals = {whole_nanoseconds(run.result.end)};
  for (std::size_t t = 0; t < machine.tiers.size(); ++t)
    e.peaks.push_back({machine.tiers[t].name, run.result.tiers[t].peak_allocated, run.result.tiers[t].peak_reserved});
  return e;
}

// Every time multiplied: a machine that is so much slower throughout.
inline Execution slowed(Execution e, double factor) {
  const auto longer = [&](Time t) {
    return t == kNever ? t : nanoseconds(std::llround(static_cast<double>(t.count()) * factor / 1000));
  };
  for (OpTimes& t : e.times) t = {longer(t.host_start), longer(t.host_end), longer(t.start), longer(t.end)};
  for (Duration& total : e.totals) total = longer(total);
  return e;
}

}  // namespace memwall
