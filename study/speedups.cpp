#include "study/speedups.h"

#include <algorithm>
#include <utility>

#include "sim/trace/scale.h"

namespace memwall {
namespace {

constexpr double kTwiceAsFast = 0.5;

bool has_any(const Trace& trace, std::initializer_list<OpKind> kinds) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [&](const Op& op) {
    return op.duration.count() > 0 && std::find(kinds.begin(), kinds.end(), op.kind) != kinds.end();
  });
}

bool has_host_time(const Trace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
    return op.host_gap.count() > 0 || op.host_cost.count() > 0 ||
           (op.kind == OpKind::host_work && op.duration.count() > 0);
  });
}

// The same machine with those links twice as fast: work that already fills one would be no faster by itself.
template <typename Is>
Machine with_faster_links(Machine machine, Is is) {
  for (std::uint16_t l = 0; l < machine.links.size(); ++l) {
    if (!is(l)) continue;
    machine.links[l].bandwidth /= kTwiceAsFast;
    machine.links[l].sustained /= kTwiceAsFast;
  }
  return machine;
}

}  // namespace

std::vector<Speedup> try_speedups(const Run& run, const std::function<Run(SharedTrace, const Machine&)>& run_again) {
  if (!run.pager.empty()) return {};
  std::vector<Speedup> all;
  const auto add = [&](const char* what, const ScaleFactors& factors, const Machine& machine) {
    all.push_back({what, mean_step(run_again(SharedTrace(scaled(run.trace, factors)), machine))});
  };
  const Machine& machine = run.machine.one;
  const Trace& trace = run.trace;
  const bool communicates = has_any(trace, {OpKind::collective});
  const auto is_device_memory = [&](std::uint16_t link) { return link == machine.hbm_link; };
  const auto is_host_memory = [&](std::uint16_t link) { return link == machine.dram_link; };
  const auto is_between = [&](std::uint16_t link) { return !is_device_memory(link) && !is_host_memory(link); };
  if (has_any(trace, {OpKind::kernel, OpKind::memset}))
    add("kernels", {.kernels = kTwiceAsFast, .collectives = communicates ? std::optional(1.0) : std::nullopt},
        with_faster_links(machine, is_device_memory));
  if (has_host_time(trace)) add("host", {.host = kTwiceAsFast}, with_faster_links(machine, is_host_memory));
  if (has_any(trace, {OpKind::copy, OpKind::storage_io}))
    add("copies", {.copies = kTwiceAsFast}, with_faster_links(machine, is_between));
  if (communicates) add("collectives", {.collectives = kTwiceAsFast}, machine);
  return all;
}

}  // namespace memwall
