#include "traces/run/analysis/host_share.h"

#include <algorithm>
#include <limits>

namespace memwall {

double HostShare::longer_by(double factor) const { return std::max({1.0, 1 + (factor - 1) * path, factor * thread}); }

double HostShare::shorter_by(double factor) const { return 1 - (1 - 1 / factor) * path; }

double HostShare::factor_of(double relative) const {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (relative < 1) return path > 1 - relative ? 1 / (1 - (1 - relative) / path) : kNone;
  const double by_path = path > 0 ? 1 + (relative - 1) / path : kNone;
  const double by_thread = thread > 0 ? relative / thread : kNone;
  return std::max(1.0, std::min(by_path, by_thread));
}

}  // namespace memwall
