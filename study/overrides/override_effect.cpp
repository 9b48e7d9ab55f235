#include "study/overrides/override_effect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "sim/trace/ranks.h"
#include "traces/run/analysis/critical_path.h"
#include "traces/run/analysis/drive_writes.h"
#include "traces/run/analysis/energy.h"
#include "traces/run/analysis/step_interval.h"

namespace memwall {
namespace {

auto times_of(const OpRecord& r) { return std::tie(r.host_start, r.host_end, r.start, r.end); }

// All that matters of a tier: how full it gets, and of how much where it holds anything.
bool same_memory(const Run& a, const Run& b) {
  const auto figures = [](const TierResult& t) {
    return std::tuple(t.peak_allocated, t.peak_reserved, t.missing, t.peak_time, t.allocator.device_mallocs,
                      t.allocator.retries);
  };
  for (std::size_t t = 0; t < a.result.tiers.size(); ++t) {
    const bool holds_any = a.machine.tiers[t].tier_class == TierClass::device || a.result.tiers[t].peak_reserved > 0;
    if (figures(a.result.tiers[t]) != figures(b.result.tiers[t]) ||
        (holds_any && a.machine.tiers[t].holds() != b.machine.tiers[t].holds()))
      return false;
  }
  return true;
}

bool same_course(const Run& a, const Run& b) {
  const SimulationResult &one = a.result, &other = b.result;
  return one.fits == other.fits && one.end == other.end && one.tiers.size() == other.tiers.size() &&
         one.links.size() == other.links.size() && one.moves.size() == other.moves.size() && same_memory(a, b) &&
         std::equal(one.records.begin(), one.records.end(), other.records.begin(), other.records.end(),
                    [](const OpRecord& x, const OpRecord& y) { return times_of(x) == times_of(y); }) &&
         std::equal(one.links.begin(), one.links.end(), other.links.begin(),
                    [](const LinkResult& x, const LinkResult& y) { return x.bytes == y.bytes && x.busy == y.busy; });
}

auto interval_of(const Run& run) {
  const auto interval = step_interval(run, critical_path(run), mean_step(run));
  return interval ? std::tuple(true, interval->low, interval->high) : std::tuple(false, Duration{}, Duration{});
}

bool same_energy(const Run& a, const Run& b) {
  const StepEnergyPrice one = step_energy_price(a), other = step_energy_price(b);
  return std::tie(one.energy, one.gpu_idle, one.gpu_load, one.host, one.price) ==
         std::tie(other.energy, other.gpu_idle, other.gpu_load, other.host, other.price);
}

// Over which fabrics the collectives go, where the override is another one's; "" = another reason, or none.
std::string other_fabrics(const std::string& setting, const Run& run) {
  constexpr std::string_view kPrefix = "fabric.";
  if (!setting.starts_with(kPrefix)) return "";
  std::set<std::string> used;
  for (const Op& op : run.trace->ops) {
    if (op.kind != OpKind::collective) continue;
    const std::uint32_t ranks =
        op.group < run.trace->groups.size() ? run.trace->groups[op.group].ranks : run.trace->ranks;
    if (const Fabric* fabric = run.machine.one.fabric(ranks)) used.insert(fabric->name);
  }
  const std::string name = setting.substr(kPrefix.size(), setting.find('.', kPrefix.size()) - kPrefix.size());
  if (used.empty() || used.contains(name)) return "";
  return fmt::format(": its collectives go over {}", fmt::join(used, ", "));
}

std::string reason_of(const std::string& setting, const Run& run) {
  if (setting.starts_with("gpu_count="))
    return fmt::format(": how many ranks run ({}) is for the step and its policies to say",
                       run.trace->ranks * rank_count(run.trace));
  return other_fabrics(setting, run);
}

// MFU is no property of the run but of what it is held against.
const char* but_mfu(const Run& a, const Run& b) {
  return a.machine.gpu.peaks == b.machine.gpu.peaks ? "" : " but the peak that MFU is held against";
}

}  // namespace

std::vector<std::string> effectless_overrides(const Run& run, const RunUnder& run_under) {
  std::vector<std::string> sentences;
  const std::vector<std::string>& settings = run.changes.overrides;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (std::any_of(run.warnings.begin(), run.warnings.end(),
                    [&](const std::string& warning) { return warning.starts_with(settings[i] + " "); }))
      continue;
    std::vector<std::string> others = settings;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    std::optional<Run> without = run_under(others, false);
    if (!without || !same_course(run, *without) || !same_energy(run, *without) ||
        drive_writes(run) != drive_writes(*without))
      continue;
    const bool replayed = run.step_bounds.high.count() > 0;
    if (replayed && !(without = run_under(others, true))) continue;
    if (interval_of(run) != interval_of(*without)) continue;
    sentences.push_back(fmt::format("{} changes nothing in this run{}{}.", settings[i], but_mfu(run, *without),
                                    reason_of(settings[i], run)));
  }
  return sentences;
}

}  // namespace memwall
