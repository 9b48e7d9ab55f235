#include "policies/sharding/megatron_optimizer_buffer.h"

#include <numeric>

namespace memwall {
namespace {

std::int64_t aligned(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::vector<MegatronBucket> megatron_buckets(const std::vector<std::int64_t>& elements, std::uint32_t ranks,
                                             std::int64_t bucket_size, bool high_bandwidth) {
  constexpr std::int64_t kParameterAlignment = 64, kBucketAlignment = 128, kHighBandwidth = 1 << 16;
  std::int64_t alignment = std::lcm(std::int64_t{ranks}, kBucketAlignment);
  if (high_bandwidth) alignment = std::lcm(alignment, kHighBandwidth);
  std::vector<MegatronBucket> buckets;
  std::int64_t at = 0;
  bool open = false;
  const auto close = [&] {
    at = aligned(at, alignment);
    buckets.back().end = at;
    open = false;
  };
  for (std::size_t i = elements.size(); i-- > 0;) {
    if (!open) buckets.push_back({at, at, {}});
    open = true;
    at = aligned(at, kParameterAlignment) + elements[i];
    buckets.back().parameters.push_back(i);
    if (bucket_size > 0 && at - buckets.back().begin >= bucket_size) close();
  }
  if (open) close();
  return buckets;
}

}  // namespace memwall
