// What makes a route no faster than it is: the slowest of its links, what its file says of the way itself, or how a
// storage device is asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/machine/machine.h"

namespace memwall {

struct RouteBound {
  BytesPerSecond bandwidth = 0;      // of one transfer alone
  std::vector<std::uint16_t> links;  // those that allow no more, in the order of the route
  bool stated = false;               // its file states no more
  bool requests = false;             // neither does it, nor a link: a storage device is asked no faster
};
RouteBound bound_of(const Machine& machine, const Route& route);

// "pcie_uplink_h2d, pcie_h2d", "the route itself", "requests".
std::string text_of(const RouteBound& bound, const Machine& machine);

// Of one GPU while all that share the route's links use them.
struct SharedBound {
  BytesPerSecond bandwidth = 0;
  std::vector<std::uint16_t> links;  // those that allow no more; none: they have enough for all
};
SharedBound shared_bound_of(const Machine& machine, const Route& route);

}  // namespace memwall
