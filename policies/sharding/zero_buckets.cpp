#include "policies/sharding/zero_buckets.h"

#include <algorithm>

namespace memwall {

std::vector<std::vector<std::size_t>> fill_buckets(const std::vector<Bytes>& sizes, Bytes limit, BucketRule rule,
                                                   Bytes first) {
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<std::size_t> open;
  Bytes filled = 0;
  const auto close = [&] {
    if (!open.empty()) buckets.push_back(std::move(open));
    open.clear();
    filled = 0;
  };
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (open.size() == kMostTensors) close();
    if (rule == BucketRule::never_exceed && filled + sizes[i] > limit) close();
    open.push_back(i);
    filled += sizes[i];
    const Bytes reached = buckets.empty() ? std::min(limit, first) : limit;
    if (rule == BucketRule::close_when_reached && filled >= reached) close();
  }
  close();
  return buckets;
}

}  // namespace memwall
