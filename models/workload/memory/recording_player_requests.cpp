// Requests and frees of RecordingPlayer, the retry steps of a request, and what there is to report.
#include <algorithm>

#include "models/workload/memory/recording_player.h"
#include "sim/memory/pytorch_constants.h"

namespace memwall {
namespace {

constexpr Bytes kLargestDevice = Bytes{1} << 50;

struct FreeMemory {
  Bytes largest = 0, all = 0;
};

// `largest`: of the pool that a request would be served from.
FreeMemory free_memory(const std::vector<SegmentState>& segments, std::uint16_t stream, bool small,
                       std::uint32_t pool) {
  FreeMemory free;
  for (const SegmentState& segment : segments) {
    const bool same = segment.stream == stream && segment.small_pool == small && segment.private_pool == pool;
    for (const BlockState& block : segment.blocks) {
      if (block.use != BlockState::Use::free) continue;
      free.all += block.size;
      if (same) free.largest = std::max(free.largest, block.size);
    }
  }
  return free;
}

}  // namespace

void RecordingPlayer::begin_request(Bytes bytes, std::uint16_t stream, std::uint32_t private_pool) {
  asked_ = bytes;
  asked_stream_ = stream;
  asked_pool_ = private_pool;
  synchronized_ = false;
  made_.clear();
}

std::optional<Address> RecordingPlayer::ask(Bytes bytes, std::uint16_t stream, std::uint32_t private_pool) {
  if (private_pool == 0) return allocator_->allocate(bytes, stream);
  pytorch_->begin_pool(private_pool);
  const std::optional<Address> address = allocator_->allocate(bytes, stream);
  pytorch_->end_pool(private_pool);
  ++pool_uses_[private_pool];
  return address;
}

std::optional<RecordingPlayer::Live> RecordingPlayer::request(Bytes bytes, std::uint16_t stream,
                                                              std::uint32_t private_pool) {
  begin_request(bytes, stream, private_pool);
  const Bytes before = allocator_->usage().allocated;
  std::optional<Address> address = ask(bytes, stream, private_pool);
  if (!address && !lifted_) {
    lift_limits();
    address = ask(bytes, stream, private_pool);
  }
  if (synchronized_) complete_pending_frees();
  if (!address) return std::nullopt;
  if (lifted_) missing_ = std::max(missing_, allocator_->usage().reserved - limit_);
  return Live{0, *address, allocator_->usage().allocated - before, bytes};
}

// The recording shows what a request obtained before its releases and after them: there is room for that, and no more.
void RecordingPlayer::refuse_as_recorded(std::size_t begin, std::size_t end) {
  Bytes before = 0;
  releases_awaited_ = 0;
  room_after_release_ = 0;
  for (std::size_t k = begin; k < end; ++k) {
    const MemoryEvent& event = device_.events[k];
    if (event.action == Action::free_completed) continue;
    const bool release = event.action == Action::segment_free || event.action == Action::segment_unmap;
    Bytes& obtained = releases_awaited_ > 0 ? room_after_release_ : before;
    if (release) ++releases_awaited_;
    if (!release && plausible_size(event.size)) obtained = std::min(kUnlimited, obtained + event.size);
  }
  allocator_->set_capacity(std::min(kUnlimited, allocator_->usage().reserved + before));
}

std::optional<RecordingPlayer::Live> RecordingPlayer::request_as_recorded(std::uint32_t i, std::uint32_t private_pool) {
  const std::size_t first = segment_events_before(i);
  const auto events = std::span(device_.events).subspan(first, i - first);
  source_.expect(events);
  if (!as_recorded_) return request(device_.events[i].size, device_.events[i].stream, private_pool);
  begin_request(device_.events[i].size, device_.events[i].stream, private_pool);
  const Bytes before = allocator_->usage().allocated;
  const bool refused = std::any_of(events.begin(), events.end(), [](const MemoryEvent& event) {
    return event.action == Action::segment_free || event.action == Action::segment_unmap;
  });
  if (refused) refuse_as_recorded(first, i);
  std::optional<Address> address = ask(asked_, asked_stream_, private_pool);
  releases_awaited_ = 0;
  if (refused) allocator_->set_capacity(kUnlimited);
  if (!address && refused) {
    wrong_.at_event(i, "a request of {} bytes was served after a release, which does not suffice here", asked_);
    address = ask(asked_, asked_stream_, private_pool);
  }
  if (synchronized_) complete_pending_frees();
  compare(first, i);
  consumed_ = i + 1u;
  if (!address) return std::nullopt;
  return Live{0, *address, allocator_->usage().allocated - before, asked_};
}

// The request failed: it releases what the recording released for it, and finds no more room than the recording shows.
void RecordingPlayer::fail_as_recorded(std::uint32_t i) {
  const MemoryEvent& event = device_.events[i];
  const std::size_t first = segment_events_before(i);
  source_.expect(std::span(device_.events).subspan(first, i - first));
  source_.expect_reservation(std::span(device_.events).subspan(i), event.stream,
                             round_request(settings_, event.size) <= kSmallRequest);
  begin_request(event.size, event.stream, 0);
  notes_.push_back(
      fmt::format("Event {}: a request of {} bytes found no memory; {} bytes were reserved, and {} free on the device.",
                  i, event.size, allocator_->usage().reserved, event.address));
  refuse_as_recorded(first, i);
  releases_awaited_ = std::max<std::size_t>(releases_awaited_, 1);
  const std::optional<Address> address = ask(event.size, event.stream, 0);
  releases_awaited_ = 0;
  allocator_->set_capacity(kUnlimited);
  if (synchronized_) complete_pending_frees();
  if (address) {
    wrong_.at_event(i, "a request of {} bytes failed that the cache serves here", event.size);
    allocator_->free(*address);
    ++served_failures_;
  }
  compare(first, i);
  consumed_ = i + 1u;
}

void RecordingPlayer::lift_limits() {
  lifted_ = true;
  allocator_->set_capacity(kUnlimited);
  if (pytorch_ != nullptr) pytorch_->set_device_total(kLargestDevice);
  notes_.push_back(fmt::format(
      "Event {}: a request of {} bytes finds no memory; from here on it is taken as unlimited.", event_, asked_));
}

void RecordingPlayer::add_live(const Live& block) {
  auto id = static_cast<std::uint32_t>(live_.size());
  if (unused_.empty()) {
    live_.push_back(block);
  } else {
    id = unused_.back();
    unused_.pop_back();
    live_[id] = block;
  }
  by_recorded_.insert(block.recorded, id);
  active_ += block.size;
  requested_ += block.requested;
  ++blocks_;
  if (!block.pending) return;
  pending_bytes_ += block.size;
  pending_.push_back(id);
}

void RecordingPlayer::request_free(std::uint32_t id) {
  Live& block = live_[id];
  block.pending = true;
  pending_bytes_ += block.size;
  pending_.push_back(id);
  if (pytorch_ != nullptr) pytorch_->request_free(block.address);
}

void RecordingPlayer::complete_free(std::uint32_t id) {
  const Live block = live_[id];
  by_recorded_.erase(block.recorded);
  live_[id] = {};
  unused_.push_back(id);
  --blocks_;
  if (block.completed) return;
  active_ -= block.size;
  requested_ -= block.requested;
  if (block.pending && pytorch_ != nullptr)
    pytorch_->complete_free(block.address);
  else
    allocator_->free(block.address);
  if (block.pending) pending_bytes_ -= block.size;
  if (pending_bytes_ == 0) pending_.clear();
}

// For the levels it is complete; the allocator keeps it until the request that comes next synchronizes.
void RecordingPlayer::leave_to_synchronization(std::uint32_t id) {
  const Live block = live_[id];
  by_recorded_.erase(block.recorded);
  live_[id] = {};
  unused_.push_back(id);
  --blocks_;
  if (block.completed) return;
  active_ -= block.size;
  requested_ -= block.requested;
  pending_bytes_ -= block.size;
}

// A synchronization waits for every stream: all pending frees are through.
void RecordingPlayer::complete_pending_frees() {
  for (const std::uint32_t id : pending_) {
    Live& block = live_[id];
    if (!block.pending || block.completed) continue;
    block.completed = true;
    active_ -= block.size;
    requested_ -= block.requested;
  }
  pending_.clear();
  pending_bytes_ = 0;
}

std::uint32_t RecordingPlayer::private_pool_at(Address recorded) const {
  if (private_ranges_.empty()) return 0;
  const auto above = private_ranges_.upper_bound(recorded);
  if (above == private_ranges_.begin()) return 0;
  const auto& [address, range] = *std::prev(above);
  return recorded - address < static_cast<Address>(range.size) ? range.private_pool : 0;
}

void RecordingPlayer::add_point() {
  const Bytes allocated = active_ - pending_bytes_;
  peak_allocated_ = std::max(peak_allocated_, allocated);
  const std::size_t in_release = points_.size() - still_reserved_from_;
  const Bytes still_reserved = in_release < still_reserved_.size() ? still_reserved_[in_release] : 0;
  points_.push_back({allocated, allocator_->usage().reserved + still_reserved, active_, requested_});
}

void RecordingPlayer::on_segment_alloc(Address address, Bytes bytes, std::uint16_t stream) {
  made_.push_back({address, bytes, 0, 0, stream, Action::segment_alloc});
}
void RecordingPlayer::on_segment_free(Address address, Bytes bytes, std::uint16_t stream) {
  made_.push_back({address, bytes, 0, 0, stream, Action::segment_free});
}
void RecordingPlayer::on_segment_map(Address address, Bytes bytes, std::uint16_t stream) {
  made_.push_back({address, bytes, 0, 0, stream, Action::segment_map});
}
void RecordingPlayer::on_segment_unmap(Address address, Bytes bytes, std::uint16_t stream) {
  made_.push_back({address, bytes, 0, 0, stream, Action::segment_unmap});
}

void RecordingPlayer::on_retry_step(RetryStep step, Bytes bytes) {
  synchronized_ |= step == RetryStep::release_cached;
  if (releases_awaited_ > 0 && (step == RetryStep::release_cached || step == RetryStep::release_available)) {
    const auto made = std::count_if(made_.begin(), made_.end(), [](const MemoryEvent& event) {
      return event.action == Action::segment_free || event.action == Action::segment_unmap;
    });
    const bool all = step == RetryStep::release_cached || static_cast<std::size_t>(made) >= releases_awaited_;
    const Bytes room = all ? room_after_release_ : 0;
    pytorch_->set_capacity(std::min(kUnlimited, pytorch_->usage().reserved + room));
  }
  if (retry_sequence_.size() >= longest_retry_sequence_ || retry_work_ > kMostRetryWork) {
    ++unlisted_retries_;
    return;
  }
  retry_work_ += blocks_;
  const bool small = round_request(settings_, asked_) <= kSmallRequest;
  const FreeMemory free = free_memory(pytorch_->segments(), asked_stream_, small, asked_pool_);
  retry_sequence_.push_back({event_, step, asked_, bytes, pytorch_->usage().reserved, free.largest, free.all});
}

std::vector<SegmentState> RecordingPlayer::segments() const {
  return pytorch_ != nullptr ? pytorch_->segments() : std::vector<SegmentState>{};
}

MemoryTotals RecordingPlayer::totals() const {
  MemoryTotals totals{active_ - pending_bytes_, allocator_->usage().reserved, active_, requested_, 0, blocks_};
  if (pytorch_ != nullptr) count_segments(pytorch_->segments(), totals);
  return totals;
}

AllocatorStatistics RecordingPlayer::statistics() const {
  if (pytorch_ != nullptr) return pytorch_->statistics();
  AllocatorStatistics statistics;
  const AllocatorEvents& events = allocator_->events();
  statistics.num_alloc_retries = static_cast<std::int64_t>(events.retries);
  statistics.num_device_alloc = static_cast<std::int64_t>(events.device_mallocs);
  statistics.num_device_free = static_cast<std::int64_t>(events.device_frees);
  statistics.num_ooms = lifted_ ? 1 : 0;
  statistics.allocated_bytes[0].current = active_ - pending_bytes_;
  statistics.allocated_bytes[0].peak = peak_allocated_;
  statistics.reserved_bytes[0].current = allocator_->usage().reserved;
  for (const MemoryLevels& point : points_)
    statistics.reserved_bytes[0].peak = std::max(statistics.reserved_bytes[0].peak, point.reserved);
  return statistics;
}

void RecordingPlayer::report(RecordingReplay& replay) {
  replay.statistics = statistics();
  replay.statistics.num_ooms += static_cast<std::int64_t>(served_failures_);
  replay.points = std::move(points_);
  replay.retry_sequence = std::move(retry_sequence_);
  replay.missing = missing_;
  replay.notes = notes_;
  if (as_recorded_) replay.check = check_;
  if (as_recorded_ && source_.invented() > 0)
    replay.notes.push_back(
        fmt::format("{} segments had to be obtained where the recording has none.", source_.invented()));
  if (as_recorded_ && frameless_releases_ > 0)
    replay.notes.push_back(fmt::format(
        "{} releases of the cache, without frames, come right before a segment: each may be an empty_cache, "
        "as which it is replayed, or a retry, which num_alloc_retries then lacks.",
        frameless_releases_));
  if (unlisted_retries_ > 0 && longest_retry_sequence_ > 0)
    replay.notes.push_back(fmt::format("{} further retry steps are not listed.", unlisted_retries_));
  for (std::string& sentence : wrong_.sentences()) replay.notes.push_back(std::move(sentence));
}

void count_segments(const std::vector<SegmentState>& segments, MemoryTotals& totals) {
  totals.segments = totals.blocks = 0;
  for (const SegmentState& segment : segments) {
    bool mapped = false;
    for (const BlockState& block : segment.blocks) {
      const bool unmapped = block.use == BlockState::Use::unmapped;
      if (!unmapped) ++totals.blocks;
      if (!unmapped && !mapped) ++totals.segments;
      mapped = !unmapped;
    }
  }
}

}  // namespace memwall
