#include "policies/cycle/binding_windows.h"

#include <algorithm>
#include <utility>

namespace memwall {
namespace {

// Chosen on the workloads of data/g10.
constexpr double kCovers = 10, kIsInTheWay = 0.1;
// Storages below this part of the budget do not fill windows: there are many of them.
constexpr Bytes kFinestFilling = 4096;

std::int64_t wrapped(std::int64_t slot, std::int64_t turn) { return ((slot % turn) + turn) % turn; }

}  // namespace

std::vector<double> weights_by_windows(const StepCycle& cycle, const MovesBound& bound) {
  const std::int64_t turn = cycle.size();
  std::vector<double> weights(cycle.gaps().size(), 1);
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const CycleGap& gap = cycle.gaps()[g];
    for (const BindingWindow& window : bound.windows) {
      const std::int64_t highest = window.peak, peak = highest < gap.begin ? highest + turn : highest;
      const std::int64_t at = wrapped((window.out ? gap.written : gap.end) - window.from, turn);
      if (peak >= gap.begin && peak < gap.end)
        weights[g] *= kCovers;
      else if (at <= window.to - window.from)
        weights[g] *= kIsInTheWay;
    }
  }
  return weights;
}

std::vector<std::uint32_t> gaps_filling_windows(const StepCycle& cycle, const MovesBound& bound, Bytes budget) {
  std::vector<std::uint32_t> all;
  const std::int64_t turn = cycle.size();
  for (const BindingWindow& window : bound.windows) {
    const std::int64_t highest = window.peak;
    std::vector<std::pair<std::int64_t, std::uint32_t>> covering;  // slots that copies have time: most first
    for (std::uint32_t g = 0; g < cycle.gaps().size(); ++g) {
      const CycleGap& gap = cycle.gaps()[g];
      const std::int64_t peak = highest < gap.begin ? highest + turn : highest;
      if (peak >= gap.end || cycle.storages()[gap.storage].held < budget / kFinestFilling) continue;
      covering.emplace_back(window.out ? gap.written - peak : peak - gap.end, g);
    }
    std::sort(covering.begin(), covering.end());
    Bytes open = cycle.live()[static_cast<std::size_t>(highest)] - budget;
    for (const auto& [time, g] : covering) {
      if (open <= 0) break;
      open -= cycle.storages()[cycle.gaps()[g].storage].held;
      all.push_back(g);
    }
  }
  return all;
}

}  // namespace memwall
