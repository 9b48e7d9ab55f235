#include "study/explain/shadow_price.h"

#include <algorithm>

namespace memwall {
namespace {

constexpr double kGiga = 1e9;

class ResourceReader {
 public:
  ResourceReader(const Run& run, const std::vector<VariedNumber>& numbers)
      : run_(run), machine_(run.machine.one), numbers_(numbers) {}

  std::vector<Resource> read() {
    add_memory();
    add("gpu.hbm.bandwidth", machine_.links[machine_.hbm_link].bandwidth, "GB/s");
    for (const VariedNumber& number : numbers_)
      if (number.kind == NumberKind::way) add(number.name, number.value * kGiga, "GB/s");
    return std::move(resources_);
  }

 private:
  void add_memory() {
    const int tier = machine_.tier("hbm");
    if (tier < 0) return;
    const Tier& device = machine_.tiers[static_cast<std::size_t>(tier)];
    // The machine is the one that the scenario's budget has made: what of its memory is the step's.
    add("budget", static_cast<double>(device.usable() - run_.trace->untracked_bytes), "GB");
    for (const MemoryBudget& budget : run_.trace->budgets)
      add(budget.policy + ".budget", static_cast<double>(budget.bytes), "GB");
    if (resources_.empty()) add("gpu.hbm.capacity", static_cast<double>(device.capacity), "GB");
  }

  // Where the scenario has a number of that name. `amount`: in bytes, or bytes per second.
  void add(const std::string& name, double amount, const char* unit) {
    const auto found = std::ranges::find(numbers_, name, &VariedNumber::name);
    if (found != numbers_.end() && amount > 0) resources_.push_back({*found, amount / kGiga, unit});
  }

  const Run& run_;
  const Machine& machine_;
  const std::vector<VariedNumber>& numbers_;
  std::vector<Resource> resources_;
};

Scenario with_share(const Scenario& scenario, const Resource& resource, double factor) {
  return with_value(scenario, resource.number, resource.number.value * factor);
}

// Seconds less for a unit more.
double price(double lower, double step_at_lower, double upper, double step_at_upper) {
  return (step_at_lower - step_at_upper) / (upper - lower);
}

}  // namespace

std::vector<Resource> resources_of(const Run& run, const std::vector<VariedNumber>& numbers) {
  return ResourceReader(run, numbers).read();
}

std::vector<ShadowPrice> shadow_prices(ScenarioPoints& points, const Scenario& scenario, const PointFigures& here,
                                       const std::vector<Resource>& resources, double share,
                                       double dollars_per_second) {
  std::vector<Scenario> scenarios;
  for (const Resource& resource : resources) {
    scenarios.push_back(with_share(scenario, resource, 1 - share));
    scenarios.push_back(with_share(scenario, resource, 1 + share));
  }
  const std::vector<PointRecord> records = points.run(scenarios);
  std::vector<ShadowPrice> prices;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    ShadowPrice p{.resource = resources[i]};
    const double amount = p.resource.amount;
    p.lower = {amount * (1 - share), figures_of(records[2 * i]), records[2 * i].error};
    p.upper = {amount * (1 + share), figures_of(records[2 * i + 1]), records[2 * i + 1].error};
    if (p.lower.figures) p.below = price(p.lower.value, p.lower.figures->step_time, amount, here.step_time);
    if (p.upper.figures) p.above = price(amount, here.step_time, p.upper.value, p.upper.figures->step_time);
    if (p.below && p.above)
      p.seconds = price(p.lower.value, p.lower.figures->step_time, p.upper.value, p.upper.figures->step_time);
    else
      p.seconds = p.below ? p.below : p.above;
    if (p.seconds && dollars_per_second > 0) p.dollars = *p.seconds * dollars_per_second;
    prices.push_back(std::move(p));
  }
  return prices;
}

}  // namespace memwall
