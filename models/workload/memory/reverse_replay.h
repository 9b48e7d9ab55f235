// A recording undone: from the segments at its end, event by event, back to what there was before its first event.
//
// Nothing of the file is trusted. An address that no allocator hands out, pieces that overlap, an alloc of what does
// not live: each becomes a contradiction, and the walk goes on with the rest.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "models/workload/memory/contradictions.h"
#include "models/workload/memory/recording.h"

namespace memwall {

// Memory that the allocator had: a segment, or a mapped range of an expandable one.
struct ReservedRange {
  Bytes size = 0;
  std::uint16_t stream = 0;
  bool small_pool = false, expandable = false;
  std::uint32_t private_pool = 0;  // 0 = the default pools

  bool same_pool(const ReservedRange& other) const {
    return stream == other.stream && small_pool == other.small_pool && expandable == other.expandable &&
           private_pool == other.private_pool;
  }
};
using ReservedRanges = std::map<Address, ReservedRange>;  // do not overlap; touching ranges of one expandable pool are joined

// A block that lived before the first event.
struct InitialBlock {
  static constexpr std::uint32_t kNever = 0xffffffff;

  Address address = 0;
  Bytes size = 0;  // 0 = not known: it was freed in the window, and events tell only what was requested
  Bytes requested = 0;
  StackId stack = 0;                // 0 = not known
  std::uint32_t freed_at = kNever;  // event of its free_completed
  std::uint16_t stream = 0;
  bool pending = false;  // its free was requested before the window
};

struct InitialState {
  ReservedRanges ranges;
  std::vector<InitialBlock> blocks;  // by address, each at another one; not checked against the ranges
};

// Could a caching allocator have handed this out? A multiple of 512, and within what processors can address.
bool plausible_address(Address address);
// More than 0 and no more than 16 TiB; what sizes can be added up without overflow.
bool plausible_size(Bytes size);

// The segment_pool_id of the private pools, ascending: pool 1, 2, ...; (0, 0) are the default pools and not in it.
std::vector<std::array<std::int64_t, 2>> private_pools(const DeviceRecording& device);
// The segments at the end; what contradicts itself is left out.
ReservedRanges final_ranges(const DeviceRecording& device, Contradictions& wrong);

// `has_end`: the segments at the end are known, if only to be none; else what they would contradict is not said.
InitialState reverse_replay(const DeviceRecording& device, bool has_end, Contradictions& wrong);

}  // namespace memwall
