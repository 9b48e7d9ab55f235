#include "sim/memory/allocator_pools.h"

#include <algorithm>
#include <cassert>

namespace memwall {

std::uint32_t AllocatorPools::find(std::uint32_t private_pool, std::uint16_t stream, bool large) {
  if (private_pool == 0 && stream >= of_stream_.size()) of_stream_.resize(stream + 1u, kNone);
  std::uint32_t& number =
      private_pool == 0 ? of_stream_[stream] : private_.try_emplace({private_pool, stream}, kNone).first->second;
  if (number == kNone) {
    number = static_cast<std::uint32_t>(pools_.size());
    pools_.resize(pools_.size() + 2);
    for (const bool is_large : {false, true}) {
      Pool& pool = pools_[number + is_large];
      pool.private_pool = private_pool;
      pool.stream = stream;
      pool.large = is_large;
    }
  }
  return number + large;
}

std::uint32_t AllocatorPools::follow_routes(std::uint16_t stream, bool large) {
  for (auto route = routes_.rbegin(); route != routes_.rend(); ++route)
    if (route->streams.empty() ||
        std::find(route->streams.begin(), route->streams.end(), stream) != route->streams.end())
      return find(route->private_pool, stream, large);
  return find(0, stream, large);
}

std::vector<std::uint32_t> AllocatorPools::of_all_streams(std::uint32_t private_pool, bool large) const {
  std::vector<std::uint32_t> numbers;
  if (private_pool == 0) {
    for (const std::uint32_t number : of_stream_)
      if (number != kNone) numbers.push_back(number + large);
    return numbers;
  }
  for (auto it = private_.lower_bound({private_pool, 0}); it != private_.end() && it->first.first == private_pool; ++it)
    numbers.push_back(it->second + large);
  return numbers;
}

void AllocatorPools::begin(std::uint32_t private_pool, std::vector<std::uint16_t> streams) {
  assert(private_pool > 0);
  ++uses_[private_pool];
  routes_.push_back({private_pool, std::move(streams)});
}

void AllocatorPools::end(std::uint32_t private_pool) {
  const auto route =
      std::find_if(routes_.rbegin(), routes_.rend(), [&](const Route& r) { return r.private_pool == private_pool; });
  assert(route != routes_.rend());
  routes_.erase(std::next(route).base());
}

void AllocatorPools::release(std::uint32_t private_pool) {
  const auto uses = uses_.find(private_pool);
  assert(uses != uses_.end() && uses->second > 0);
  --uses->second;
}

std::vector<std::uint32_t> AllocatorPools::unused() const {
  std::vector<std::uint32_t> pools;
  for (const auto& [private_pool, uses] : uses_)
    if (uses == 0) pools.push_back(private_pool);
  return pools;
}

}  // namespace memwall
