// Is every solution feasible and max-min optimal, whatever the flows and links?
#include "sim/engine/fair_share.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

RC_GTEST_PROP(FairShareProperty, FeasibleAndMaxMinOptimal, ()) {
  const auto links = *rc::gen::inRange<std::size_t>(1, 6);
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  std::vector<double> capacities;
  for (std::size_t l = 0; l < links; ++l) capacities.push_back(*rc::gen::inRange(1, 1000));
  std::vector<std::vector<std::pair<std::uint16_t, double>>> crossed(count);
  std::vector<FlowDemand> flows(count);
  for (std::size_t f = 0; f < count; ++f) {
    for (std::size_t l = 0; l < links; ++l)
      if (*rc::gen::inRange(0, 2) == 1) crossed[f].emplace_back(static_cast<std::uint16_t>(l), *rc::gen::inRange(1, 4));
    flows[f] = {static_cast<double>(*rc::gen::inRange(1, 5)), static_cast<double>(*rc::gen::inRange(1, 500)),
                crossed[f]};
  }
  const auto rates = fair_share(flows, capacities);
  std::vector<double> load(links, 0);
  for (std::size_t f = 0; f < count; ++f) {
    RC_ASSERT(rates[f] > 0);
    RC_ASSERT(rates[f] <= flows[f].cap * (1 + 1e-9));
    for (const auto& [l, m] : crossed[f]) load[l] += m * rates[f];
  }
  for (std::size_t l = 0; l < links; ++l) RC_ASSERT(load[l] <= capacities[l] * (1 + 1e-9));
  for (std::size_t f = 0; f < count; ++f) {
    if (rates[f] >= flows[f].cap * (1 - 1e-9)) continue;
    // Below its cap: some saturated link on which no flow has a larger rate per weight.
    bool justified = false;
    for (const auto& [l, m] : crossed[f]) {
      if (load[l] < capacities[l] * (1 - 1e-9)) continue;
      bool largest = true;
      for (std::size_t g = 0; g < count; ++g)
        for (const auto& [other, multiplicity] : crossed[g])
          if (other == l && rates[g] / flows[g].weight > rates[f] / flows[f].weight * (1 + 1e-9)) largest = false;
      justified = justified || largest;
    }
    RC_ASSERT(justified);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
