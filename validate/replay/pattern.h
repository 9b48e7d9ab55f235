// Known contents: what a storage holds in a checked pass is a function of its tag, so that a byte that a
// copy lost, doubled or brought too early is seen wherever it is read. The same on host and device.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MEMWALL_HOST_DEVICE __host__ __device__
#else
#define MEMWALL_HOST_DEVICE
#endif

namespace memwall {

// 64-bit word number `index` of content `tag`: splitmix64's output function (Steele, Lea, Flood 2014,
// "Fast splittable pseudorandom number generators") of tag + index * golden ratio.
MEMWALL_HOST_DEVICE constexpr std::uint64_t pattern_word(std::uint64_t tag, std::uint64_t index) {
  std::uint64_t z = tag + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace memwall
