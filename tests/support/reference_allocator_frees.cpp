// Of the reference allocator: frees, the events that delay them, captures and private pools.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/support/reference_allocator.h"

namespace memwall {
namespace {

using Use = BlockState::Use;

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

}  // namespace

void ReferenceAllocator::free(Address address) {
  if (address == 0) return;
  Block& block = blocks_.at(address);
  require(block.use == Use::in_use, "free of a block that is not in use");
  block.use = Use::pending;
  if (block.streams.empty() || !rules_.waits_for_streams)
    finish(address);
  else if (captures_ > 0 && rules_.capture_defers_events)
    deferred_.push_back(address);
  else
    record_events(address);
  recount();
}

void ReferenceAllocator::record_stream(Address address, std::uint16_t stream) {
  if (address == 0) return;
  Block& block = blocks_.at(address);
  require(block.use == Use::in_use, "record_stream of a block that is not in use");
  if (stream == segment_of(address).stream && rules_.own_stream_ignored) return;
  block.streams.insert(stream);
  if (captures_ > 0 && rules_.capture_uses_forgotten) block.capture_streams.insert(stream);
}

void ReferenceAllocator::request_free(Address address) {
  if (address == 0) return;
  Block& block = blocks_.at(address);
  require(block.use == Use::in_use, "request_free of a block that is not in use");
  block.use = Use::pending;
  held_.push_back(address);
  recount();
}

bool ReferenceAllocator::awaits_complete_free(Address address) const {
  return std::find(held_.begin(), held_.end(), address) != held_.end();
}

void ReferenceAllocator::complete_free(Address address) {
  if (std::erase(held_, address) == 1) finish(address);  // else a synchronization was faster
}

// The block can be handed out again.
void ReferenceAllocator::finish(Address address) {
  Block& block = blocks_.at(address);
  block.use = Use::free;
  block.requested = 0;
  block.streams.clear();
  block.capture_streams.clear();
  block.events = 0;
  merge(address);
  recount();
}

// Joins a free block with free neighbours in its segment, an unmapped one with unmapped ones. Where the result begins.
Address ReferenceAllocator::merge(Address address) {
  auto it = blocks_.find(address);
  it->second.cached_at = searches_[segment_of(address).pool];
  const auto alike = [](Blocks::const_iterator a, Blocks::const_iterator b) {
    return a->second.segment == b->second.segment && a->second.use == b->second.use;
  };
  const bool unmapped = it->second.use == Use::unmapped;
  const auto next = std::next(it);
  if (next != blocks_.end() && alike(it, next) && (unmapped || rules_.merges_next)) {
    it->second.size += next->second.size;
    blocks_.erase(next);
  }
  if (it == blocks_.begin() || !alike(std::prev(it), it) || !(unmapped || rules_.merges_previous)) return address;
  const auto previous = std::prev(it);
  previous->second.size += it->second.size;
  previous->second.cached_at = it->second.cached_at;
  blocks_.erase(it);
  return previous->first;
}

void ReferenceAllocator::record_events(Address address) {
  Block& block = blocks_.at(address);
  const auto streams = std::exchange(block.streams, {});
  if (streams.empty()) return finish(address);
  if (!stream_events_) return held_.push_back(address);  // nobody else says what has finished
  block.events = streams.size();
  for (const std::uint16_t stream : streams) waiting_[stream].push_back({stream_events_->record(stream), address});
}

void ReferenceAllocator::end_capture() {
  if (--captures_ > 0 || !rules_.capture_end_frees) return;
  free_captured();
  recount();
}

// Of what captures put off. Work on streams recorded during a capture is part of the graph, and needs no event.
void ReferenceAllocator::free_captured() {
  for (const Address address : std::exchange(deferred_, {})) {
    Block& block = blocks_.at(address);
    for (const std::uint16_t stream : block.capture_streams) block.streams.erase(stream);
    block.streams.empty() ? finish(address) : deferred_.push_back(address);
  }
}

void ReferenceAllocator::record_deferred() {
  free_captured();
  for (const Address address : std::exchange(deferred_, {})) record_events(address);
}

void ReferenceAllocator::process_events() {
  record_deferred();
  for (auto& [stream, queue] : waiting_) {
    std::deque<Waiting> left;
    for (const Waiting& waiting : queue) {
      const bool held_up = rules_.events_in_order && !left.empty();
      if (held_up || !stream_events_->complete(waiting.event))
        left.push_back(waiting);
      else if (--blocks_.at(waiting.block).events == 0)
        finish(waiting.block);
    }
    queue = left;
  }
}

void ReferenceAllocator::synchronize() {
  ++statistics_.num_sync_all_streams;
  record_deferred();
  for (const auto& [stream, queue] : waiting_)
    for (const Waiting& waiting : queue) {
      stream_events_->synchronize(waiting.event);
      if (--blocks_.at(waiting.block).events == 0) finish(waiting.block);
    }
  waiting_.clear();
  for (const Address address : std::exchange(held_, {})) finish(address);
}

void ReferenceAllocator::begin_pool(std::uint32_t pool, std::vector<std::uint16_t> streams) {
  ++pool_uses_[pool];
  active_pools_.push_back({pool, std::move(streams)});
}

void ReferenceAllocator::end_pool(std::uint32_t pool) {
  std::erase_if(active_pools_, [&](const ActivePool& active) { return active.pool == pool; });
}

void ReferenceAllocator::release_pool(std::uint32_t pool) { --pool_uses_.at(pool); }

}  // namespace memwall
