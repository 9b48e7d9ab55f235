#include "sim/machine/machine.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memwall {

double EfficiencyCurve::at(double bytes) const {
  if (points.empty()) return 1;
  if (bytes <= points.front().first) return points.front().second;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (bytes > points[i].first) continue;
    const auto& [x0, y0] = points[i - 1];
    const auto& [x1, y1] = points[i];
    return y0 + (y1 - y0) * (std::log2(bytes) - std::log2(x0)) / (std::log2(x1) - std::log2(x0));
  }
  return points.back().second;
}

double Route::share_of(std::uint16_t link) const {
  const auto found = std::find(links.begin(), links.end(), link);
  return link_shares.empty() ? 1 : link_shares[static_cast<std::size_t>(found - links.begin())];
}

int Machine::tier(const std::string& tier_name) const {
  for (std::size_t i = 0; i < tiers.size(); ++i)
    if (tiers[i].name == tier_name) return static_cast<int>(i);
  return -1;
}

int Machine::link(const std::string& link_name) const {
  for (std::size_t i = 0; i < links.size(); ++i)
    if (links[i].name == link_name) return static_cast<int>(i);
  return -1;
}

const Route* route_among(const std::vector<Route>& routes, int from, int to, bool pageable) {
  const Route* other = nullptr;
  for (const Route& r : routes) {
    if (r.from != from || r.to != to) continue;
    if (r.pageable == pageable) return &r;
    other = &r;
  }
  return other;
}

std::optional<Route> Machine::work_in(int tier) const {
  const auto index = static_cast<std::size_t>(tier);
  const int host_tier = this->tier("host");
  Route work;
  work.from = work.to = static_cast<std::uint16_t>(tier);
  const auto add = [&](std::uint16_t link, double share) {
    const auto found = std::find(work.links.begin(), work.links.end(), link);
    if (found == work.links.end()) {
      work.links.push_back(link);
      work.link_shares.push_back(share);
    } else {
      work.link_shares[static_cast<std::size_t>(found - work.links.begin())] += share;
    }
  };
  if (tiers[index].compute > 0) {
    if (tiers[index].memory_link >= 0) add(static_cast<std::uint16_t>(tiers[index].memory_link), 1);
  } else if (tier == host_tier) {
    add(dram_link, 1);
  } else {
    const Route* read = route(tier, host_tier, false);
    const Route* written = route(host_tier, tier, false);
    if (read == nullptr || written == nullptr) return std::nullopt;
    for (const Route* way : {read, written})
      for (std::size_t l = 0; l < way->links.size(); ++l)
        if (way->links[l] != dram_link) add(way->links[l], 0.5 * (way->link_shares.empty() ? 1 : way->link_shares[l]));
  }
  work.bandwidth = std::numeric_limits<double>::infinity();
  for (std::size_t l = 0; l < work.links.size(); ++l)
    work.bandwidth = std::min(work.bandwidth, links[work.links[l]].bandwidth / work.link_shares[l]);
  return work;
}

double Machine::price_error(OpKind kind, OperatorClass operator_class) const {
  for (const PriceError& error : price_errors)
    if (error.kind == kind && (kind != OpKind::kernel || error.operator_class == operator_class)) return error.residual;
  return 0;
}

const Fabric* Machine::fabric(std::uint32_t ranks) const {
  for (const Fabric& f : fabrics)
    if (f.max_ranks == 0 || f.max_ranks >= ranks) return &f;
  return nullptr;
}

}  // namespace memwall
