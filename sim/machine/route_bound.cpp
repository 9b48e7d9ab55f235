#include "sim/machine/route_bound.h"

#include <algorithm>

namespace memwall {

RouteBound bound_of(const Machine& machine, const Route& route) {
  RouteBound bound;
  bound.bandwidth = route.bandwidth;
  for (const std::uint16_t link : route.links)
    if (machine.links[link].bandwidth / route.share_of(link) <= route.bandwidth) bound.links.push_back(link);
  bound.stated = route.stated > 0 && route.stated <= route.bandwidth;
  bound.requests = !bound.stated && bound.links.empty();
  return bound;
}

std::string text_of(const RouteBound& bound, const Machine& machine) {
  std::string text;
  for (const std::uint16_t link : bound.links) text += (text.empty() ? "" : ", ") + machine.links[link].name;
  if (bound.stated) text += text.empty() ? "the route itself" : ", the route itself";
  return text.empty() ? "requests" : text;
}

SharedBound shared_bound_of(const Machine& machine, const Route& route) {
  const auto of_each = [&](std::uint16_t link) {
    const Link& l = machine.links[link];
    return l.bandwidth / std::max(1u, l.sharers) / route.share_of(link);
  };
  SharedBound bound{route.bandwidth, {}};
  for (const std::uint16_t link : route.links) bound.bandwidth = std::min(bound.bandwidth, of_each(link));
  if (bound.bandwidth < route.bandwidth)
    for (const std::uint16_t link : route.links)
      if (of_each(link) <= bound.bandwidth) bound.links.push_back(link);
  return bound;
}

}  // namespace memwall
