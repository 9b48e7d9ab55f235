#include "validate/report/measured_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "traces/run/run_recorder.h"
#include "validate/report/measured_causes.h"
#include "validate/report/measured_links.h"
#include "validate/report/measured_memory.h"

namespace memwall {
namespace {

[[noreturn]] void refuse(const Trace& schedule, OpId id, const std::string& found, const std::string& expected) {
  throw InputError(fmt::format("The execution of \"{}\", op {} ({}): {}; expected {}.", schedule.name, id,
                               to_string(schedule.ops[id].kind), found, expected));
}

std::vector<OpRecord> records_of(const Trace& schedule, const Execution& execution) {
  std::vector<OpRecord> records(schedule.ops.size());
  for (OpId id = 0; id < records.size(); ++id) {
    const OpTimes& times = execution.times[id];
    OpRecord& record = records[id];
    if (times.host_start < Time{} || times.host_end < times.host_start || times.host_end == kNever)
      refuse(
          schedule, id,
          fmt::format("its call begins at {} ps and ends at {} ps", times.host_start.count(), times.host_end.count()),
          "an end not before the beginning, both after the clock's start");
    record.host_start = times.host_start;
    record.host_end = times.host_end;
    if (!runs_on_device(schedule.ops[id].kind)) continue;
    if (times.start == kNever || times.end == kNever || times.end < times.start)
      refuse(schedule, id, "its work on the device has no time, or ends before it begins", "both times, in order");
    // The device's clock is set by the host's, a little off: nothing begins before everything.
    record.start = std::max(times.start, Time{});
    record.end = std::max(times.end, record.start);
  }
  return records;
}

// The program with the times that were observed in place of those that were priced.
void observe(Trace& trace, const std::vector<OpRecord>& records) {
  std::vector<Time> previous_end(trace.threads.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    Op& op = trace.ops[id];
    const OpRecord& record = records[id];
    const Duration call = record.host_end - record.host_start;
    op.origin = Origin::measured;
    op.return_delay = Duration{};
    if (runs_on_device(op.kind)) op.duration = record.end - record.start;
    if (op.kind == OpKind::host_work) op.duration = std::min(op.duration, call);
    if (op.kind == OpKind::host_work && op.wait_for == WaitFor::nothing) op.duration = call;
    if (op.kind == OpKind::host_work)
      op.host_cost = Duration{};
    else
      op.host_cost = record.host_end_waited ? std::min(op.host_cost, call) : call;
    if (op.placed || op.graph_member) continue;
    op.host_gap = std::max(Duration{}, record.host_start - previous_end[op.thread]);
    previous_end[op.thread] = record.host_end;
  }
}

Duration span_of(const Trace& trace, const std::vector<OpRecord>& records, OpId first, OpId last) {
  Time begin = kNever, end{};
  for (OpId id = first; id < last; ++id) {
    const OpRecord& r = records[id];
    if (r.start == kNever || trace.streams[trace.ops[id].stream].role == StreamRole::storage) continue;
    begin = std::min(begin, r.start);
    end = std::max(end, r.end);
  }
  return begin == kNever ? Duration{} : end - begin;
}

void conclude_times(const Trace& trace, SimulationResult& result) {
  for (const OpRecord& r : result.records) {
    result.end = std::max(result.end, r.host_end);
    if (r.end != kNever) result.end = std::max(result.end, r.end);
  }
  const OpId count = static_cast<OpId>(trace.ops.size());
  result.gpu_span = span_of(trace, result.records, 0, count);
  const auto boundary = [&](OpId id) { return id < count ? result.records[id].host_start : result.end; };
  for (const Step& step : trace.steps)
    result.steps.push_back(
        {step.name, boundary(step.last) - boundary(step.first), span_of(trace, result.records, step.first, step.last)});
}

void take_peaks(const Execution& execution, const Machine& machine, std::vector<TierResult>& tiers) {
  for (const PlacePeak& peak : execution.peaks) {
    const int tier = machine.tier(peak.place);
    if (tier < 0) continue;
    tiers[static_cast<std::size_t>(tier)].peak_allocated = peak.allocated;
    tiers[static_cast<std::size_t>(tier)].peak_reserved = peak.reserved;
  }
}

}  // namespace

Run measured_run(const Trace& schedule, const Execution& execution, const Machine& machine) {
  Run run;
  run.trace = repriced(schedule, execution, machine);
  run.machine = machine_of_ranks(machine, run.trace);
  run.policies = {"as measured"};
  run.inputs.push_back({execution.schedule, execution.schedule_hash});
  run.result.records = records_of(schedule, execution);
  conclude_causes(run.trace, machine, run.result.records);
  observe(run.trace.edit(), run.result.records);
  run.trace.edit().notes.push_back(fmt::format("Measured by the {} back end on {}: pass {} of {}, that of median time.",
                                        value_of(execution.environment, "backend"),
                                        value_of(execution.environment, "date"), execution.chosen + 1,
                                        execution.totals.size()));
  conclude_times(run.trace, run.result);
  RunRecorder recorder(run.trace, run.machine);
  run.result.tiers = replay_memory(run.trace, machine, memory_steps(run.trace, run.result.records), &recorder);
  run.result.links = measured_links(run.trace, machine, run.result.records, &recorder);
  recorder.finish(run);
  take_peaks(execution, machine, run.result.tiers);
  return run;
}

}  // namespace memwall
