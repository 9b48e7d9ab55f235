#include "traces/run/analysis/device_memory.h"

#include <algorithm>
#include <set>

#include "sim/trace/ranks.h"
#include "traces/run/analysis/first_steps.h"

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

struct RankUse {
  std::set<std::uint16_t> product_streams, groups;
};

std::vector<RankUse> uses_of_ranks(const Trace& trace) {
  std::vector<RankUse> uses(rank_count(trace));
  for (const Op& op : trace.ops) {
    const bool product = op.kind == OpKind::kernel && op.operator_class == OperatorClass::gemm;
    if (!product && op.kind != OpKind::collective) continue;
    RankUse& use = uses[uses.size() == 1 ? 0 : rank_of(trace, op)];
    if (product) use.product_streams.insert(op.stream);
    if (op.kind == OpKind::collective) use.groups.insert(op.group);
  }
  return uses;
}

DeviceMemory memory_of_rank(const Run& run, std::size_t tier, const RankUse& use) {
  const TierResult& result = run.result.tiers[tier];
  const Trace& trace = *run.trace;
  DeviceMemory memory;
  memory.allocated = result.peak_allocated;
  memory.reserved = result.peak_reserved;
  memory.context = run.machine.tiers[tier].unavailable;
  memory.product_streams = use.product_streams.size();
  memory.workspaces = static_cast<Bytes>(use.product_streams.size()) *
                      (run.machine.gpu.compute_major >= kHopper ? kWorkspaceSinceHopper : kWorkspace);
  memory.communicators = static_cast<std::size_t>(
      std::ranges::count_if(use.groups, [&](std::uint16_t group) { return ranks_of(trace, group) > 1; }));
  memory.channels = has_nvlink(run.machine) ? kChannelsOfNvlink : kChannelsOtherwise;
  memory.communication =
      static_cast<Bytes>(memory.communicators) * memory.channels * (kSimple + kLowLatency + kLowLatency128);
  return memory;
}

}  // namespace

std::optional<DeviceMemory> device_memory(const Run& run) {
  const int hbm = run.machine.one.tiers.empty() ? run.machine.tier("hbm") : run.machine.one.tier("hbm");
  if (hbm < 0) return std::nullopt;
  const std::vector<RankUse> uses = uses_of_ranks(*run.trace);
  std::vector<std::size_t> tiers;
  for (std::size_t rank = 0; rank < uses.size(); ++rank)
    tiers.push_back(rank < run.machine.views.size() ? run.machine.views[rank].tier[static_cast<std::size_t>(hbm)]
                                                    : static_cast<std::size_t>(hbm));
  const std::vector<std::optional<Bytes>> first = reserved_from_first_step(run, tiers);
  std::optional<DeviceMemory> fullest;
  for (std::size_t rank = 0; rank < uses.size(); ++rank) {
    if (tiers[rank] >= run.result.tiers.size()) continue;
    DeviceMemory memory = memory_of_rank(run, tiers[rank], uses[rank]);
    memory.from_first_step = first[rank].value_or(0);
    if (!fullest || memory.shown() > fullest->shown()) fullest = memory;
  }
  return fullest;
}

}  // namespace memwall
