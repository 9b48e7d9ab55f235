#include "sim/memory/deferred_frees.h"

#include <algorithm>

namespace memwall {
namespace {

bool contains(const std::vector<std::uint16_t>& streams, std::uint16_t stream) {
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

}  // namespace

void DeferredFrees::use(std::uint32_t block, std::uint16_t stream, bool capturing) {
  Uses& uses = uses_[block];
  if (!contains(uses.streams, stream)) uses.streams.push_back(stream);
  if (capturing && !contains(uses.captured, stream)) uses.captured.push_back(stream);
}

void DeferredFrees::add(std::uint32_t block, bool capturing) {
  if (capturing)
    after_capture_.push_back(block);
  else
    record_events(block);
}

void DeferredFrees::record_events(std::uint32_t block) {
  if (events_ == nullptr) return hold(block);
  Uses& uses = uses_[block];
  for (const std::uint16_t stream : uses.streams) queues_[stream].emplace_back(events_->record(stream), block);
  uses.outstanding = static_cast<std::uint32_t>(uses.streams.size());
}

void DeferredFrees::hold(std::uint32_t block) {
  uses_.erase(block);
  if (block >= place_in_held_.size()) place_in_held_.resize(block + 1u, 0);
  place_in_held_[block] = static_cast<std::uint32_t>(held_.size());
  held_.push_back({holds_++, block});
}

bool DeferredFrees::complete(std::uint32_t block) {
  const std::uint32_t place = block < place_in_held_.size() ? place_in_held_[block] : 0;
  if (place >= held_.size() || held_[place].block != block) return false;
  held_[place] = held_.back();
  place_in_held_[held_[place].block] = place;
  held_.pop_back();
  return true;
}

void DeferredFrees::end_capture(std::vector<std::uint32_t>& ready) {
  std::erase_if(after_capture_, [&](std::uint32_t block) {
    Uses& uses = uses_[block];
    std::erase_if(uses.streams, [&](std::uint16_t stream) { return contains(uses.captured, stream); });
    if (!uses.streams.empty()) return false;
    uses_.erase(block);
    ready.push_back(block);
    return true;
  });
}

void DeferredFrees::leave_capture() {
  for (const std::uint32_t block : after_capture_) record_events(block);
  after_capture_.clear();
}

void DeferredFrees::count_event(std::uint32_t block, std::vector<std::uint32_t>& ready) {
  const auto uses = uses_.find(block);
  if (--uses->second.outstanding > 0) return;
  uses_.erase(uses);
  ready.push_back(block);
}

void DeferredFrees::poll(std::vector<std::uint32_t>& ready) {
  leave_capture();
  for (auto it = queues_.begin(); it != queues_.end();) {
    auto& queue = it->second;
    while (!queue.empty() && events_->complete(queue.front().first)) {
      count_event(queue.front().second, ready);
      queue.pop_front();
    }
    it = queue.empty() ? queues_.erase(it) : std::next(it);
  }
}

void DeferredFrees::synchronize(std::vector<std::uint32_t>& ready) {
  leave_capture();
  for (const auto& [stream, queue] : queues_) {
    for (const auto& [event, block] : queue) {
      events_->synchronize(event);
      count_event(block, ready);
    }
  }
  queues_.clear();
  // First freed, first completed: complete() leaves them in disorder.
  std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) { return a.order < b.order; });
  for (const Held& held : held_) ready.push_back(held.block);
  held_.clear();
}

}  // namespace memwall
