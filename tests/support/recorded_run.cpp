#include "tests/support/recorded_run.h"

#include <algorithm>

namespace memwall {
namespace {

constexpr Address kPlace = Address{256} << 20;  // no request is larger
constexpr Bytes kDevice = GiB(64);

}  // namespace

RecordedRun::RecordedRun(const RecordedRunOptions& options)
    : options_(options), random_(options.seed), allocator_(options.capacity, this, options.settings) {
  for (Address i = 1; i <= 4096; ++i) places_.push_back((Address{1} << 40) + i * kPlace);
  std::shuffle(places_.begin(), places_.end(), random_);
  allocator_.set_device_total(kDevice);
  allocator_.observe(this);
  for (int i = 0; i < options.calls; ++i) {
    stack_ = static_cast<StackId>(1 + i);
    states.resize(events_.size());
    states.push_back(allocator_.segments());
    call();
  }
  states.resize(events_.size());
}

void RecordedRun::call() {
  const std::size_t choice = below(100);
  if (choice < 2) {
    allocator_.release_cached();
    return complete_all();  // where nothing was released
  }
  if (choice < 10 && !pending_.empty()) return complete(below(pending_.size()));
  if (choice < 52 || live_.empty()) return allocate();
  free_one();
}

Bytes RecordedRun::random_size() {
  switch (below(5)) {
    case 0:
      return 1 + static_cast<Bytes>(below(4096));
    case 1:
      return 1 + static_cast<Bytes>(below(MiB(1)));
    case 2:
      return MiB(1) + static_cast<Bytes>(below(MiB(9)));
    case 3:
      return MiB(2) * (1 + static_cast<Bytes>(below(8)));  // sizes that come again
    default:
      return MiB(8) + static_cast<Bytes>(below(MiB(60)));
  }
}

void RecordedRun::allocate() {
  const auto stream = static_cast<std::uint16_t>(below(static_cast<std::size_t>(options_.streams)));
  const Bytes size = random_size();
  const std::optional<Address> address = allocator_.allocate(size, stream);
  if (!address) return add(Action::oom, MiB(3), round_request(options_.settings, size), stream);
  add(Action::alloc, *address, size, stream);
  live_.push_back({*address, size, stream});
}

void RecordedRun::free_one() {
  const std::size_t which = below(live_.size());
  const Held block = live_[which];
  live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
  allocator_.request_free(block.address);
  add(Action::free_requested, block.address, block.size, block.stream);
  pending_.push_back(block);
  if (!options_.late_completions || below(3) != 0) complete(pending_.size() - 1);
}

void RecordedRun::complete(std::size_t which) {
  const Held block = pending_[which];
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
  allocator_.complete_free(block.address);
  add(Action::free_completed, block.address, block.size, block.stream);
}

// The allocator has done so already.
void RecordedRun::complete_all() {
  for (const Held& block : pending_) add(Action::free_completed, block.address, block.size, block.stream);
  pending_.clear();
}

void RecordedRun::add(Action action, Address address, Bytes size, std::uint16_t stream) {
  events_.push_back({address, size, 0, stack_, stream, action});
}

std::optional<Address> RecordedRun::obtain(Bytes) {
  const Address place = places_.back();
  places_.pop_back();
  return place;
}

std::optional<Address> RecordedRun::reserve(Bytes bytes) {
  const Address address = next_reservation_;
  next_reservation_ += static_cast<Address>(bytes) + GiB(1);
  return address;
}

MemoryRecording RecordedRun::recording() const {
  MemoryRecording recording;
  recording.strings.emplace_back();
  recording.stacks.resize(static_cast<std::size_t>(options_.calls) + 1);
  recording.settings = options_.settings;
  recording.devices.emplace_back();
  DeviceRecording& device = recording.devices.back();
  device.events = events_;
  for (const SegmentState& segment : allocator_.segments()) {
    bool goes_on = false;
    for (const BlockState& block : segment.blocks) {
      const bool mapped = block.use != BlockState::Use::unmapped;
      if (mapped && !goes_on) {
        RecordedSegment range;
        range.address = block.address;
        range.stream = segment.stream;
        range.small_pool = segment.small_pool;
        range.expandable = segment.expandable;
        device.segments.push_back(range);
      }
      goes_on = mapped;
      if (!mapped) continue;
      const auto state = block.use == BlockState::Use::in_use    ? RecordedBlock::State::allocated
                         : block.use == BlockState::Use::pending ? RecordedBlock::State::pending
                                                                 : RecordedBlock::State::inactive;
      device.segments.back().size += block.size;
      device.segments.back().blocks.push_back({block.address, block.size, block.requested, 0, state});
    }
  }
  return recording;
}

}  // namespace memwall
