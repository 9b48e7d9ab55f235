#include "sim/engine/fair_share.h"

#include <algorithm>
#include <limits>

namespace memwall {

std::vector<double> fair_share(std::span<const FlowDemand> flows, std::span<const double> capacities) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  // Below this share of a capacity a link counts as full: doubles carry 53 bits, sums of a few hundred terms lose some.
  constexpr double kFull = 1e-12;
  std::vector<double> rate(flows.size(), 0);
  std::vector<bool> frozen(flows.size(), false);
  std::vector<double> left(capacities.begin(), capacities.end());
  std::vector<double> pull(capacities.size());
  for (std::size_t open = flows.size(); open > 0;) {
    std::fill(pull.begin(), pull.end(), 0.0);
    double raise = kInfinite;  // of r / w, common to all open flows
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (frozen[f]) continue;
      for (const auto& [link, multiplicity] : flows[f].links) pull[link] += multiplicity * flows[f].weight;
      raise = std::min(raise, (flows[f].cap - rate[f]) / flows[f].weight);
    }
    for (std::size_t l = 0; l < pull.size(); ++l)
      if (pull[l] > 0) raise = std::min(raise, std::max(left[l], 0.0) / pull[l]);
    for (std::size_t l = 0; l < pull.size(); ++l) left[l] -= raise * pull[l];
    const std::size_t before = open;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (frozen[f]) continue;
      rate[f] += raise * flows[f].weight;
      bool stops = rate[f] >= flows[f].cap * (1 - kFull);
      if (stops) rate[f] = flows[f].cap;
      for (const auto& [link, multiplicity] : flows[f].links) stops = stops || left[link] <= capacities[link] * kFull;
      if (stops) {
        frozen[f] = true;
        --open;
      }
    }
    if (open == before) break;  // rounding left a hair of capacity: nothing more to give
  }
  return rate;
}

}  // namespace memwall
