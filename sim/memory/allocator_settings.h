// The settings of PyTorch's caching allocator, as PYTORCH_ALLOC_CONF states them.
//
// Source: pytorch/pytorch, c10/core/AllocatorConfig.{h,cpp}, c10/cuda/CUDAAllocatorConfig.cpp.
#pragma once

#include <array>
#include <limits>
#include <string>

#include "sim/units.h"

namespace memwall {

struct AllocatorSettings {
  static constexpr Bytes kNoLimit = std::numeric_limits<Bytes>::max();

  enum class Backend : std::uint8_t { native, cuda_malloc_async };
  Backend backend = Backend::native;
  // Blocks of this size or more are neither split nor given to smaller requests; at least large_segment_size.
  Bytes max_split_size = kNoLimit;
  // A request of max_split_size or more takes no cached block that is larger than itself by this much; at least, and
  // where it is not set, large_segment_size.
  Bytes max_non_split_rounding = MiB(20);
  // What requests under 10 MiB of the large pool get their segments in, and the page of expandable large segments.
  Bytes large_segment_size = MiB(20);
  // Share of the memory limit above which old cached blocks are freed, in (0, 1); 0 = never. Acts only with
  // per_process_memory_fraction.
  double garbage_collection_threshold = 0;
  // Share of the device's whole memory that may be reserved, in (0, 1); 0 or 1 = no limit.
  double per_process_memory_fraction = 0;
  // Entry i governs sizes in [2^(20+i), 2^(21+i)); entry 0 smaller ones too, entry 15 larger ones too. 0 or 1 = off.
  std::array<std::uint32_t, 16> roundup_power2_divisions{};
  bool expandable_segments = false;
  // Address space of an expandable segment: a share of the device's memory, or bytes; at most, and where neither is set
  // (0), 9/8 of the device.
  double expandable_reserve_share = 0;
  Bytes expandable_reserve = 0;
  // Of the pinned host allocator: memory obtained ahead in one piece; 0 = none.
  Bytes pinned_reserve_segment_size = 0;
  // False: page-locked memory comes from the driver call by call, in whole pages, and goes back when it is freed. No
  // setting of PyTorch's: for programs that call cudaHostAlloc and cudaFreeHost, or cudaHostRegister, themselves.
  bool pinned_pool = true;

  bool operator==(const AllocatorSettings&) const = default;
};

// "expandable_segments:True,max_split_size_mb:256", as PyTorch reads it; "" = the default settings. Keys that change
// nothing here (release_lock_on_cudamalloc, pinned_use_cuda_host_register, ...) are accepted. Where PyTorch reads a
// number up to the first other character ("256MB" as 256), or ignores a wrong one, it is refused instead. Throws
// UsageError naming the key, what was found, what is expected, and the nearest known key.
AllocatorSettings parse_allocator_settings(const std::string& text);

// What differs from the default, in the form that parse_allocator_settings reads; "" = nothing does.
std::string to_string(const AllocatorSettings& settings);

// The size of the block that a request of `bytes` needs: at least 512, rounded to 512 or to the divisions of its power
// of two. REQUIRES: 0 < bytes < 2^60.
Bytes round_request(const AllocatorSettings& settings, Bytes bytes);

}  // namespace memwall
