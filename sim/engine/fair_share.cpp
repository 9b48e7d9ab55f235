#include "sim/engine/fair_share.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace memwall {

std::span<const double> FairShare::rates(std::span<const FlowDemand> flows, std::span<const double> capacities) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  // Below this share of a capacity a link counts as full: doubles carry 53 bits, sums of a few hundred terms lose some.
  constexpr double kFull = 1e-12;
  rate_.assign(flows.size(), 0);
  left_.assign(capacities.begin(), capacities.end());
  open_.resize(flows.size());
  std::iota(open_.begin(), open_.end(), 0u);
  while (!open_.empty()) {
    pull_.assign(capacities.size(), 0);
    double raise = kInfinite;  // of r / w, common to all open flows
    for (const std::uint32_t f : open_) {
      for (const auto& [link, multiplicity] : flows[f].links) pull_[link] += multiplicity * flows[f].weight;
      raise = std::min(raise, (flows[f].cap - rate_[f]) / flows[f].weight);
    }
    for (std::size_t l = 0; l < pull_.size(); ++l)
      if (pull_[l] > 0) raise = std::min(raise, std::max(left_[l], 0.0) / pull_[l]);
    for (std::size_t l = 0; l < pull_.size(); ++l) left_[l] -= raise * pull_[l];
    const auto stops = [&](std::uint32_t f) {
      rate_[f] += raise * flows[f].weight;
      bool stop = rate_[f] >= flows[f].cap * (1 - kFull);
      if (stop) rate_[f] = flows[f].cap;
      for (const auto& [link, multiplicity] : flows[f].links) stop = stop || left_[link] <= capacities[link] * kFull;
      return stop;
    };
    if (std::erase_if(open_, stops) == 0) break;  // rounding left a hair of capacity: nothing more to give
  }
  return rate_;
}

std::vector<double> fair_share(std::span<const FlowDemand> flows, std::span<const double> capacities) {
  FairShare solver;
  const std::span<const double> rates = solver.rates(flows, capacities);
  return {rates.begin(), rates.end()};
}

}  // namespace memwall
