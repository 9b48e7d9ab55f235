#include "study/alone_step.h"

#include <algorithm>

#include "sim/machine/shared_tier.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

constexpr std::int64_t kLeastPart = 200;  // of the step: less is told to nobody

bool is_in_a_fabric(const Machine& machine, std::size_t link) {
  return std::any_of(machine.fabrics.begin(), machine.fabrics.end(), [&](const Fabric& fabric) {
    return std::find(fabric.links.begin(), fabric.links.end(), link) != fabric.links.end();
  });
}

bool is_on_a_route(const Machine& machine, std::size_t link) {
  return std::any_of(machine.routes.begin(), machine.routes.end(), [&](const Route& route) {
    return std::find(route.links.begin(), route.links.end(), link) != route.links.end();
  });
}

std::size_t ranks_of(const Trace& trace) {
  std::size_t ranks = trace.rank_table.empty() ? trace.ranks : 0;
  for (const Rank& rank : trace.rank_table) ranks += 1 + rank.stands_for.size();
  return ranks;
}

bool uses_the_host(const Trace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) {
    return op.bytes > 0 && (op.kind == OpKind::host_work || op.kind == OpKind::storage_io ||
                            (op.kind == OpKind::copy && op.from != op.to));
  });
}

bool leads_to(const Machine& machine, std::size_t link, bool storage) {
  const auto stores = [&](std::uint16_t tier) { return machine.tiers[tier].tier_class == TierClass::storage; };
  return std::any_of(machine.routes.begin(), machine.routes.end(), [&](const Route& route) {
    return (stores(route.from) || stores(route.to)) == storage &&
           std::find(route.links.begin(), route.links.end(), link) != route.links.end();
  });
}

SharedResource resource_of(const Machine& machine, std::size_t link) {
  if (link == machine.dram_link) return SharedResource::memory_channels;
  return leads_to(machine, link, true) && !leads_to(machine, link, false) ? SharedResource::storage
                                                                          : SharedResource::links;
}

}  // namespace

Machine without_sharing(Machine machine, std::optional<SharedResource> kept) {
  for (std::size_t t = 0; t < machine.tiers.size(); ++t)
    if (machine.tiers[t].tier_class != TierClass::device && machine.tiers[t].sharers == 0)
      machine.tiers[t].sharers = sharers_of_tier(machine, t);
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const bool of_the_host = is_on_a_route(machine, l) || l == machine.dram_link || !is_in_a_fabric(machine, l);
    if (of_the_host && kept != resource_of(machine, l)) machine.links[l].sharers = 1;
  }
  if (kept != SharedResource::cores) machine.host.cores = 0;  // nobody waits for one
  return machine;
}

Duration alone_step(const Run& run, const std::function<Run(const Machine&)>& run_again) {
  if (ranks_of(run.trace) < 2 || !uses_the_host(run.trace)) return {};
  return mean_step(run_again(without_sharing(run.machine.one)));
}

ContendedSteps contended_steps(const Run& run, const std::function<Run(const Machine&)>& run_again) {
  const Duration step = mean_step(run);
  if (run.alone_step == Duration{} || step - run.alone_step <= step / kLeastPart) return {};
  const auto with = [&](SharedResource kept) { return mean_step(run_again(without_sharing(run.machine.one, kept))); };
  return {.links = with(SharedResource::links),
          .memory_channels = with(SharedResource::memory_channels),
          .cores = with(SharedResource::cores),
          .storage = with(SharedResource::storage)};
}

}  // namespace memwall
