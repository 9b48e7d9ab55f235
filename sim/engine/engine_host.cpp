// The host side of the engine: threads, calls, waiting.
#include <algorithm>
#include <cassert>

#include "sim/engine/engine.h"
#include "sim/engine/paging.h"

namespace memwall {

// What is known of `id` so far; of an op that the host comes to for the first time, nothing.
OpRecord& Engine::new_record(OpId id) {
  while (records_.size() <= id) records_.push_back(kNotBegun);
  return records_[id];
}

void Engine::set_next_start(const Thread& thread, Time time) {
  thread_clock_.set(static_cast<std::size_t>(&thread - threads_.data()), time);
}

// To the thread's next op. One thread alone has all ops that are not placed; several have lists.
void Engine::advance(Thread& thread) {
  const std::size_t count = trace_.ops.size();
  if (threads_.size() == 1) {
    do ++thread.current;
    while (thread.current < count && trace_.ops[thread.current].placed);
  } else {
    thread.current = ++thread.cursor < thread.ops.size() ? thread.ops[thread.cursor] : static_cast<OpId>(count);
  }
}

void Engine::prepare_next(Thread& thread) {
  if (thread.current == trace_.ops.size()) return block(thread, Block::finished);
  thread.block = Block::none;
  const Op& op = trace_.ops[thread.current];
  Time from = thread.previous_end;
  if (op.kind == OpKind::hand_over) {
    const Time other = op.target < records_.size() ? records_[op.target].host_end : kNever;
    if (other == kNever) {
      hand_over_waiters_[op.target].push_back(static_cast<std::uint16_t>(&thread - threads_.data()));
      return block(thread, Block::hand_over);
    }
    from = std::max(from, other);
  }
  set_next_start(thread, from + op.host_gap);
}

void Engine::wake_hand_overs(OpId ended) {
  const auto waiting = hand_over_waiters_.find(ended);
  if (waiting == hand_over_waiters_.end()) return;
  const std::vector<std::uint16_t> threads = std::move(waiting->second);
  hand_over_waiters_.erase(waiting);
  for (const std::uint16_t index : threads) prepare_next(threads_[index]);
}

void Engine::finish_host(Thread& thread, Time end, WaitReason end_reason) {
  const OpId id = thread.current;
  OpRecord& record = records_[id];
  record.host_end = end;
  record.host_end_reason = end_reason;
  record.host_end_waited = end_reason != WaitReason::none;
  if (record.host_end_waited) record.host_end_cause = thread.latest_op;
  thread.previous_end = end;
  thread.rank->end = std::max(thread.rank->end, end);
  thread.previous_op = id;
  advance(thread);
  prepare_next(thread);
  if (!hand_over_waiters_.empty()) wake_hand_overs(id);
}

void Engine::step_host(Thread& thread, std::uint16_t index) {
  const OpId id = thread.current;
  const Op& op = trace_.ops[id];
  OpRecord& record = new_record(id);
  if (record.host_start == kNever) {  // else: an interrupted call goes on
    record.host_start = now_;
    record.host_cause = thread.previous_op;
    record.host_reason = thread.previous_op == kNoOp ? WaitReason::none : WaitReason::program_order;
    if (op.kind == OpKind::hand_over &&
        (thread.previous_op == kNoOp || records_[op.target].host_end > records_[thread.previous_op].host_end)) {
      record.host_cause = op.target;
      record.host_reason = WaitReason::hand_over;
    }
    if ((++issued_ & 0xffff) == 0 && options_.observer)
      options_.observer->on_progress(now_, static_cast<double>(issued_) / static_cast<double>(trace_.ops.size()));
  }
  switch (op.kind) {
    case OpKind::kernel:
    case OpKind::memset:
    case OpKind::copy:
    case OpKind::collective:
    case OpKind::storage_io:
      if (op.graph_member)
        launch_graph_member(thread, id);
      else
        launch(thread, index, id);
      return;
    case OpKind::graph_launch: {
      launch(thread, index, id);
      return;
    }
    case OpKind::alloc:
      allocate(thread, index, id);
      return;
    case OpKind::free:
      // Threads that nothing holds together may free what another has yet to allocate: it then lives for no time.
      if (!is_allocated_[op.target]) {
        freed_early_.insert(op.target);
        break;
      }
      if (op.wait_for == WaitFor::stream && hold_back(op)) break;
      if (device_calls_.charges_pinning() && trace_.storages[op.target].pinned)
        return finish_host(thread, now_ + op.host_cost + free_page_locked(op.target), WaitReason::none);
      release(op.target);
      break;
    case OpKind::event_record:
      record_event(op);
      break;
    case OpKind::event_wait:
      wait_event(op);
      break;
    case OpKind::synchronize:
      await(thread, index, id);
      return;
    case OpKind::host_work:
      if (op.wait_for != WaitFor::nothing)
        await(thread, index, id);
      else
        begin_host_work(thread, index, id);
      return;
    case OpKind::hand_over:
    case OpKind::mark:
      break;
  }
  finish_host(thread, now_ + op.host_cost, WaitReason::none);
}

// An event is a place in its stream: behind the last op, and behind waits that no op has followed yet.
void Engine::record_event(const Op& op) {
  StreamState& stream = streams_[op.stream];
  stream.pending_producers.forget([&](OpId producer) { return is_past(producer, stream); });
  event_op_[op.target] = stream.last_submitted;
  if (!stream.pending_producers.list().empty())
    event_waits_[op.target] = stream.pending_producers.list();
  else if (!event_waits_.empty())
    event_waits_.erase(op.target);
}

// An op that ended long ago is no bound; one that ended just now still delays by the event's latency.
bool Engine::is_past(OpId producer, const StreamState& stream) const {
  return has_ended(producer) && records_[producer].end + stream.rank->constants->event_latency <= now_;
}

void Engine::wait_event(const Op& op) {
  StreamState& stream = streams_[op.stream];
  const auto add = [&](OpId producer) {
    if (producer != kNoOp && !is_past(producer, stream)) stream.pending_producers.add(producer);
  };
  add(event_op_[op.target]);
  if (event_waits_.empty()) return;
  if (const auto waits = event_waits_.find(op.target); waits != event_waits_.end())
    for (const OpId producer : waits->second) add(producer);
}

void Engine::launch(Thread& thread, std::uint16_t index, OpId id) {
  const Op& op = trace_.ops[id];
  StreamState& stream = streams_[op.stream];
  const ReplayConstants& constants = *stream.rank->constants;
  const std::uint32_t depth = constants.launch_queue_depth;
  if (depth > 0 && stream.queued >= depth) {
    stream.queue_waiters.push_back(index);
    return block(thread, Block::launch_queue);
  }
  WaitReason waited = WaitReason::none;
  if (now_ > records_[id].host_start)
    waited = thread.block == Block::room ? WaitReason::memory : WaitReason::launch_queue;
  if (paging_ && !paging_->ready_to_launch(index, id)) return block(thread, Block::room);
  if (waited == WaitReason::memory) thread.latest_op = kNoOp;
  ++stream.queued;
  if (op.kind != OpKind::graph_launch && op.wait_for == WaitFor::own_op) {
    submit(id, now_ + op.host_cost);
    thread.call_start = now_;
    await_op(thread, index, id);
    return;
  }
  const Time end = now_ + op.host_cost;
  if (op.kind != OpKind::graph_launch) {
    const Duration latency = constants.launch_latency[static_cast<int>(launch_kind(op.kind))];
    submit(id, std::max(now_, end + latency));
  }
  finish_host(thread, end, waited);
}

void Engine::block(Thread& thread, Block reason) {
  thread.block = reason;
  set_next_start(thread, kNever);
}

void Engine::launch_graph_member(Thread& thread, OpId id) {
  const ReplayConstants& constants = *streams_[trace_.ops[id].stream].rank->constants;
  const Duration latency = constants.launch_latency[static_cast<int>(LaunchKind::kernel)];
  submit(id, now_ + latency < now_ ? now_ : now_ + latency);
  finish_host(thread, now_, WaitReason::none);
}

void Engine::await_op(Thread& thread, std::uint16_t index, OpId id) {
  block(thread, Block::device_work);
  thread.pending = 1;
  thread.latest_end = Time{};
  thread.latest_op = kNoOp;
  thread.returned_early = false;
  waiters_.add({id, true, index});
}

void Engine::await_op_end(Thread& thread, std::uint16_t index, OpId awaited) {
  if (awaited == kNoOp || has_ended(awaited) || waiters_.thread_awaits(index, awaited)) return;
  waiters_.add({awaited, true, index});
  ++thread.pending;
}

void Engine::await_stream(Thread& thread, std::uint16_t index, const StreamState& stream) {
  await_op_end(thread, index, stream.last_submitted);
  for (const OpId producer : stream.pending_producers.list()) await_op_end(thread, index, producer);
}

void Engine::await_device(Thread& thread, std::uint16_t index) {
  for (const StreamState& stream : streams_)
    if (!stream.is_storage && stream.rank == thread.rank) await_stream(thread, index, stream);
}

void Engine::begin_wait(Thread& thread) const {
  thread.call_start = now_;
  thread.pending = 0;
  thread.latest_end = Time{};
  thread.latest_op = kNoOp;
  thread.returned_early = false;
}

void Engine::await(Thread& thread, std::uint16_t index, OpId id) {
  const Op& op = trace_.ops[id];
  begin_wait(thread);
  switch (op.wait_for) {
    case WaitFor::stream:
      await_stream(thread, index, streams_[op.stream]);
      break;
    case WaitFor::event:
      await_op_end(thread, index, event_op_[op.target]);
      if (const auto waits = event_waits_.find(op.target); waits != event_waits_.end())
        for (const OpId producer : waits->second) await_op_end(thread, index, producer);
      break;
    case WaitFor::device:
      await_device(thread, index);
      break;
    default:
      break;
  }
  if (thread.pending == 0) {
    if (op.kind == OpKind::host_work) return begin_host_work(thread, index, id);
    return finish_host(thread, now_ + op.host_cost, WaitReason::none);
  }
  block(thread, Block::device_work);
}

void Engine::wake_from_device(std::uint16_t index, OpId ended) {
  Thread& thread = threads_[index];
  if (thread.block != Block::device_work || thread.pending == 0) return;
  thread.latest_end = std::max(thread.latest_end, now_);
  thread.latest_op = ended;
  if (--thread.pending == 0) return_call(thread);
}

void Engine::return_call(Thread& thread) {
  const OpId id = thread.current;
  const Op& op = trace_.ops[id];
  if (op.kind == OpKind::host_work) return begin_host_work(thread, op.thread, id);
  if (op.kind == OpKind::alloc) {
    if (!thread.before_late_frees) return return_from_device_calls(thread);
    thread.block = Block::none;
    return set_next_start(thread, now_);  // it is asked for again
  }
  const Time own = thread.call_start + op.host_cost;
  const Time waited = thread.latest_end + op.return_delay;
  // Never into the past: other threads and streams have already moved on to now.
  finish_host(thread, std::max({own, waited, now_}), waited > own ? WaitReason::synchronize : WaitReason::none);
}

void Engine::begin_host_work(Thread& thread, std::uint16_t, OpId id) {
  const Op& op = trace_.ops[id];
  block(thread, Block::host_work);
  ActivitySpec spec;
  spec.owner = id;
  spec.duration = op.duration;
  spec.native = !op.added;
  if (op.bytes > 0 && !machine_.links.empty()) {
    spec.bytes = op.bytes;
    const RankState& rank = ranks_[trace_.threads[op.thread].rank];
    cross_host(thread, rank, op, spec);
    if (const auto work = rank.work_in.find(op.from); work != rank.work_in.end()) {
      spec.links = work->second.links.data();
      spec.link_shares = work->second.link_shares.data();
      spec.link_count = static_cast<std::uint32_t>(work->second.links.size());
    }
  }
  activities_.start(now_, spec);
}

// Work on the CPU moves its bytes through the host's DRAM and keeps its threads' cores busy: as a flow of the same
// bytes that takes so many of them as it has threads while it goes at full speed.
void Engine::cross_host(Thread& thread, const RankState& rank, const Op& op, ActivitySpec& spec) const {
  thread.work_links[0] = rank.dram_link;
  thread.work_shares[0] = rank.dram_times;
  thread.work_links[1] = rank.core_pool;
  thread.work_shares[1] =
      worker_threads(machine_.one.host) * to_seconds(op.duration) / static_cast<double>(op.bytes) * rank.core_times;
  spec.links = thread.work_links;
  spec.link_shares = thread.work_shares;
  spec.link_count = rank.core_pool > 0 ? 2 : 1;
}

}  // namespace memwall
