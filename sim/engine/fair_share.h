// How flows share links: weighted max-min fairness with a cap per flow.
//
// Given flows f with weight w_f and cap c_f, each crossing a set of links with a
// multiplicity m_{f,l}, and links l with capacity C_l, find rates r_f such that
//   0 <= r_f <= c_f   and   sum over f of m_{f,l} * r_f <= C_l   for every l,
// and such that no r_f / w_f can grow without shrinking one that is not larger.
// Equivalently every flow is at its cap, or crosses a saturated link on which no
// other flow has a larger r / w. Found by raising all rates together ("progressive
// filling": Bertsekas and Gallager, Data Networks, section 6.5.2). A pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace memwall {

struct FlowDemand {
  double weight = 1;
  double cap = 0;                                           // bytes per second
  std::span<const std::pair<std::uint16_t, double>> links;  // (index into capacities, multiplicity)
};

// Solves one set of flows after the other in the same memory.
class FairShare {
 public:
  // Rates in bytes per second, in the order of `flows`; valid until the next call. REQUIRES: weights > 0, caps >= 0,
  // multiplicities > 0, capacities >= 0.
  std::span<const double> rates(std::span<const FlowDemand> flows, std::span<const double> capacities);

 private:
  std::vector<double> rate_, left_, pull_;  // by flow; by link
  std::vector<std::uint32_t> open_;         // flows that can still be raised, ascending
};

// The same, once.
std::vector<double> fair_share(std::span<const FlowDemand> flows, std::span<const double> capacities);

}  // namespace memwall
