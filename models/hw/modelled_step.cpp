#include "models/hw/modelled_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "models/hw/pricer.h"

namespace memwall {
namespace {

class StepPricer {
 public:
  StepPricer(const Trace& trace, const Machine& machine)
      : trace_(trace), host_(machine.host), prices_(make_pricer(machine)) {}

  Duration work(const Op& op) const {
    switch (op.kind) {
      case OpKind::kernel:
      case OpKind::memset:
        return prices_->kernel(op, trace_.shapes[op.shape]);
      case OpKind::copy:
      case OpKind::storage_io:
        return prices_->copy(trace_.places[op.from], trace_.places[op.to], op.bytes, op.pageable);
      case OpKind::collective:
        return collective(op);
      case OpKind::host_work:
        return prices_->host_memory_work(op.bytes);
      default:
        return {};
    }
  }

  // Nodes of a CUDA graph are launched by its one call.
  Duration call(const Op& op) const {
    if (op.graph_member) return {};
    switch (op.kind) {
      case OpKind::kernel:
      case OpKind::memset:
        return kernels(op) * host_.launch;
      case OpKind::collective:
      case OpKind::graph_launch:
        return host_.launch;
      case OpKind::copy:
      case OpKind::storage_io:
        return host_.copy_call;
      case OpKind::event_record:
      case OpKind::event_wait:
        return host_.event_call;
      case OpKind::alloc:
      case OpKind::free:
        return host_.allocator_call;
      default:
        return {};
    }
  }

  // What the framework does before the op's own calls.
  Duration framework(const Op& op) const {
    if (op.graph_member) return {};
    const bool compiled = op.dispatch == Dispatch::compiled && (op.kind == OpKind::kernel || op.kind == OpKind::memset);
    const Duration calls = compiled ? kernels(op) * host_.compiled_call : Duration{};
    return calls + std::int64_t{op.framework_calls} * per_operator(op);
  }

 private:
  static std::int64_t kernels(const Op& op) { return std::max<std::int64_t>(op.kernels, 1); }

  // A recomputed forward is dispatched from Python as the first one was.
  Duration per_operator(const Op& op) const {
    if (op.dispatch == Dispatch::native) return {};
    if (op.phase == Phase::optimizer) return host_.eager_optimizer;
    return op.phase == Phase::backward ? host_.eager_backward : host_.eager_forward;
  }

  // Pipelines send the same message many times.
  Duration collective(const Op& op) const {
    if (op.group >= trace_.groups.size()) return priced_collective(op);
    const auto [known, is_new] = collectives_.try_emplace({op.collective, op.group, op.bytes});
    if (is_new) known->second = priced_collective(op);
    return known->second;
  }
  // Of the whole message, from what one rank sends of it.
  Duration priced_collective(const Op& op) const {
    const ProcessGroup group = process_group_of(trace_, op);
    return prices_->collective(op.collective, prices_->message_bytes(op.collective, op.bytes, group.ranks), group);
  }

  const Trace& trace_;
  const HostCosts& host_;
  std::unique_ptr<Pricer> prices_;
  mutable std::map<std::tuple<CollectiveKind, std::uint16_t, Bytes>, Duration> collectives_;
};

void set_constants(ReplayConstants& constants, const HostCosts& host) {
  std::fill_n(constants.launch_latency, kLaunchKinds, host.launch_latency);
  for (auto& after : constants.stream_gap) std::fill_n(after, kLaunchKinds, host.stream_gap);
}

bool lacks_duration(const Op& op) {
  return runs_on_device(op.kind) && op.kind != OpKind::graph_launch && op.origin == Origin::modelled && !op.added &&
         op.duration.count() == 0;
}

}  // namespace

bool measured_nowhere(const Trace& trace) {
  return trace.machine.empty() && !trace.knowledge.timing &&
         std::none_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
           return runs_on_device(op.kind) && (op.origin != Origin::modelled || op.duration.count() != 0);
         });
}

Trace modelled_on(Trace trace, const Machine& machine) {
  const StepPricer prices(trace, machine);
  for (Op& op : trace.ops) {
    op.duration = prices.work(op);
    op.host_cost = prices.call(op);
    op.host_gap = prices.framework(op);
    if (op.wait_for != WaitFor::nothing) op.return_delay = machine.host.synchronize_return;
  }
  set_constants(trace.constants, machine.host);
  for (Rank& rank : trace.rank_table) set_constants(rank.constants, machine.host);
  trace.knowledge.timing = true;
  trace.machine = machine.name;
  trace.notes.push_back(fmt::format(
      "Nothing was measured: every duration is modelled for {} from FLOPs, bytes and shapes. The host's calls and the "
      "framework's dispatch cost what the machine's file says; the program's own Python between them costs nothing.",
      machine.name));
  return trace;
}

bool lacks_durations(const Trace& trace) { return std::any_of(trace.ops.begin(), trace.ops.end(), lacks_duration); }

Trace with_missing_durations(Trace trace, const Machine& machine) {
  const StepPricer prices(trace, machine);
  std::size_t missing = 0;
  for (Op& op : trace.ops) {
    if (!lacks_duration(op)) continue;
    op.duration = prices.work(op);
    ++missing;
  }
  if (missing > 0)
    trace.notes.push_back(
        fmt::format("{} kernels, copies and collectives without a measured duration are modelled for {} by a roofline.",
                    missing, machine.name));
  return trace;
}

}  // namespace memwall
