// Of a request: its size and pool, the search, the ladder where the cache cannot serve it.
#include "tests/support/reference_allocator.h"

#include <algorithm>

namespace memwall {
namespace {

using Use = BlockState::Use;
using RetryStep = AllocatorObserver::RetryStep;

}  // namespace

ReferenceAllocator::ReferenceAllocator(Bytes capacity, SegmentSource* source, const AllocatorSettings& settings,
                                       StreamEvents* events, const ReferenceRules& rules)
    : capacity_(capacity),
      device_total_(capacity),
      source_(source),
      settings_(settings),
      stream_events_(events),
      rules_(rules) {
  if (settings_.max_split_size != AllocatorSettings::kNoLimit) statistics_.max_split_size = settings_.max_split_size;
}

Bytes ReferenceAllocator::divisions_of(Bytes bytes) const {
  int power = 0;  // floor(log2(bytes))
  while (bytes >> (power + 1) != 0) ++power;
  const int entry = std::clamp(power - rules_.divisions_first_power, 0, rules_.divisions_last_entry);
  return rules_.divisions_round ? settings_.roundup_power2_divisions.at(static_cast<std::size_t>(entry)) : 0;
}

Bytes ReferenceAllocator::rounded(Bytes bytes) const {
  const Bytes quantum = rules_.rounding_quantum;
  if (bytes < quantum) return quantum;
  const Bytes divisions = divisions_of(bytes);
  if (divisions <= 1 || (rules_.divisions_need_quanta && bytes <= quantum * divisions))
    return multiple_above(bytes, quantum);
  Bytes power = 1;
  while (power * 2 <= bytes) power *= 2;
  const Bytes step = power / divisions;
  return step == 0 ? 2 * power : multiple_above(bytes, step);
}

std::uint32_t ReferenceAllocator::private_pool_of(std::uint16_t stream) const {
  std::uint32_t found = 0;
  for (const ActivePool& active : active_pools_) {
    const auto& accepted = active.streams;
    const bool accepts = accepted.empty() || !rules_.private_pool_filters ||
                         std::find(accepted.begin(), accepted.end(), stream) != accepted.end();
    if (!accepts) continue;
    found = active.pool;
    if (!rules_.last_begun_pool_wins) break;
  }
  return rules_.private_pools_apart ? found : 0;
}

ReferenceAllocator::Request ReferenceAllocator::request(Bytes bytes, std::uint16_t stream) const {
  Request r;
  r.asked = bytes;
  r.size = rounded(bytes);
  const bool small = r.size <= rules_.small_limit;
  r.pool = {private_pool_of(stream), small && rules_.pools_by_size};
  r.stream = rules_.streams_apart ? stream : std::uint16_t{0};
  const Bytes large_segment = rules_.large_segment_from_setting ? settings_.large_segment_size : MiB(20);
  if (small)
    r.segment = rules_.small_segment;
  else if (r.size < rules_.own_segment_from)
    r.segment = large_segment;
  else
    r.segment = multiple_above(r.size, rules_.segment_rounding);
  return r;
}

bool ReferenceAllocator::limited() const {
  const double fraction = settings_.per_process_memory_fraction;
  return fraction > 0 && (fraction < 1 || !rules_.whole_fraction_is_none);
}

Bytes ReferenceAllocator::limit() const {
  return static_cast<Bytes>(settings_.per_process_memory_fraction * static_cast<double>(device_total_));
}

bool ReferenceAllocator::collects_garbage() const { return limited() && settings_.garbage_collection_threshold > 0; }

std::optional<Address> ReferenceAllocator::allocate(Bytes bytes, std::uint16_t stream) {
  if (bytes == 0) return 0;
  if (rules_.events_asked_at_allocate && (captures_ == 0 || !rules_.capture_defers_events)) process_events();
  const Request r = request(bytes, stream);
  auto address = find_cached(r);
  if (!address) address = allocate_with_retries(r);
  if (!address) return std::nullopt;
  return hand_out(*address, r);
}

std::vector<ReferenceAllocator::FreeBlock> ReferenceAllocator::free_blocks(const Pool& pool) const {
  std::vector<FreeBlock> found;
  for (const auto& [address, block] : blocks_) {
    if (block.use != Use::free) continue;
    const Segment& segment = segments_.at(block.segment);
    if (segment.pool == pool) found.push_back({segment.stream, block.size, address});
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<ReferenceAllocator::FreeBlock> ReferenceAllocator::candidates(const Request& r) const {
  std::vector<FreeBlock> found;
  for (const FreeBlock& block : free_blocks(r.pool))
    if (block.stream == r.stream && block.size >= r.size) found.push_back(block);
  std::sort(found.begin(), found.end(), [this](const FreeBlock& a, const FreeBlock& b) {
    if (rules_.best_fit && a.size != b.size) return a.size < b.size;
    return rules_.ties_to_lowest ? a.address < b.address : a.address > b.address;
  });
  return found;
}

// What a block offers: with the unmapped range that follows it, if there is one.
Bytes ReferenceAllocator::room(const FreeBlock& block) const {
  const auto next = blocks_.find(block.address + static_cast<Address>(block.size));
  if (!rules_.expandable_counts_tail || next == blocks_.end()) return block.size;
  const bool tail = next->second.segment == blocks_.at(block.address).segment && next->second.use == Use::unmapped;
  return block.size + (tail ? next->second.size : 0);
}

std::optional<Address> ReferenceAllocator::find_cached(const Request& r) {
  if (collects_garbage()) ++searches_[r.pool];
  if (collects_garbage() && !rules_.garbage_age_by_pool && r.pool != Pool{0, false}) ++searches_[{0, false}];
  const auto found = candidates(r);
  if (found.empty()) return std::nullopt;
  const auto expandable = [&](std::size_t i) { return segment_of(found[i].address).expandable; };
  std::size_t i = 0;
  if (expandable(0) && settings_.expandable_segments) {
    while (expandable(i) && i + 1 < found.size() && room(found[i + 1]) < room(found[i])) ++i;
  } else if (expandable(0) && rules_.expandable_skipped_when_off) {
    while (i < found.size() && expandable(i)) ++i;
    if (i == found.size()) return std::nullopt;
  }
  const bool oversize = r.size >= settings_.max_split_size;
  const Bytes limit = oversize ? r.size + settings_.max_non_split_rounding : settings_.max_split_size;
  const bool limited = oversize ? rules_.oversize_waste_limited : rules_.oversize_kept_from_small;
  if (limited && found[i].size >= limit + (rules_.oversize_limits_included ? 0 : 1)) return std::nullopt;
  return found[i].address;
}

bool ReferenceAllocator::splits(const Block& block, const Request& r) const {
  const Bytes rest = block.size - r.size;
  if (rest <= 0) return false;
  if (r.pool.small || (settings_.expandable_segments && rules_.expandable_splits_as_small))
    return rest >= rules_.small_split_from;
  return (r.size < settings_.max_split_size || !rules_.oversize_not_split) && rest > rules_.large_split_above;
}

Address ReferenceAllocator::hand_out(Address address, const Request& r) {
  Block& low = blocks_.at(address);
  const Bytes rest = low.size - r.size;
  if (splits(low, r)) {
    const Bytes cut = rules_.low_part_handed_out ? r.size : rest;
    Block high = low;
    high.size = low.size - cut;
    low.size = cut;
    blocks_.emplace(address + static_cast<Address>(cut), high);
    const Address remainder = rules_.low_part_handed_out ? address + static_cast<Address>(cut) : address;
    blocks_.at(remainder).cached_at = searches_[r.pool];
    if (!rules_.low_part_handed_out) address += static_cast<Address>(cut);
  }
  Block& block = blocks_.at(address);
  block.use = Use::in_use;
  block.requested = r.asked;
  recount();
  return address;
}

void ReferenceAllocator::retry_step(RetryStep retry_step, Bytes bytes) {
  if (observer_) observer_->on_retry_step(retry_step, bytes);
}

std::nullopt_t ReferenceAllocator::refused(Bytes bytes) {
  retry_step(RetryStep::device_refused, bytes);
  return std::nullopt;
}

std::optional<Address> ReferenceAllocator::obtain_again(const Request& r) {
  const auto address = obtain(r);
  if (address) retry_step(RetryStep::served, blocks_.at(*address).size);
  return address;
}

std::optional<Address> ReferenceAllocator::try_release_available(const Request& r) {
  if (!rules_.release_available_tried || settings_.max_split_size == AllocatorSettings::kNoLimit) return std::nullopt;
  const Bytes before = reserved();
  const bool enough = release_available(r);
  if (reserved() < before) retry_step(RetryStep::release_available, before - reserved());
  if (!enough && rules_.available_must_suffice) return std::nullopt;
  if (!rules_.available_is_no_retry) ++statistics_.num_alloc_retries;
  return obtain_again(r);
}

std::optional<Address> ReferenceAllocator::try_release_cached(const Request& r) {
  if (!rules_.release_cached_tried || (captures_ > 0 && rules_.capture_keeps_cache)) return std::nullopt;
  const Bytes before = reserved();
  release_everything();
  retry_step(RetryStep::release_cached, before - reserved());
  if (rules_.retry_is_counted) {
    ++statistics_.num_alloc_retries;
    ++device_calls_.retries;
  }
  return obtain_again(r);
}

std::optional<Address> ReferenceAllocator::allocate_with_retries(const Request& r) {
  if (rules_.garbage_before_device) collect_garbage();
  if (const auto address = obtain(r)) return address;
  if (!rules_.garbage_before_device) collect_garbage();
  const bool available_first = rules_.release_available_first;
  if (const auto address = available_first ? try_release_available(r) : try_release_cached(r)) return address;
  if (const auto address = available_first ? try_release_cached(r) : try_release_available(r)) return address;
  ++statistics_.num_ooms;
  retry_step(RetryStep::out_of_memory, r.size);
  return std::nullopt;
}

}  // namespace memwall
