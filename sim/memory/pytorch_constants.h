// The fixed sizes of PyTorch's caching allocator.
//
// Source: pytorch/pytorch, c10/core/AllocatorConfig.h: kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc,
// kRoundLarge.
#pragma once

#include "sim/memory/free_blocks.h"
#include "sim/memory/rounding.h"

namespace memwall {

inline constexpr Bytes kQuantum = FreeBlocks::kQuantum;  // every block is a multiple of it
inline constexpr Bytes kSmallRequest = MiB(1);           // up to here the small pool serves
inline constexpr Bytes kSmallSegment = MiB(2);           // also the page of small expandable segments
inline constexpr Bytes kOwnSegment = MiB(10);            // from here on a request gets a segment of its own
inline constexpr Bytes kSegmentQuantum = MiB(2);         // of such segments
// Far beyond any machine; a larger request is taken as kBeyondAnyDevice, which no capacity reaches, so that sums below
// do not overflow on a hostile size.
inline constexpr Bytes kLargestRequest = FreeBlocks::kLargest / 2;
inline constexpr Bytes kBeyondAnyDevice = FreeBlocks::kLargest * 2;

}  // namespace memwall
