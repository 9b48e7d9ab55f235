// What memwall may know of a schedule before it is executed: stand-alone times and the machine file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hw/pricer.h"
#include "sim/error.h"
#include "study/study.h"
#include "validate/report/measured_memory.h"
#include "validate/report/measured_run.h"

namespace memwall {
namespace {

// What one op can bring over a link in its stand-alone time. What is more came out of caches, as the op alone
// would otherwise be slowed by itself.
Bytes carried(Bytes bytes, Duration duration, double bandwidth) {
  const double most = std::floor(bandwidth * to_seconds(duration));
  return most >= static_cast<double>(bytes) ? bytes : static_cast<Bytes>(most);
}

class Repricing {
 public:
  Repricing(const Execution& execution, const Machine& machine, const Trace& schedule)
      : execution_(execution), machine_(machine), pricer_(make_pricer(machine)), places_(schedule.places) {}

  void constants(Trace& trace) const {
    const bool host = value_of(execution_.environment, "backend") == "host";
    ReplayConstants& c = trace.constants;
    for (Duration& latency : c.launch_latency) latency = machine_.host.launch_latency;
    for (auto& gaps : c.stream_gap)
      for (Duration& gap : gaps) gap = machine_.host.stream_gap;
    c.graph_gap = machine_.host.stream_gap;
    // On a GPU a stream sees another's event without the host. The host back end's streams are threads, which
    // an event wakes as a launch does; nothing bounds what they queue.
    c.event_latency = host ? machine_.host.launch_latency : ReplayConstants{}.event_latency;
    c.launch_queue_depth = host ? 0 : ReplayConstants{}.launch_queue_depth;
    if (host)  // thread blocks are a matter of GPUs
      for (Op& op : trace.ops) op.waves = 0;
  }

  void op(Op& op, OpId id) const {
    op.added = true;
    op.host_gap = op.return_delay = Duration{};
    op.host_cost = call_cost(op);
    switch (op.kind) {
      case OpKind::kernel:
      case OpKind::collective:
        alone(op, id, machine_.hbm_link);
        if (op.kind == OpKind::collective) op.bytes = 0;  // a stand-in: nothing crosses a link
        break;
      case OpKind::host_work:
        alone(op, id, machine_.dram_link);
        break;
      case OpKind::memset:
        modelled(op, pricer_->kernel(op));
        op.bytes = link_bytes(op, machine_.hbm_link);
        break;
      case OpKind::copy:
      case OpKind::storage_io:
        modelled(op, transfer(op));
        break;
      default:
        break;
    }
    if (op.wait_for != WaitFor::nothing) op.return_delay = machine_.host.synchronize_return;
  }

 private:
  Duration call_cost(const Op& op) const {
    const HostCosts& host = machine_.host;
    switch (op.kind) {
      case OpKind::kernel:
      case OpKind::memset:
      case OpKind::collective:
      case OpKind::graph_launch:
        return op.graph_member ? Duration{} : host.launch;
      case OpKind::copy:
      case OpKind::storage_io:
        return host.copy_call;
      case OpKind::alloc:
      case OpKind::free:
        return host.allocator_call;
      case OpKind::event_record:
      case OpKind::event_wait:
      case OpKind::synchronize:  // of what has ended already: a look, as at an event
        return host.event_call;
      default:
        return {};
    }
  }

  Bytes link_bytes(const Op& op, std::uint16_t link) const {
    return machine_.links.empty() ? op.bytes : carried(op.bytes, op.duration, machine_.links[link].bandwidth);
  }

  void alone(Op& op, OpId id, std::uint16_t link) const {
    op.origin = Origin::measured;
    op.duration = execution_.alone[id];
    op.bytes = link_bytes(op, link);
  }

  static void modelled(Op& op, Duration duration) {
    op.origin = Origin::modelled;
    op.duration = duration;
  }

  Duration transfer(const Op& op) const {
    const std::string &from = places_[op.from], &to = places_[op.to];
    const int tier = machine_.tier(from);
    if (op.from != op.to || (tier >= 0 && machine_.route(tier, tier, op.pageable) != nullptr))
      return pricer_->copy(from, to, op.bytes, op.pageable);
    // Within a tier without a route of its own: read and written once over its link.
    const std::uint16_t link = tier == machine_.tier("host") ? machine_.dram_link : machine_.hbm_link;
    return from_seconds(2 * static_cast<double>(op.bytes) / machine_.links[link].bandwidth);
  }

  const Execution& execution_;
  const Machine& machine_;
  const std::unique_ptr<Pricer> pricer_;
  const std::vector<std::string> places_;
};

// The schedule says which share of the multiprocessors its stand-ins for collectives take.
Machine with_stand_ins(Machine machine, const Trace& schedule) {
  double share = 0;
  for (const Op& op : schedule.ops)
    if (op.kind == OpKind::collective) share = std::max(share, static_cast<double>(op.waves));
  if (share <= 0) return machine;
  // The host back end divides the time of one core.
  if (machine.gpu.multiprocessors < 2) machine.gpu.multiprocessors = 100;
  machine.gpu.collective_multiprocessors = static_cast<std::uint32_t>(std::lround(share * machine.gpu.multiprocessors));
  return machine;
}

}  // namespace

Trace repriced(const Trace& schedule, const Execution& execution, const Machine& machine) {
  if (execution.times.size() != schedule.ops.size() || execution.alone.size() != schedule.ops.size())
    throw InputError(fmt::format("The execution of \"{}\" has {} ops; expected the {} of its schedule.",
                                 execution.schedule, execution.times.size(), schedule.ops.size()));
  Trace trace = schedule;
  trace.machine = machine.name;
  trace.knowledge.timing = true;
  const Repricing pricing(execution, machine, schedule);
  pricing.constants(trace);
  for (OpId id = 0; id < trace.ops.size(); ++id) pricing.op(trace.ops[id], id);
  trace.notes.push_back("Kernels and host work take their stand-alone times of the execution, the rest is priced by " +
                        machine.name + ".");
  return trace;
}

Run simulated_run(const Trace& schedule, const Execution& execution, const Machine& machine) {
  Study study;
  study.add_step(schedule.name, repriced(schedule, execution, machine));
  study.add_machine(machine.name, with_stand_ins(machine, schedule));
  Run run = study.run({.step = {schedule.name}, .machine = machine.name}).run;
  // The schedule's own policies are in its ops; this tells the two runs of it apart wherever they are shown.
  run.policies = {"as simulated"};
  run.inputs.push_back({execution.schedule, execution.schedule_hash});
  const std::vector<MemoryStep> steps = memory_steps(run.trace, run.result.records);
  const std::vector<Usage> peaks = warm_peaks(run.trace, machine, steps);
  for (std::size_t t = 0; t < peaks.size(); ++t) {
    TierResult& tier = run.result.tiers[t];
    tier.peak_allocated = std::max(tier.peak_allocated, peaks[t].allocated);
    tier.peak_reserved = std::max(tier.peak_reserved, peaks[t].reserved);
  }
  return run;
}

}  // namespace memwall
