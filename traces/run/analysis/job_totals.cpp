#include "traces/run/analysis/job_totals.h"

#include <algorithm>

#include "traces/run/analysis/run_period.h"

namespace memwall {
namespace {

std::vector<JobTier> tiers_of_job(const Run& run, double ranks) {
  std::vector<JobTier> tiers;
  for (std::size_t t = 0; t < run.machine.tiers.size() && t < run.result.tiers.size(); ++t) {
    const TierResult& result = run.result.tiers[t];
    if (result.peak_allocated == 0) continue;
    JobTier tier{run.machine.tiers[t].name,
                 static_cast<double>(result.peak_allocated) * ranks,
                 static_cast<double>(run.machine.tiers[t].holds()) * ranks,
                 {}};
    for (std::size_t k = 0; k < kStorageKinds; ++k)
      tier.by_kind[k] = static_cast<double>(result.peak_by_kind[k]) * ranks;
    tiers.push_back(std::move(tier));
  }
  return tiers;
}

// Links that some way from or to storage takes and none that ends elsewhere.
std::vector<bool> storage_links(const Machine& machine) {
  std::vector<bool> to_storage(machine.links.size(), false), elsewhere(machine.links.size(), false);
  for (const Route& route : machine.routes) {
    const bool storage = machine.tiers[route.from].tier_class == TierClass::storage ||
                         machine.tiers[route.to].tier_class == TierClass::storage;
    for (const std::uint16_t link : route.links) (storage ? to_storage : elsewhere)[link] = true;
  }
  for (std::size_t l = 0; l < to_storage.size(); ++l) to_storage[l] = to_storage[l] && !elsewhere[l];
  return to_storage;
}

std::vector<JobLink> links_of_job(const Run& run, double ranks) {
  const RunPeriod period = run_period(run);
  const double seconds = period.seconds_per_step();
  const std::vector<bool> to_storage = storage_links(run.machine.one);
  std::vector<JobLink> links;
  for (std::size_t l = 0; l < run.machine.links.size() && l < run.result.links.size(); ++l) {
    const LinkResult& result = run.result.links[l];
    if (result.bytes == 0) continue;
    const double behind = std::max(1u, std::min(run.trace->ranks, run.machine.links[l].sharers));
    JobLink link{run.machine.links[l].name, ranks / behind, 0, 0, 0, l < to_storage.size() && to_storage[l]};
    const double all = static_cast<double>(result.bytes) * link.count;
    link.bytes = all / period.steps;
    if (seconds > 0) link.bytes_per_second = link.bytes / seconds;
    if (result.busy > Duration{}) link.busy_bytes_per_second = all / to_seconds(result.busy);
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace

std::optional<JobTotals> job_totals(const Run& run, const std::optional<FlopsUse>& flops) {
  if (run.trace->ranks <= 1 || !run.trace->rank_table.empty()) return std::nullopt;
  JobTotals job;
  job.ranks = run.trace->ranks;
  const double ranks = job.ranks;
  const RunPeriod period = run_period(run);
  if (const double seconds = to_seconds(period.end - period.begin); flops && seconds > 0) {
    job.model_flops_per_second = flops->flops * ranks / seconds;
    job.recomputed_flops_per_second = flops->recomputed * ranks / seconds;
  }
  job.tiers = tiers_of_job(run, ranks);
  job.links = links_of_job(run, ranks);
  return job;
}

}  // namespace memwall
