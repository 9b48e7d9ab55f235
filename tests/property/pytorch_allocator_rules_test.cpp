// Would a comparison with the reference notice a wrong rule? Each is altered in turn in the reference, which then must
// differ from the fast allocator within some random sequences. Without alteration it never does
// (pytorch_allocator_property_test.cpp).
#include <gtest/gtest.h>

#include "tests/support/reference_allocator_comparison.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Alteration {
  const char* name;
  void (*apply)(ReferenceRules&);
  void (*reach)(ScenarioProfile&) = [](ScenarioProfile&) {};  // sequences in which the rule matters
};

void plain(ScenarioProfile& p) {
  p.expandable = p.max_split = p.divisions = p.large_segment = p.fraction = p.restored = p.reserve = p.vast = 0;
}
void expandable(ScenarioProfile& p) {
  plain(p);
  p.expandable = 100;
}
void oversize(ScenarioProfile& p) {
  plain(p);
  p.max_split = p.tight = 100;
}
void garbage(ScenarioProfile& p) {
  plain(p);
  p.fraction = p.garbage_collection = 100;
}
void streams(ScenarioProfile& p) {
  plain(p);
  p.cross_stream = p.events = 100;
}
void pools(ScenarioProfile& p) {
  plain(p);
  p.private_pools = p.captures = p.cross_stream = p.events = 100;
}
void divisions(ScenarioProfile& p) {
  plain(p);
  p.divisions = 100;
}
void restored(ScenarioProfile& p) {
  plain(p);
  p.restored = 100;
}

#define ALTER(change) [](ReferenceRules& r) { r.change; }

const Alteration kAlterations[] = {
    {"rounding to 256", ALTER(rounding_quantum = 256), plain},
    {"rounding to 1024", ALTER(rounding_quantum = 1024), plain},
    {"divisions ignored", ALTER(divisions_round = false), divisions},
    {"divisions of small sizes too", ALTER(divisions_need_quanta = false), divisions},
    {"divisions begin at 2 MiB", ALTER(divisions_first_power = 21), divisions},
    {"divisions begin at 512 KiB", ALTER(divisions_first_power = 19), divisions},
    {"divisions end before the last entry", ALTER(divisions_last_entry = 4), divisions},
    {"1 MiB is large", ALTER(small_limit = MiB(1) - 1), plain},
    {"1.25 MiB is small", ALTER(small_limit = KiB(1280)), plain},
    {"small segments of 4 MiB", ALTER(small_segment = MiB(4)), plain},
    {"large_segment_size ignored", ALTER(large_segment_from_setting = false),
     [](ScenarioProfile& p) { plain(p), p.large_segment = 100; }},
    {"own segment from 8 MiB", ALTER(own_segment_from = MiB(8)), plain},
    {"own segment above 10 MiB only", ALTER(own_segment_from = MiB(10) + 1), plain},
    {"segments rounded to 1 MiB", ALTER(segment_rounding = MiB(1)), plain},
    {"segments not rounded", ALTER(segment_rounding = 512), plain},
    {"one pool for all sizes", ALTER(pools_by_size = false), plain},
    {"one pool for all streams", ALTER(streams_apart = false), plain},
    {"no private pools", ALTER(private_pools_apart = false), pools},
    {"private pools take every stream", ALTER(private_pool_filters = false), pools},
    {"the first pool begun wins", ALTER(last_begun_pool_wins = false), pools},
    {"first fit", ALTER(best_fit = false), plain},
    {"ties to the highest address", ALTER(ties_to_lowest = false), plain},
    {"small requests take oversize blocks", ALTER(oversize_kept_from_small = false), oversize},
    {"max_non_split_rounding ignored", ALTER(oversize_waste_limited = false), oversize},
    {"oversize limits are exceeded by more only", ALTER(oversize_limits_included = false), oversize},
    {"expandable tails not counted", ALTER(expandable_counts_tail = false), expandable},
    {"expandable blocks used when off", ALTER(expandable_skipped_when_off = false), restored},
    {"small pool splits from 1024", ALTER(small_split_from = 1024), plain},
    {"large pool splits at exactly 1 MiB", ALTER(large_split_above = MiB(1) - 1), plain},
    {"large pool splits from 512", ALTER(large_split_above = 511), plain},
    {"large pool splits above 2 MiB only", ALTER(large_split_above = MiB(2)), plain},
    {"oversize blocks are split", ALTER(oversize_not_split = false), oversize},
    {"expandable large blocks split as others", ALTER(expandable_splits_as_small = false), expandable},
    {"the high part is handed out", ALTER(low_part_handed_out = false), plain},
    {"use on the own stream counts", ALTER(own_stream_ignored = false), streams},
    {"no wait for other streams", ALTER(waits_for_streams = false), streams},
    {"events never asked for", ALTER(events_asked_at_allocate = false), streams},
    {"events out of order", ALTER(events_in_order = false), streams},
    {"a capture defers nothing", ALTER(capture_defers_events = false), pools},
    {"uses in a capture need events", ALTER(capture_uses_forgotten = false), pools},
    {"blocks of captures freed at the next request", ALTER(capture_end_frees = false), pools},
    {"no merging with the block before", ALTER(merges_previous = false), plain},
    {"no merging with the block behind", ALTER(merges_next = false), plain},
    {"no limit by fraction", ALTER(fraction_limits = false), garbage},
    {"the fraction does not limit expandable requests by segment", ALTER(fraction_asks_segment = false),
     [](ScenarioProfile& p) { expandable(p), p.fraction = 100; }},
    {"a fraction of 1 is a limit", ALTER(whole_fraction_is_none = false), garbage},
    {"oversize blocks not released", ALTER(release_available_tried = false), oversize},
    {"whole cache released before oversize blocks", ALTER(release_available_first = false), oversize},
    {"oversize blocks from the largest down, always", ALTER(available_single_first = false), oversize},
    {"oversize blocks from the smallest up", ALTER(available_largest_first = false), oversize},
    {"device asked although too little was released", ALTER(available_must_suffice = false), oversize},
    {"releasing oversize blocks is a retry", ALTER(available_is_no_retry = false), oversize},
    {"cache not released for a retry", ALTER(release_cached_tried = false), plain},
    {"cache released in a capture", ALTER(capture_keeps_cache = false), pools},
    {"unused pools kept during a capture", ALTER(capture_releases_unused_pools = false), pools},
    {"release without synchronization", ALTER(release_synchronizes = false), streams},
    {"small pool released first", ALTER(release_large_pool_first = false), plain},
    {"released by address", ALTER(release_by_size = false), plain},
    {"released from the largest down", ALTER(release_ascending = false), plain},
    {"small segments kept", ALTER(release_small_segments = false), plain},
    {"private pools released while used", ALTER(private_pools_kept_while_used = false), pools},
    {"private pools: large segments first", ALTER(private_release_small_first = false), pools},
    {"no garbage collection", ALTER(garbage_collected = false), garbage},
    {"garbage collected after the device refused", ALTER(garbage_before_device = false), garbage},
    {"garbage of the small pool too", ALTER(garbage_large_only = false), garbage},
    {"garbage of private pools too", ALTER(garbage_default_only = false),
     [](ScenarioProfile& p) { garbage(p), p.private_pools = 100; }},
    {"garbage older than the mean only", ALTER(garbage_mean_included = false), garbage},
    {"age by every search", ALTER(garbage_age_by_pool = false), garbage},
    {"garbage of every age", ALTER(garbage_by_age = false), garbage},
    {"one round of garbage collection", ALTER(garbage_until_target = false), garbage},
    {"expandable segments do not count in the mean age", ALTER(garbage_mean_of_expandable = false),
     [](ScenarioProfile& p) { garbage(p), p.reserve = p.restored = 100; }},
    {"age from the beginning", ALTER(garbage_age_restarts = false), garbage},
    {"highest gap mapped first", ALTER(lowest_gap_first = false), expandable},
    {"free block before a gap not used", ALTER(preceding_free_block_used = false), expandable},
    {"large pages of 2 MiB", ALTER(large_page_from_setting = false), expandable},
    {"mapping what cudaMalloc would be asked for", ALTER(maps_request_only = false), expandable},
    {"mapping without pages", ALTER(maps_whole_pages = false), expandable},
    {"only whole blocks unmapped", ALTER(unmaps_inner_pages = false), expandable},
    {"empty reservations kept", ALTER(empty_reservation_dropped = false), expandable},
    {"reservations of 10/8", ALTER(reservation_extra_eighths = 2), expandable},
    {"expandable_segments_reserve ignored", ALTER(reservation_from_setting = false),
     [](ScenarioProfile& p) { expandable(p), p.reserve = 100; }},
    {"pending blocks are not active", ALTER(pending_is_active = false), streams},
    {"requested bytes end with the free", ALTER(requested_until_completed = false), streams},
    {"expandable blocks can be inactive splits", ALTER(expandable_is_never_inactive_split = false), expandable},
    {"mapping counts as segment", ALTER(mapping_is_no_segment = false), expandable},
    {"mapping is no device call", ALTER(mapping_is_device_alloc = false), expandable},
    {"retries not counted", ALTER(retry_is_counted = false), plain},
};

#undef ALTER

bool noticed(const AllocatorScenario& scenario, const ReferenceRules& altered) {
  if (!compare_with_reference(scenario, altered)) return false;
  EXPECT_FALSE(compare_with_reference(scenario)) << "without the alteration, too:\n" << describe(scenario);
  return true;
}

TEST(PytorchAllocatorRules, EachAlteredRuleIsNoticed) {
  constexpr std::uint64_t kSequences = 60;  // of 300 calls
  for (const Alteration& alteration : kAlterations) {
    ReferenceRules rules;
    alteration.apply(rules);
    ScenarioProfile profile;
    alteration.reach(profile);
    std::uint64_t seed = 1;
    while (seed <= kSequences && !noticed(random_scenario(seed, profile), rules)) ++seed;
    EXPECT_LE(seed, kSequences) << alteration.name;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
