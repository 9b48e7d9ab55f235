// Shadow prices: what one unit more of a resource takes off a step, in seconds, and in dollars where the machine has a
// price per hour. Found by simulating with a share more and less of it.
//
//   budget, plan.budget, gpu.hbm.capacity   memory, in GB: budgets of the scenario and its policies, else the device's
//   gpu.hbm.bandwidth                       what kernels cross, in GB/s
//   host to hbm, between hbm and host       ways between memories, in GB/s (study/explain/varied_number.h)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/explain/elasticity.h"
#include "traces/run/run.h"

namespace memwall {

struct Resource {
  VariedNumber number{};
  double amount = 0;   // in `unit`, whatever the number's own unit is
  std::string unit{};  // "GB", "GB/s"
};

// Those of the scenario: its budgets, else the device's memory; the bandwidth of that; ways between memories. `run`: of
// the scenario; `numbers`: of it that may be varied.
std::vector<Resource> resources_of(const Run& run, const std::vector<VariedNumber>& numbers);

struct ShadowPrice {
  Resource resource{};
  // Seconds that a step takes less for one unit more: over both sides; from less of it; from more of it. Negative: a
  // step gets longer. Nothing where that side was refused.
  std::optional<double> seconds{}, below{}, above{};
  std::optional<double> dollars{};  // of one step on all its GPUs; nothing without a price per hour
  VariedSide lower{}, upper{};      // values: amounts of the resource

  bool is_zero() const { return seconds.value_or(0) == 0 && below.value_or(0) == 0 && above.value_or(0) == 0; }
};

// `dollars_per_second`: of the job; 0 = not known.
std::vector<ShadowPrice> shadow_prices(ScenarioPoints& points, const Scenario& scenario, const PointFigures& here,
                                       const std::vector<Resource>& resources, double share, double dollars_per_second);

}  // namespace memwall
