// What the host does with memory: allocations that find room, wait for it, or do not; frees at once and late ones.
#include <algorithm>
#include <utility>

#include "sim/engine/engine.h"
#include "sim/engine/paging.h"

namespace memwall {

void Engine::release(StorageId storage) {
  if (paging_)
    paging_->freed(storage);
  else
    memory_.remove(now_, storage);
}

// record_stream: another stream uses the storage, so that its memory comes back only once what has been submitted to
// that stream by now is done. Is there anything left to wait for?
bool Engine::hold_back(const Op& op) {
  const StreamState& stream = streams_[op.stream];
  OpId last = stream.last_submitted;
  if (last == kNoOp || has_ended(last)) {
    last = kNoOp;
    for (const OpId producer : stream.pending_producers.list())
      if (!has_ended(producer)) last = producer;
  }
  if (last != kNoOp) held_back_[last].push_back(op.target);
  return last != kNoOp;
}

void Engine::release_held_back(OpId ended) {
  const auto held = held_back_.find(ended);
  if (held == held_back_.end()) return;
  const std::vector<StorageId> storages = std::move(held->second);
  held_back_.erase(held);
  for (const StorageId storage : storages) release(storage);
}

void Engine::allocate(Thread& thread, std::uint16_t index, OpId id) {
  const Op& op = trace_.ops[id];
  const int tier = tier_of_storage_[op.target];
  DeviceCalls::Cost cost;
  const bool room_was_made = thread.before_late_frees.has_value();
  if (paging_) {
    if (!paging_->allocate(index, op.target, tier)) return block(thread, Block::room);
  } else if (device_calls_.charges_pinning() && trace_.storages[op.target].pinned && memory_.is_host(tier)) {
    cost = place_page_locked(op.target, tier);
  } else {
    const AllocatorEvents before = thread.before_late_frees.value_or(memory_.events(tier));
    const bool fits = memory_.place(now_, op.target, tier);
    if (!fits && !held_back_.empty() && await_late_frees(thread, index, tier)) {
      memory_.retract_refusal(tier);
      thread.before_late_frees = before;
      return;
    }
    thread.before_late_frees.reset();
    if (!fits) memory_.place_unlimited(now_, op.target, tier);  // as if there were more: what was tried costs nothing
    const AllocatorEvents& after = memory_.events(tier);
    if (fits && (after.device_mallocs != before.device_mallocs || after.device_frees != before.device_frees))
      cost = device_calls_.charge(trace_.threads[index], before, after);
  }
  is_allocated_[op.target] = 1;
  if (!freed_early_.empty() && freed_early_.erase(op.target) > 0) release(op.target);
  const OpId waited_for = room_was_made ? thread.latest_op : kNoOp;
  if (cost.waits_for_device || cost.calls.count() > 0) return call_device(thread, index, cost, waited_for);
  const bool waited = now_ > records_[id].host_start;
  if (waited && !room_was_made) thread.latest_op = kNoOp;
  finish_host(thread, now_ + op.host_cost, waited ? WaitReason::memory : WaitReason::none);
}

// Before it gives up, PyTorch's allocator waits for the events of all blocks that other streams still use
// (synchronize_and_free_events, in release_cached_blocks). False: there are none.
bool Engine::await_late_frees(Thread& thread, std::uint16_t index, int tier) {
  begin_wait(thread);
  for (const auto& [last, storages] : held_back_)
    if (std::any_of(storages.begin(), storages.end(), [&](StorageId id) { return memory_.tier_of(id) == tier; }))
      await_op_end(thread, index, last);
  if (thread.pending == 0) return false;
  block(thread, Block::device_work);
  return true;
}

DeviceCalls::Cost Engine::place_page_locked(StorageId storage, int tier) {
  const TierMemory::PageLocked before = memory_.page_locked(tier);
  const bool fits = memory_.place(now_, storage, tier);
  if (!fits) memory_.place_unlimited(now_, storage, tier);
  const TierMemory::PageLocked after = memory_.page_locked(tier);
  return fits ? device_calls_.pinning(after.obtained - before.obtained, after.bytes - before.bytes)
              : DeviceCalls::Cost{};
}

// What the call takes.
Duration Engine::free_page_locked(StorageId storage) {
  const int tier = memory_.tier_of(storage);
  const bool is_host = tier >= 0 && memory_.is_host(tier);
  const std::uint64_t before = is_host ? memory_.page_locked(tier).returned : 0;
  release(storage);
  return is_host ? device_calls_.pinned_frees(memory_.page_locked(tier).returned - before) : Duration{};
}

// `waited_for`: what the call has waited for before, which is its cause where the device lets it go on at once.
void Engine::call_device(Thread& thread, std::uint16_t index, const DeviceCalls::Cost& cost, OpId waited_for) {
  begin_wait(thread);
  thread.latest_op = waited_for;
  thread.device_calls = cost.calls;
  if (cost.waits_for_device) await_device(thread, index);
  if (thread.pending == 0) return return_from_device_calls(thread);
  block(thread, Block::device_work);
}

void Engine::return_from_device_calls(Thread& thread) {
  const Op& op = trace_.ops[thread.current];
  const Time end = now_ + thread.device_calls;
  memory_.add_device_calls(tier_of_storage_[op.target], end - thread.call_start);
  finish_host(thread, end + op.host_cost, WaitReason::memory);
}

}  // namespace memwall
