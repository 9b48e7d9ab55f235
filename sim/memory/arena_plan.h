// Offsets planned ahead for storages whose lifetimes are known, and the least that any plan needs: what remains
// between a real allocator's peak and this is fragmentation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/memory/allocator.h"

namespace memwall {

// Lives at instants [begin, end); instants are any increasing numbers, such as positions in a program.
struct Lifetime {
  std::uint64_t begin = 0, end = 0;
  Bytes bytes = 0;
};

struct ArenaPlan {
  std::vector<Bytes> offsets;  // one per lifetime
  Bytes size = 0;              // of the arena
  Bytes lower_bound = 0;       // the most that lives at once, each rounded to `alignment`
};

// Best-fit by size with several orders tried, the smallest arena kept; deterministic.
// REQUIRES: begin <= end, bytes >= 0, alignment a power of two.
ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes, Bytes alignment = 512);

// Hands out the offsets of a plan: the k-th allocation that succeeds gets that of the k-th lifetime. All of the arena
// is reserved from the start on; where it is larger than the capacity, no request succeeds.
// REQUIRES: requests have the sizes of the lifetimes, and come and go as they say.
std::unique_ptr<Allocator> make_planned_allocator(const std::vector<Lifetime>& lifetimes, ArenaPlan plan,
                                                  Bytes capacity, Bytes alignment = 512);

}  // namespace memwall
