#include "sim/machine.h"

#include <cmath>

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

const Route* Machine::route(int from, int to, bool pageable) const {
  const Route* other = nullptr;
  for (const Route& r : routes) {
    if (r.from != from || r.to != to) continue;
    if (r.pageable == pageable) return &r;
    other = &r;
  }
  return other;
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
