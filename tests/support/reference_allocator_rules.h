// The rules of PyTorch's caching allocator, one field each, so that a test can alter one and see that it matters.
//
// In brackets: the functions of pytorch/pytorch, c10/cuda/CUDACachingAllocator.cpp, that hold the rules.
#pragma once

#include "sim/units.h"

namespace memwall {

inline Bytes multiple_above(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

struct ReferenceRules {
  // Sizes (round_size, get_allocation_size).
  Bytes rounding_quantum = 512;
  bool divisions_round = true;        // roundup_power2_divisions is obeyed
  bool divisions_need_quanta = true;  // only above quantum * divisions
  int divisions_first_power = 20;     // entry 0 is that of 2^20
  int divisions_last_entry = 15;      // larger sizes use this entry
  Bytes small_limit = MiB(1);         // largest rounded size of the small pool
  Bytes small_segment = MiB(2);       // also the page of the small pool's expandable segments
  bool large_segment_from_setting = true;
  Bytes own_segment_from = MiB(10);  // rounded sizes from here on get a segment of their own
  Bytes segment_rounding = MiB(2);

  // Pools (get_pool).
  bool pools_by_size = true;
  bool streams_apart = true;
  bool private_pools_apart = true;
  bool private_pool_filters = true;  // a pool takes only the streams it was begun with
  bool last_begun_pool_wins = true;

  // Search (get_free_block).
  bool best_fit = true;  // else the lowest address that is large enough
  bool ties_to_lowest = true;
  bool oversize_kept_from_small = true;  // requests below max_split_size take no block of max_split_size or more
  bool oversize_waste_limited = true;    // requests of max_split_size or more: max_non_split_rounding
  bool oversize_limits_included = true;  // both limits: exactly that size is too large
  bool expandable_counts_tail = true;
  bool expandable_skipped_when_off = true;

  // Split (should_split, alloc_found_block).
  Bytes small_split_from = 512;      // smallest remainder
  Bytes large_split_above = MiB(1);  // the remainder is larger than this
  bool oversize_not_split = true;
  bool expandable_splits_as_small = true;
  bool low_part_handed_out = true;

  // Frees (free, recordStream, insert_events, process_events).
  bool own_stream_ignored = true;
  bool waits_for_streams = true;
  bool events_asked_at_allocate = true;
  bool events_in_order = true;  // an event that is not ready holds up the later ones of its stream
  bool capture_defers_events = true;
  bool capture_uses_forgotten = true;  // streams recorded during a capture get no event if freed in it
  bool capture_end_frees = true;  // what only captures used is free when the last one ends, not at the next request
  bool merges_previous = true;
  bool merges_next = true;

  // The ladder (malloc, alloc_block).
  bool fraction_limits = true;
  bool fraction_asks_segment = true;  // of an expandable request, too, the segment's size, not what is mapped
  bool release_available_tried = true;
  bool release_available_first = true;  // before the whole cache
  bool available_single_first = true;   // one block that is large enough goes alone
  bool available_largest_first = true;
  bool available_must_suffice = true;  // freed less than asked for: the device is not asked again
  bool available_is_no_retry = true;
  bool release_cached_tried = true;
  bool capture_keeps_cache = true;
  bool capture_releases_unused_pools = true;  // at the caller's request
  bool whole_fraction_is_none = true;         // a fraction of 1 sets no limit

  // Release (release_cached_blocks, release_blocks).
  bool release_synchronizes = true;
  bool release_large_pool_first = true;
  bool release_by_size = true;  // else by address
  bool release_ascending = true;
  bool release_small_segments = true;
  bool private_pools_kept_while_used = true;
  bool private_release_small_first = true;

  // Garbage collection (garbage_collect_cached_blocks).
  bool garbage_collected = true;
  bool garbage_before_device = true;       // collected before the device is asked, not after it refused
  bool garbage_large_only = true;          // of the large pool
  bool garbage_default_only = true;        // not of private pools
  bool garbage_mean_included = true;       // blocks of exactly the mean age go too
  bool garbage_age_by_pool = true;         // a block ages by the searches of its own pool
  bool garbage_by_age = true;              // else every wholly free large block
  bool garbage_until_target = true;        // else one round only
  bool garbage_mean_of_expandable = true;  // wholly free expandable segments count in the mean
  bool garbage_age_restarts = true;        // a block's age counts from when it was cached, not from the beginning

  // Expandable segments (find_expandable_block, ExpandableSegment).
  bool lowest_gap_first = true;
  bool preceding_free_block_used = true;
  bool maps_whole_pages = true;
  bool large_page_from_setting = true;  // else 2 MiB, as in the small pool
  bool maps_request_only = true;        // else what cudaMalloc would be asked for
  bool unmaps_inner_pages = true;       // else only free blocks that are whole pages
  bool empty_reservation_dropped = true;
  int reservation_extra_eighths = 1;  // beyond the device's memory
  bool reservation_from_setting = true;

  // Statistics.
  bool pending_is_active = true;
  bool requested_until_completed = true;
  bool expandable_is_never_inactive_split = true;
  bool mapping_is_no_segment = true;
  bool mapping_is_device_alloc = true;
  bool retry_is_counted = true;
};

}  // namespace memwall
