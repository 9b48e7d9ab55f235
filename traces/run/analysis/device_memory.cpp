#include "traces/run/analysis/device_memory.h"

#include <algorithm>
#include <set>

#include "sim/trace/ranks.h"

namespace memwall {
namespace {

constexpr Bytes kMiB = 1 << 20, kKiB = 1 << 10;
constexpr Bytes kWorkspace = 8320 * kKiB, kWorkspaceSinceHopper = 32 * kMiB;
constexpr Bytes kSimple = 4 * kMiB, kLowLatency = 512 * kKiB, kLowLatency128 = 4800 * kKiB;
constexpr int kChannelsOfNvlink = 24, kChannelsOtherwise = 4, kHopper = 9;

bool has_nvlink(const Machine& machine) {
  return std::ranges::any_of(machine.links, [](const Link& link) { return link.name.starts_with("nvlink"); });
}

// A group that the trace says nothing of is all ranks.
std::size_t ranks_of(const Trace& trace, std::uint16_t group) {
  const bool is_known = group < trace.groups.size() && trace.groups[group].ranks > 0;
  return is_known ? trace.groups[group].ranks : std::max<std::size_t>(trace.ranks, rank_count(trace));
}

}  // namespace

std::optional<DeviceMemory> device_memory(const Run& run) {
  const int hbm = run.machine.tier("hbm");
  if (hbm < 0 || static_cast<std::size_t>(hbm) >= run.result.tiers.size()) return std::nullopt;
  const TierResult& result = run.result.tiers[static_cast<std::size_t>(hbm)];
  DeviceMemory memory;
  memory.allocated = result.peak_allocated;
  memory.reserved = result.peak_reserved;
  memory.context = run.machine.tiers[static_cast<std::size_t>(hbm)].unavailable;
  const Trace& trace = *run.trace;
  std::set<std::uint16_t> streams, groups;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::kernel && op.operator_class == OperatorClass::gemm) streams.insert(op.stream);
    if (op.kind == OpKind::collective) groups.insert(op.group);
  }
  memory.product_streams = streams.size();
  memory.workspaces = static_cast<Bytes>(streams.size()) *
                      (run.machine.gpu.compute_major >= kHopper ? kWorkspaceSinceHopper : kWorkspace);
  memory.communicators = static_cast<std::size_t>(
      std::ranges::count_if(groups, [&](std::uint16_t group) { return ranks_of(trace, group) > 1; }));
  memory.channels = has_nvlink(run.machine) ? kChannelsOfNvlink : kChannelsOtherwise;
  memory.communication = static_cast<Bytes>(memory.communicators) * memory.channels *
                         (kSimple + kLowLatency + kLowLatency128);
  return memory;
}

}  // namespace memwall
