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

Machine with_faster_links(Machine machine) {
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    if (static_cast<int>(l) != machine.hbm_link && static_cast<int>(l) != machine.dram_link)
      machine.links[l].bandwidth /= kTwiceAsFast;
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
  if (has_any(trace, {OpKind::kernel, OpKind::memset}))
    add("kernels", {.kernels = kTwiceAsFast, .collectives = communicates ? std::optional(1.0) : std::nullopt}, machine);
  if (has_host_time(trace)) add("host", {.host = kTwiceAsFast}, machine);
  if (has_any(trace, {OpKind::copy, OpKind::storage_io}))
    add("copies", {.copies = kTwiceAsFast}, with_faster_links(machine));
  if (communicates) add("collectives", {.collectives = kTwiceAsFast}, machine);
  return all;
}

}  // namespace memwall
