#include "models/workload/memory/recording_player.h"

#include <algorithm>

#include "models/workload/memory/reservations.h"

namespace memwall {
namespace {

constexpr Bytes kDeviceOfUnknownSize = Bytes{1} << 40;
using BlockUse = BlockState::Use;

bool is_release(MemoryEvent::Action action) {
  return action == MemoryEvent::Action::segment_free || action == MemoryEvent::Action::segment_unmap;
}
bool is_obtaining(MemoryEvent::Action action) {
  return action == MemoryEvent::Action::segment_alloc || action == MemoryEvent::Action::segment_map;
}

// What a recording of a limited process shows is what the limit led to; the limit itself is not in the file.
AllocatorSettings without_limit(AllocatorSettings settings) {
  settings.per_process_memory_fraction = 0;
  return settings;
}

ReservedRanges ranges_of(const std::vector<SegmentState>& segments) {
  ReservedRanges ranges;
  for (const SegmentState& s : segments)
    ranges.emplace(s.address, ReservedRange{s.size, s.stream, s.small_pool, s.expandable, s.private_pool});
  return ranges;
}

Bytes reserved_by(const std::vector<SegmentState>& segments) {
  Bytes reserved = 0;
  for (const SegmentState& segment : segments)
    for (const BlockState& block : segment.blocks)
      if (block.use != BlockUse::unmapped) reserved += block.size;
  return reserved;
}

// What a start state needs at least: without what is wholly free.
Bytes needed_by(const std::vector<SegmentState>& segments, const AllocatorSettings& settings) {
  PytorchAllocator trial(RecordingPlayer::kUnlimited, nullptr, settings);
  trial.restore(segments);
  trial.release_cached();
  return trial.usage().reserved;
}

}  // namespace

RecordingPlayer::RecordingPlayer(const DeviceRecording& device, const StartState& start,
                                 const AllocatorSettings& recorded)
    : device_(device),
      settings_(without_limit(recorded)),
      as_recorded_(true),
      limit_(kUnlimited),
      longest_retry_sequence_(kLongestRetrySequence),
      source_(device),
      recorded_addresses_(true) {
  Bytes device_total = kDeviceOfUnknownSize;
  if (settings_.expandable_segments) device_total = largest_device(device, settings_, start.segments);
  if (settings_.garbage_collection_threshold > 0)
    notes_.push_back("Garbage collections of the recording are replayed as releases: its memory limit is not known.");
  make_pytorch(start, device_total);
  restore(start);
  start_totals_ = totals();
}

RecordingPlayer::RecordingPlayer(const DeviceRecording& device, const StartState& start,
                                 const AllocatorSettings& recorded, const ReplayVariant& variant,
                                 std::size_t longest_retry_sequence)
    : device_(device),
      settings_(variant.settings),
      as_recorded_(false),
      limit_(std::min(variant.capacity, kUnlimited)),
      longest_retry_sequence_(longest_retry_sequence),
      source_(device) {
  const Bytes capacity = limit_;
  const Bytes device_total = variant.device_total.value_or(capacity < kUnlimited ? capacity : kDeviceOfUnknownSize);
  if (variant.allocator != "pytorch" || settings_.backend != AllocatorSettings::Backend::native) {
    allocator_ = make_allocator(variant.allocator, capacity, settings_, device_total);
    allocate_anew(start);
  } else {
    if (settings_.per_process_memory_fraction > 0)
      limit_ = std::min(limit_,
                        static_cast<Bytes>(settings_.per_process_memory_fraction * static_cast<double>(device_total)));
    make_pytorch(start, device_total);
    const bool all_fits = reserved_by(start.segments) <= limit_;
    if (!variant.start_anew && settings_ == recorded && (all_fits || needed_by(start.segments, settings_) <= limit_)) {
      recorded_addresses_ = true;
      restore(start);
      if (!all_fits) {
        notes_.push_back("Wholly free segments of the start state were released, for they do not fit.");
        pytorch_->release_cached();
        complete_pending_frees();
      }
      pytorch_->set_capacity(capacity);
    } else {
      pytorch_->set_capacity(capacity);
      allocate_anew(start);
    }
  }
  start_totals_ = totals();
}

void RecordingPlayer::make_pytorch(const StartState& start, Bytes device_total) {
  auto allocator = std::make_unique<PytorchAllocator>(kUnlimited, &source_, settings_);
  pytorch_ = allocator.get();
  allocator_ = std::move(allocator);
  pytorch_->set_device_total(device_total);
  pytorch_->observe(this);
  use_private_pools(start);
}

void RecordingPlayer::restore(const StartState& start) {
  pytorch_->restore(start.segments);
  source_.hold(start.segments);
  for (const SegmentState& segment : start.segments) {
    for (const BlockState& block : segment.blocks) {
      if (block.use != BlockUse::in_use && block.use != BlockUse::pending) continue;
      add_live({block.address, block.address, block.size, block.requested, block.use == BlockUse::pending});
    }
  }
}

void RecordingPlayer::allocate_anew(const StartState& start) {
  std::size_t blocks = 0;
  for (const SegmentState& segment : start.segments) {
    for (const BlockState& block : segment.blocks) {
      if (block.use != BlockUse::in_use && block.use != BlockUse::pending) continue;
      ++blocks;
      const Bytes bytes = block.requested > 0 ? block.requested : block.size;
      std::optional<Live> made = request(bytes, segment.stream, pytorch_ != nullptr ? segment.private_pool : 0);
      if (!made) continue;
      made->recorded = block.address;
      add_live(*made);
      if (block.use == BlockUse::pending) request_free(by_recorded_.find(block.address));
    }
  }
  if (blocks > 0)
    notes_.push_back(fmt::format("{} blocks that live at the start were allocated anew, by address.", blocks));
}

// Events do not name the pool of a request: it goes to the pool of the segment in which the recording has it.
void RecordingPlayer::use_private_pools(const StartState& start) {
  Contradictions told_already;
  ReservedRanges all = final_ranges(device_, told_already);
  all.merge(ranges_of(start.segments));
  std::uint32_t pools = 0;
  for (const auto& [address, range] : all) {
    if (range.private_pool == 0) continue;
    private_ranges_.emplace(address, range);
    pools = std::max(pools, range.private_pool);
  }
  if (pools == 0) return;
  pool_uses_.resize(pools + 1u, 1);
  for (std::uint32_t pool = 1; pool <= pools; ++pool) {
    pytorch_->begin_pool(pool);
    pytorch_->end_pool(pool);
  }
  notes_.push_back(
      fmt::format("{} private pools: requests go to the pool in whose segments the recording has them; "
                  "segments of such pools that were freed before the end are taken for the default pools'.",
                  pools));
}

void RecordingPlayer::play(std::size_t end, bool keep_points) {
  if (keep_points) points_.reserve(end);
  for (std::uint32_t i = 0; i < end; ++i) {
    handle(i);
    if (keep_points) add_point();
  }
}

void RecordingPlayer::handle(std::uint32_t i) {
  event_ = i;
  if (attempt_) drop_attempt();
  switch (device_.events[i].action) {
    case Action::alloc:
      return on_alloc(i);
    case Action::free_requested:
      return on_free_requested(i);
    case Action::free_completed:
      return on_free_completed(i);
    case Action::segment_alloc:
    case Action::segment_map:
      ++check_.segment_allocs_recorded;
      return;
    case Action::segment_free:
    case Action::segment_unmap:
      ++check_.segment_frees_recorded;
      return on_release(i);
    case Action::oom:
      return on_oom(i);
    default:
      return;
  }
}

void RecordingPlayer::on_alloc(std::uint32_t i) {
  const MemoryEvent& event = device_.events[i];
  ++check_.allocs;
  if (event.address == 0 || !plausible_size(event.size))
    return wrong_.at_event(i, "an alloc of {} bytes at {:#x} is passed over", event.size, event.address);
  const std::uint32_t before = by_recorded_.find(event.address);
  if (before != AddressTable::kAbsent) {
    wrong_.at_event(i, "{:#x} is allocated, but in use; taken as freed", event.address);
    complete_free(before);
  }
  const std::uint32_t pool = private_pool_at(event.address);
  std::optional<Live> block =
      recorded_addresses_ ? request_as_recorded(i, pool) : request(event.size, event.stream, pool);
  if (!block) return wrong_.at_event(i, "a request of {} bytes finds no address", event.size);
  block->recorded = event.address;
  add_live(*block);
  ++check_.placements_checked;
  check_.placements_equal += block->address == event.address;
}

void RecordingPlayer::on_free_requested(std::uint32_t i) {
  const MemoryEvent& event = device_.events[i];
  const std::uint32_t id = event.address == 0 ? AddressTable::kAbsent : by_recorded_.find(event.address);
  if (id == AddressTable::kAbsent) return wrong_.at_event(i, "a free of {:#x}, which is not in use", event.address);
  if (live_[id].pending) return wrong_.at_event(i, "{:#x} is freed twice", event.address);
  if (live_[id].requested != event.size)
    wrong_.at_event(i, "a free of {} bytes at {:#x}, which were requested as {}", event.size, event.address,
                    live_[id].requested);
  request_free(id);
}

void RecordingPlayer::on_free_completed(std::uint32_t i) {
  const MemoryEvent& event = device_.events[i];
  const std::uint32_t id = event.address == 0 ? AddressTable::kAbsent : by_recorded_.find(event.address);
  if (id == AddressTable::kAbsent)
    return wrong_.at_event(i, "a free of {:#x} completes, which is not in use", event.address);
  if (as_recorded_ && live_[id].pending && completed_by_request_after(i)) return leave_to_synchronization(id);
  complete_free(id);
}

// A request that the cache could not serve waits for all streams before it releases the cache, and does not search
// again. Blocks that become free so were not there when it searched: they must not be here either.
bool RecordingPlayer::completed_by_request_after(std::uint32_t i) {
  const auto& events = device_.events;
  const StackId stack = events[i].stack;
  if (stack == 0) return false;
  if (i < completions_end_) return completions_held_;
  const auto skip = [&](std::size_t at, auto&& which) {
    while (at < events.size() && events[at].stack == stack && which(events[at].action)) ++at;
    return at;
  };
  const std::size_t releases = skip(i, [](Action action) { return action == Action::free_completed; });
  const std::size_t obtained = skip(releases, is_release);
  const std::size_t request = skip(obtained, is_obtaining);
  const bool same_call = request < events.size() && events[request].stack == stack;
  const bool failed = same_call && events[request].action == Action::oom && request == obtained;
  const bool oversize_before = i > consumed_ && is_release(events[i - 1u].action) && events[i - 1u].stack == stack;
  const bool retried = same_call && events[request].action == Action::alloc &&
                       (obtained > releases || oversize_before) && obtains(obtained, request);
  completions_end_ = releases;
  return completions_held_ = failed || retried;
}

// Only in an expandable segment can a request be served after a retry by nothing but blocks that it had waited for.
bool RecordingPlayer::obtains(std::size_t begin, std::size_t end) const {
  return end > begin || settings_.expandable_segments;
}

void RecordingPlayer::on_release(std::uint32_t i) {
  if (i < release_end_) return;
  std::size_t end = i;
  while (end < device_.events.size() && is_release(device_.events[end].action)) ++end;
  release_end_ = end;
  if (kind_of_release(i, end) != Release::command) return;
  release_cached(i, end);
  const bool frameless = device_.events[i].stack == 0;
  frameless_releases_ += frameless && end < device_.events.size() && is_obtaining(device_.events[end].action);
}

RecordingPlayer::Release RecordingPlayer::kind_of_release(std::size_t begin, std::size_t end) {
  if (begin < same_call_end_) return same_call_kind_;
  const auto& events = device_.events;
  const StackId stack = events[begin].stack;
  // With max_split_size a request may release twice, and wait for all streams in between.
  std::size_t released = end;
  while (stack != 0 && released < events.size() && events[released].stack == stack &&
         (is_release(events[released].action) || events[released].action == Action::free_completed))
    ++released;
  same_call_end_ = released;
  return same_call_kind_ = kind_of_call(begin, end, released);
}

// `released`: behind everything that the call of this run released and waited for.
RecordingPlayer::Release RecordingPlayer::kind_of_call(std::size_t begin, std::size_t end, std::size_t released) const {
  const auto& events = device_.events;
  const StackId stack = events[begin].stack;
  const auto is_oom = [&](std::size_t at) { return at < events.size() && events[at].action == Action::oom; };
  if (is_oom(end) || (is_oom(released) && events[released].stack == stack)) return Release::out_of_memory;
  std::size_t next = released;
  while (next < events.size() && is_obtaining(events[next].action)) ++next;
  const bool for_an_alloc = obtains(released, next) && next < events.size() && events[next].action == Action::alloc;
  const bool same_stack = for_an_alloc && stack != 0 && events[next].stack == stack;
  return same_stack ? Release::retry : Release::command;
}

void RecordingPlayer::release_cached(std::size_t begin, std::size_t end) {
  if (pytorch_ == nullptr) return;  // the others return what they do not need by themselves
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint32_t pool = private_pool_at(device_.events[i].address);
    for (; pool != 0 && pool_uses_[pool] > 0; --pool_uses_[pool]) pytorch_->release_pool(pool);
  }
  made_.clear();
  pytorch_->release_cached();
  complete_pending_frees();
  compare(begin, end);
  consumed_ = end;
}

void RecordingPlayer::on_oom(std::uint32_t i) {
  const MemoryEvent& event = device_.events[i];
  if (!plausible_size(event.size)) return wrong_.at_event(i, "an oom of {} bytes is passed over", event.size);
  if (as_recorded_) return fail_as_recorded(i);
  // Would it have found memory here? Then it takes its part until the next event.
  attempt_ = request(event.size, event.stream, 0);
  if (!attempt_) return;
  active_ += attempt_->size;
  requested_ += attempt_->requested;
}

void RecordingPlayer::drop_attempt() {
  allocator_->free(attempt_->address);
  active_ -= attempt_->size;
  requested_ -= attempt_->requested;
  attempt_.reset();
}

// Between two releases of the request, what it waited for completes.
std::size_t RecordingPlayer::segment_events_before(std::uint32_t i) const {
  const StackId stack = device_.events[i].stack;
  std::size_t first = i;
  for (std::size_t k = i; k > consumed_; --k) {
    const MemoryEvent& event = device_.events[k - 1];
    if (is_obtaining(event.action) || is_release(event.action))
      first = k - 1;
    else if (event.action != Action::free_completed || stack == 0 || event.stack != stack)
      break;
  }
  return first;
}

// The calls that were just made against the recorded ones: the first release against the first release, and so on. The
// file tells a segment before the alloc that it was made for, so that points in between are corrected.
void RecordingPlayer::compare(std::size_t begin, std::size_t end) {
  std::size_t releases = 0, obtained = 0;
  Bytes change = 0;
  std::vector<Bytes> changes;
  for (std::size_t i = begin; i < end; ++i) {
    const MemoryEvent& event = device_.events[i];
    const bool release = is_release(event.action), completion = event.action == Action::free_completed;
    std::size_t& next = release ? releases : obtained;
    while (!completion && next < made_.size() && is_release(made_[next].action) != release) ++next;
    if (!completion && next < made_.size()) {
      const MemoryEvent& made = made_[next++];
      if (made.action == event.action && made.address == event.address && made.size == event.size) {
        ++(release ? check_.segment_frees_equal : check_.segment_allocs_equal);
        change += release ? -made.size : made.size;
      }
    }
    if (i < points_.size())
      points_[i].reserved += change;
    else
      changes.push_back(change);
  }
  if (changes.empty()) return;
  still_reserved_from_ = points_.size();
  for (Bytes& at : changes) at -= change;
  still_reserved_ = std::move(changes);
}

}  // namespace memwall
