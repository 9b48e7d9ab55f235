#include "models/hw/storage_cost.h"

#include <algorithm>
#include <limits>

namespace memwall {

BytesPerSecond request_bandwidth(const StorageRequests& requests) {
  double limit = std::numeric_limits<double>::infinity();
  const auto block = static_cast<double>(requests.block);
  if (block <= 0) return limit;
  if (requests.latency.count() > 0) limit = requests.depth * block / to_seconds(requests.latency);
  if (requests.per_second > 0) limit = std::min(limit, block * requests.per_second);
  return limit;
}

}  // namespace memwall
