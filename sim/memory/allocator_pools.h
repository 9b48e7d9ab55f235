// The pools of a caching allocator: free and unmapped blocks by stream, size class and private pool, and which pool a
// request goes to.
#pragma once

#include <map>
#include <vector>

#include "sim/memory/free_blocks.h"

namespace memwall {

class AllocatorPools {
 public:
  struct Pool {
    FreeBlocks free;
    std::map<Address, std::uint32_t> unmapped;  // block numbers; only of expandable segments
    std::uint32_t private_pool = 0;             // 0 = the default pools
    std::uint16_t stream = 0;
    bool large = false;
  };

  // Of the default pools or, between begin and end, of the private pool that takes requests of this stream. Makes the
  // pool where there is none yet: references to pools then are no longer valid.
  std::uint32_t for_request(std::uint16_t stream, bool large) {
    if (!routes_.empty()) [[unlikely]]
      return follow_routes(stream, large);
    if (stream >= of_stream_.size() || of_stream_[stream] == kNone) [[unlikely]]
      return find(0, stream, large);
    return of_stream_[stream] + large;
  }
  std::uint32_t find(std::uint32_t private_pool, std::uint16_t stream, bool large);
  Pool& operator[](std::uint32_t number) { return pools_[number]; }
  const Pool& operator[](std::uint32_t number) const { return pools_[number]; }
  // Does a private pool take requests?
  bool routed() const { return !routes_.empty(); }
  // The pools of all streams, by stream.
  std::vector<std::uint32_t> of_all_streams(std::uint32_t private_pool, bool large) const;

  // Each begin is a use of the pool, which release ends.
  void begin(std::uint32_t private_pool, std::vector<std::uint16_t> streams);
  void end(std::uint32_t private_pool);
  void release(std::uint32_t private_pool);
  // A pool that was there before: in use once.
  void adopt(std::uint32_t private_pool) { uses_.try_emplace(private_pool, 1u); }
  // Private pools that nobody uses, ascending.
  std::vector<std::uint32_t> unused() const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Route {
    std::uint32_t private_pool = 0;
    std::vector<std::uint16_t> streams;  // empty = all
  };

  std::uint32_t follow_routes(std::uint16_t stream, bool large);

  std::vector<Pool> pools_;               // small and large of the same stream next to each other
  std::vector<std::uint32_t> of_stream_;  // number of the small default pool, or kNone
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint32_t> private_;  // the same, by pool and stream
  std::vector<Route> routes_;                                                 // the last that fits counts
  std::map<std::uint32_t, std::uint32_t> uses_;                               // of private pools
};

}  // namespace memwall
