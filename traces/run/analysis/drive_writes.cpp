#include "traces/run/analysis/drive_writes.h"

#include <algorithm>
#include <cmath>

#include "sim/machine/shared_tier.h"
#include "traces/run/analysis/run_period.h"

namespace memwall {
namespace {

constexpr double kSecondsPerDay = 86400;

constexpr double kMostSteps = 1e12;  // what takes longer to fill is in balance, but for rounding

// Of what differs by less than that share, nothing: it is rounding.
double growth(const Link& link, double written, double seconds) {
  constexpr double kSlack = 1e-9;
  const double more = written - link.sustained * seconds;
  return std::abs(more) <= kSlack * written ? 0 : more;
}

// The links of that name of all ranks, each node's once: the one that carries most.
std::size_t most_written(const Run& run, std::size_t link) {
  std::size_t most = link;
  for (const RankView& view : run.machine.views) {
    if (link >= view.link.size()) continue;
    const std::size_t of_rank = view.link[link];
    if (run.result.links[of_rank].bytes > run.result.links[most].bytes) most = of_rank;
  }
  return most;
}

// Of all the drives: where ranks are folded, the tier of the run is one rank's part.
double whole_capacity(const Run& run, std::size_t tier) {
  const std::uint32_t folded = run.trace->rank_table.empty() ? run.trace->ranks : 1;
  return static_cast<double>(run.machine.tiers[tier].capacity) * ranks_in_tier(run.machine, tier, folded);
}

// Steps from an empty cache until it is full; nothing: what they write does not fill it. `more`: by which it grows from
// step to step.
std::optional<std::uint64_t> steps_until_full(const Link& link, const LinkResult& result, double more, double steps) {
  const double growing = static_cast<double>(link.write_cache) / more;
  double count = more > 0 ? std::ceil(growing) : kMostSteps;
  if (result.cache_full > Duration{}) count = std::min(count, steps);  // within the run
  if (count < kMostSteps) return static_cast<std::uint64_t>(count);
  return std::nullopt;
}

DriveWrites writes_of(const Run& run, std::size_t tier_index, std::size_t link_index, const RunPeriod& period) {
  const Tier& tier = run.machine.tiers[tier_index];
  const Link& link = run.machine.links[link_index];
  const LinkResult& result = run.result.links[link_index];
  DriveWrites writes;
  writes.bytes = static_cast<double>(result.bytes) / period.steps;
  writes.cache_full = from_seconds(to_seconds(result.cache_full) / period.steps);
  const double seconds = period.seconds_per_step();
  if (seconds > 0) writes.per_day = writes.bytes * kSecondsPerDay / seconds;
  if (tier.capacity > 0) writes.drive_writes_per_day = writes.per_day / whole_capacity(run, tier_index);
  if (tier.endurance > 0 && tier.drives > 0 && writes.per_day > 0)
    writes.life_days = static_cast<double>(tier.endurance) * tier.drives / writes.per_day;
  writes.falls_off = link.falls_off();
  if (writes.falls_off)
    writes.full_after_steps = steps_until_full(link, result, growth(link, writes.bytes, seconds), period.steps);
  return writes;
}

}  // namespace

std::vector<std::optional<DriveWrites>> drive_writes(const Run& run) {
  std::vector<std::optional<DriveWrites>> all(run.machine.tiers.size());
  std::optional<RunPeriod> period;
  for (std::size_t t = 0; t < all.size() && t < run.machine.one.tiers.size(); ++t) {
    const Tier& tier = run.machine.tiers[t];
    if (tier.write_link < 0 || run.result.links.size() != run.machine.links.size()) continue;
    const std::size_t link = most_written(run, static_cast<std::size_t>(tier.write_link));
    if (run.result.links[link].bytes == 0) continue;
    if (!period) period = run_period(run);
    all[t] = writes_of(run, t, link, *period);
  }
  return all;
}

double cache_growth(const Run& run, std::size_t link) {
  const RunPeriod period = run_period(run);
  return growth(run.machine.links[link], static_cast<double>(run.result.links[link].bytes) / period.steps,
                period.seconds_per_step());
}

}  // namespace memwall
