// The device side of the engine: streams, engines, kernels that fill the device.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/engine/engine.h"
#include "sim/engine/paging.h"
#include "sim/machine/hbm_traffic.h"

namespace memwall {
namespace {
// A kernel of more waves than this leaves no room for others before its last wave. Measured on
// captures with several streams: below it, kernels of other streams start beside it.
constexpr float kSeveralWaves = 1.5f;
// A device-to-device copy above this size occupies the device like a kernel of many waves.
constexpr Bytes kWideCopy = 4'000'000;

// What several members send over one link adds up.
void add_to_route(const ActivitySpec& member, GroupRoute& route) {
  for (std::uint32_t i = 0; i < member.link_count; ++i) {
    const double share = member.link_shares == nullptr ? 1 : member.link_shares[i];
    const auto known = std::find(route.links.begin(), route.links.end(), member.links[i]);
    if (known != route.links.end()) {
      route.shares[static_cast<std::size_t>(known - route.links.begin())] += share;
      continue;
    }
    route.links.push_back(member.links[i]);
    route.shares.push_back(share);
  }
}
}  // namespace

void Engine::submit(OpId id, Time ready) {
  const Op& op = trace_.ops[id];
  StreamState& stream = streams_[op.stream];
  for (const OpId producer : stream.pending_producers.list()) stream.edges.push_back({id, producer});
  stream.pending_producers.clear();
  stream.last_submitted = id;
  stream.fifo.push_back({id, ready});
  if (op.placed) ++stream.queued;
  if (stream.fifo.size() == 1 && stream.running == kNoOp) schedule_try(op.stream, ready);
}

void Engine::schedule_try(std::uint16_t index, Time time) {
  StreamState& stream = streams_[index];
  if (stream.try_at <= time) return;  // it will look again then
  stream.try_at = time;
  queue_.push(time, kTryStart, index);
}

// Between the op that ended last in the stream and this one, its next. REQUIRES: one has ended there.
Duration Engine::gap_before(const StreamState& stream, OpId next) const {
  const Op& op = trace_.ops[next];
  const ReplayConstants& constants = *stream.rank->constants;
  if (op.graph_member && trace_.ops[next - 1].graph_member) return constants.graph_gap;
  return constants.stream_gap[static_cast<int>(launch_kind(trace_.ops[stream.previous].kind))]
                             [static_cast<int>(launch_kind(op.kind))];
}

bool Engine::front_bound(std::uint16_t index, Bound& bound) {
  StreamState& stream = streams_[index];
  const Submitted& front = stream.fifo.front();
  bound.raise(front.ready, WaitReason::launch, front.op);
  if (stream.previous != kNoOp) {
    bound.raise(stream.previous_end + gap_before(stream, front.op), WaitReason::stream_order, stream.previous);
  }
  while (!stream.edges.empty() && stream.edges.front().consumer == front.op) {
    const OpId producer = stream.edges.front().producer;
    if (!has_ended(producer)) {
      waiters_.add({producer, false, index});
      return false;
    }
    stream.met.raise(records_[producer].end + stream.rank->constants->event_latency, WaitReason::event, producer);
    stream.edges.pop_front();
  }
  if (stream.met.reason != WaitReason::none) bound.raise(stream.met.time, stream.met.reason, stream.met.cause);
  if (stream.hold.reason != WaitReason::none) bound.raise(stream.hold.time, stream.hold.reason, stream.hold.cause);
  return true;
}

bool Engine::is_multi_wave(const Op& op) const {
  if (op.kind == OpKind::copy) return op.from == op.to && op.bytes > kWideCopy;
  return (op.kind == OpKind::kernel || op.kind == OpKind::collective) && op.waves > kSeveralWaves;
}

Time Engine::occupancy_bound(OpId id, OpId& cause) const {
  const Op& op = trace_.ops[id];
  const bool needs_multiprocessors =
      op.kind == OpKind::kernel || op.kind == OpKind::collective || (op.kind == OpKind::copy && op.from == op.to);
  Time bound{};
  if (!needs_multiprocessors) return bound;
  for (const OpId wide : multi_wave_[trace_.streams[op.stream].device]) {
    const Op& other = trace_.ops[wide];
    if (other.stream == op.stream) continue;
    const Time end = activities_.expected_end(activity_of_stream_[other.stream]);
    const double wave =
        other.waves > 0 ? static_cast<double>(other.duration.count()) / static_cast<double>(other.waves) : 0;
    const Duration last_wave(static_cast<std::int64_t>(wave));
    if (end - last_wave > bound) {
      bound = end - last_wave;
      cause = wide;
    }
  }
  return bound;
}

const Route* Engine::route_of(const Op& op) const {
  const RankState& rank = *streams_[op.stream].rank;
  return route_among(*rank.routes, rank.tier_of_place[op.from], rank.tier_of_place[op.to], op.pageable);
}

bool Engine::take_engine(std::uint16_t index, OpId id) {
  const Op& op = trace_.ops[id];
  if (op.kind != OpKind::copy && op.kind != OpKind::storage_io) return true;
  const Route* route = route_of(op);
  if (route == nullptr || op.from == op.to) return true;
  // Storage devices serve many requests at once; their links are what is shared.
  if (op.kind == OpKind::storage_io) return true;
  CopyEngine& engine = engines_[trace_.streams[op.stream].device][route->engine];
  StreamState& stream = streams_[index];
  if (engine.running == kNoOp && (engine.queue.empty() || engine.queue.front() == index)) {
    if (!engine.queue.empty()) engine.queue.pop_front();
    engine.running = id;
    stream.in_engine_queue = false;
    return true;
  }
  if (!stream.in_engine_queue) {
    stream.in_engine_queue = true;
    engine.queue.push_back(index);
  }
  return false;
}

void Engine::release_engine(OpId id) {
  const Op& op = trace_.ops[id];
  if (op.kind != OpKind::copy || op.from == op.to) return;
  const Route* route = route_of(op);
  if (route == nullptr) return;
  CopyEngine& engine = engines_[trace_.streams[op.stream].device][route->engine];
  if (engine.running != id) return;
  engine.running = kNoOp;
  engine.previous = id;
  if (engine.queue.empty()) return;
  const std::uint16_t next = engine.queue.front();
  streams_[next].hold.raise(now_, WaitReason::copy_engine, id);
  schedule_try(next, now_);
}

void Engine::try_start(std::uint16_t index) {
  StreamState& stream = streams_[index];
  if (stream.running != kNoOp || stream.fifo.empty()) return;
  Bound bound;
  if (!front_bound(index, bound)) return;
  if (bound.time > now_) return schedule_try(index, bound.time);
  const OpId id = stream.fifo.front().op;
  if (!stream.occupancy_checked) {
    stream.occupancy_checked = true;
    OpId cause = kNoOp;
    const Time free_at = occupancy_bound(id, cause);
    if (free_at > now_) {
      stream.hold = {free_at, WaitReason::occupancy, cause};
      return schedule_try(index, free_at);
    }
  }
  if (paging_ && !paging_->ready_to_start(index, id)) return;  // it schedules the next try
  if (!take_engine(index, id)) return;
  begin(index, bound);
}

ActivitySpec Engine::activity_of(OpId id) const {
  const Op& op = trace_.ops[id];
  const RankState& rank = *streams_[op.stream].rank;
  ActivitySpec spec;
  spec.owner = id;
  spec.rank = trace_.streams[op.stream].rank;
  spec.duration = op.duration;
  spec.native = !op.added;
  spec.bytes = op.bytes;
  spec.on_multiprocessors = op.kind == OpKind::kernel;
  if (machine_.links.empty() || op.bytes == 0) return spec;
  if (op.kind == OpKind::kernel || op.kind == OpKind::memset) {
    const Machine& one = machine_.one;
    spec.bytes = hbm_traffic(one.gpu, one.links[one.hbm_link].bandwidth, op);
    spec.links = &rank.hbm_link;
    spec.link_count = 1;
  } else if (op.kind == OpKind::collective) {
    if (!op.added) return spec;
    const GroupRoute& crossed = rank.group_routes.at({op.group, op.collective});
    spec.links = crossed.links.data();
    spec.link_shares = crossed.shares.data();
    spec.link_count = static_cast<std::uint32_t>(crossed.links.size());
  } else if (const Route* route = route_of(op); route != nullptr) {
    spec.links = route->links.data();
    if (!route->link_shares.empty()) spec.link_shares = route->link_shares.data();
    spec.link_count = static_cast<std::uint32_t>(route->links.size());
    spec.weight = route->weight;
  }
  return spec;
}

void Engine::begin(std::uint16_t index, const Bound& bound) {
  StreamState& stream = streams_[index];
  const OpId id = stream.fifo.front().op;
  const Op& op = trace_.ops[id];
  stream.fifo.pop_front();
  stream.met = {};
  // The nodes of a graph stand one behind the other; only the first frees the graph's place in the queue.
  const bool graph_continues = op.graph_member && trace_.ops[id - 1].graph_member;
  if (!graph_continues && stream.queued > 0) --stream.queued;
  stream.hold = {};
  stream.occupancy_checked = stream.paging_asked = false;
  stream.running = id;
  OpRecord& record = records_[id];
  record.start = now_;
  if (!stream.is_storage && first_device_start_ == kNever) first_device_start_ = now_;
  record.device_reason = bound.reason;
  record.device_cause = bound.cause;
  if (op.kind == OpKind::collective && op.added && ++stream.rank->added_collectives == 1)
    update_multiprocessor_share(*stream.rank);
  const bool at_work = arrive_at_rendezvous(id);
  if (!stream.queue_waiters.empty() && stream.queued < stream.rank->constants->launch_queue_depth) {
    Thread& thread = threads_[stream.queue_waiters.front()];
    stream.queue_waiters.erase(stream.queue_waiters.begin());
    set_next_start(thread, now_);
    thread.latest_op = id;
  }
  // A call that would return before its collective has met the others returns at its end.
  if (at_work && op.wait_for == WaitFor::own_op && op.return_delay.count() < 0) {
    const Time own = threads_[op.thread].call_start + op.host_cost;
    const Time end = activities_.expected_end(activity_of_stream_[index]);
    queue_.push(std::max({now_, own, end + op.return_delay}), kReturn, op.thread);
    threads_[op.thread].latest_op = id;
  }
}

// Puts an op that has begun to work; false if it must wait for the other members of its rendezvous. The last of them
// lets all work as one: the longest of their durations, over the links that any of them crosses.
bool Engine::arrive_at_rendezvous(OpId id) {
  const Op& op = trace_.ops[id];
  const std::size_t number = rendezvous_.of(op);
  if (number == RendezvousTable::kNone) {
    activity_of_stream_[op.stream] = activities_.start(now_, activity_of(id));
    if (is_multi_wave(op)) multi_wave_[trace_.streams[op.stream].device].push_back(id);
    return true;
  }
  RendezvousState& rendezvous = rendezvous_states_[number];
  const ActivitySpec own = activity_of(id);
  rendezvous.longest = std::max(rendezvous.longest, own.duration);
  if (own.link_count > 0) add_to_route(own, rendezvous.route);
  if (own.link_count > 0) rendezvous.bytes = std::max(rendezvous.bytes, own.bytes);
  if (--rendezvous.missing > 0) return false;
  const ActivityId activity = activities_.start(now_, activity_of_rendezvous(id, rendezvous));
  for (const OpId member : rendezvous_.members(number)) {
    activity_of_stream_[trace_.ops[member].stream] = activity;
    if (member != id) records_[member].peer = id;
    const Op& met = trace_.ops[member];
    if (is_multi_wave(met)) multi_wave_[trace_.streams[met.stream].device].push_back(member);
  }
  return true;
}

ActivitySpec Engine::activity_of_rendezvous(OpId last, const RendezvousState& rendezvous) const {
  ActivitySpec spec;
  spec.owner = last;
  spec.rank = trace_.streams[trace_.ops[last].stream].rank;
  spec.duration = rendezvous.longest;
  spec.native = rendezvous.route.links.empty();
  spec.bytes = rendezvous.bytes;
  spec.links = rendezvous.route.links.data();
  spec.link_shares = rendezvous.route.shares.data();
  spec.link_count = static_cast<std::uint32_t>(rendezvous.route.links.size());
  return spec;
}

// The end of an activity: of one op, or of all members of a rendezvous at once.
void Engine::end_work(OpId id) {
  const std::size_t rendezvous = rendezvous_.of(trace_.ops[id]);
  if (rendezvous == RendezvousTable::kNone) return end_op(id);
  for (const OpId member : rendezvous_.members(rendezvous)) end_op(member);
}

void Engine::end_op(OpId id) {
  const Op& op = trace_.ops[id];
  StreamState& stream = streams_[op.stream];
  records_[id].end = now_;
  stream.running = kNoOp;
  stream.previous = id;
  stream.previous_end = now_;
  stream.rank->end = std::max(stream.rank->end, now_);
  if (!stream.is_storage) last_device_end_ = now_;
  if (std::vector<OpId>& wide = multi_wave_[trace_.streams[op.stream].device]; !wide.empty()) std::erase(wide, id);
  if (op.kind == OpKind::collective && op.added && --stream.rank->added_collectives == 0)
    update_multiprocessor_share(*stream.rank);
  release_engine(id);
  if (paging_) paging_->op_ended(id);
  if (!held_back_.empty()) release_held_back(id);
  waiters_.take(id, [&](const Waiter& waiter) {
    if (waiter.is_thread)
      wake_from_device(waiter.index, id);
    else
      schedule_try(waiter.index, now_);
  });
  if (!stream.fifo.empty()) {
    // Straight to the earliest possible start, without a look in between.
    const Submitted& next = stream.fifo.front();
    schedule_try(op.stream, std::max({now_, next.ready, now_ + gap_before(stream, next.op)}));
  }
}

void Engine::update_multiprocessor_share(const RankState& rank) {
  const double all = machine_.gpu.multiprocessors;
  const double taken = rank.added_collectives > 0 ? machine_.gpu.collective_multiprocessors : 0;
  const auto index = static_cast<std::uint16_t>(&rank - ranks_.data());
  if (all > taken) activities_.set_multiprocessor_share(now_, index, (all - taken) / all);
}

}  // namespace memwall
