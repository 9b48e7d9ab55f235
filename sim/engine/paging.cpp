#include "sim/engine/paging.h"

#include <algorithm>
#include <cassert>

#include "sim/error.h"

namespace memwall {

Paging::Paging(Engine& engine, Pager& pager)
    : engine_(engine),
      pager_(pager),
      host_clock_(pager.clock() == PagerClock::host),
      pages_(engine.trace_.storages.size()),
      held_(engine.trace_.ops.size(), false),
      inbound_bytes_(engine.machine_.tiers.size(), 0) {
  const Trace& trace = engine.trace_;
  for (StorageId s = 0; s < pages_.size(); ++s) {
    const int tier = engine.tier_of_storage_[s];
    if (engine.machine_.tiers[tier].tier_class == TierClass::device && trace.storages[s].bytes > 0)
      pages_[s].home = tier;
  }
}

Paging::~Paging() = default;

void Paging::plan() {
  pager_.plan(engine_.machine_, engine_.trace_);
  spill_order_ = pager_.spill_order();
  if (!spill_order_.empty()) return;
  for (std::size_t t = 0; t < engine_.machine_.tiers.size(); ++t)
    if (engine_.machine_.tiers[t].tier_class != TierClass::device) spill_order_.push_back(static_cast<int>(t));
}

std::span<const ResidentStorage> Paging::resident() const {
  view_.clear();
  for (const StorageId s : lru_) {
    const Page& page = pages_[s];
    bool pinned = page.pins > 0;
    if (serving_ != kNoOp)
      for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[serving_])) pinned = pinned || use.storage == s;
    view_.push_back({s, engine_.trace_.storages[s].bytes, page.last_use, false, pinned});
  }
  return view_;
}

bool Paging::place_at_start(StorageId storage, int tier) {
  if (!paged(storage)) return false;
  if (engine_.memory_.place(Time{}, storage, tier)) {
    set_resident(storage);
    return true;
  }
  for (const int slower : spill_order_) {
    if (!engine_.memory_.place(Time{}, storage, slower)) continue;
    pages_[storage].state = State::elsewhere;
    pages_[storage].backing = slower;
    return true;
  }
  return false;
}

bool Paging::allocate(std::uint16_t thread, StorageId storage, int tier) {
  if (!paged(storage)) {
    if (!engine_.memory_.place(engine_.now_, storage, tier))
      engine_.memory_.place_unlimited(engine_.now_, storage, tier);
    return true;
  }
  if (!host_clock_) return true;  // an address; memory comes with the first touch
  serving_ = kNoOp;
  const BlockedCaller caller{true, thread};
  const OpId id = engine_.threads_[thread].current;
  if (place_or_make_room(storage, id) == Answer::wait) return wait(caller);
  return true;
}

Paging::Answer Paging::place_or_make_room(StorageId storage, OpId for_op) {
  Page& page = pages_[storage];
  for (;;) {
    if (engine_.memory_.place(engine_.now_, storage, page.home)) break;
    if (evictions_under_way()) return Answer::wait;
    if (!ask_for_room(storage, for_op)) {
      // What is launched already gives back what the program has freed since.
      if (host_clock_ && pending_frees_ > 0) return Answer::wait;
      engine_.memory_.place_unlimited(engine_.now_, storage, page.home);
      break;
    }
  }
  set_resident(storage);
  return Answer::done;
}

void Paging::check_move(const Move& move) const {
  const bool known = move.storage < pages_.size() && pages_[move.storage].state == State::resident;
  const bool target = move.kind != MoveKind::evict || (move.to < engine_.machine_.tiers.size() &&
                                                       engine_.machine_.tiers[move.to].tier_class != TierClass::device);
  if (known && target) return;
  throw UsageError("The pager moves storage " + std::to_string(move.storage) +
                   (known ? ", but not to a slower tier." : ", which is not resident."));
}

// Asks once; true if anything leaves because of it.
bool Paging::ask_for_room(StorageId storage, OpId for_op) {
  const Bytes bytes = engine_.trace_.storages[storage].bytes;
  const std::vector<Move> moves = pager_.make_room(pages_[storage].home, bytes, *this);
  bool progress = false;
  for (const Move& move : moves) {
    if (move.kind == MoveKind::prefetch) continue;  // takes room instead of making it
    check_move(move);
    if (move.kind == MoveKind::drop)
      throw UsageError("The pager drops storage " + std::to_string(move.storage) +
                       ", of which there is no other copy; recomputing pagers are not implemented.");
    Page& page = pages_[move.storage];
    leave_lru(move.storage);
    page.state = State::leaving;
    page.target = move.to;
    page.for_op = for_op;
    ++leaving_;
    inbound_bytes_[move.to] += engine_.trace_.storages[move.storage].bytes;
    progress = true;
    // What is launched already may still read it: the copy starts when the last of that has ended.
    if (may_leave(page)) leave(move.storage);
  }
  return progress;
}

void Paging::leave(StorageId storage) {
  Page& page = pages_[storage];
  const int to = page.target;
  page.target = -1;  // on its way; not to be started twice
  start_transfer(storage, page.home, to, page.for_op);
}

Paging::Answer Paging::make_resident(StorageId storage, OpId for_op) {
  Page& page = pages_[storage];
  switch (page.state) {
    case State::resident:
    case State::arriving:
      return Answer::done;
    case State::leaving:
      return Answer::wait;
    case State::dead:
      return Answer::done;
    case State::absent:
      return place_or_make_room(storage, for_op);
    case State::elsewhere:
      break;
  }
  const int from = page.backing;
  engine_.memory_.remove(engine_.now_, storage);
  // Its place is not free for what has to leave: it may have to wait there.
  Bytes& kept = inbound_bytes_[static_cast<std::size_t>(from)];
  kept += engine_.trace_.storages[storage].bytes;
  const Answer answer = place_or_make_room(storage, for_op);
  kept -= engine_.trace_.storages[storage].bytes;
  if (answer == Answer::wait) {
    // Back to where it was a moment ago.
    if (!engine_.memory_.place(engine_.now_, storage, from))
      engine_.memory_.place_unlimited(engine_.now_, storage, from);
    return Answer::wait;
  }
  leave_lru(storage);
  page.state = State::arriving;
  start_transfer(storage, from, page.home, for_op);
  return Answer::done;
}

bool Paging::ready_to_launch(std::uint16_t thread, OpId id) {
  if (host_clock_) {
    serving_ = id;
    for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[id]))
      if (paged(use.storage) && make_resident(use.storage, id) == Answer::wait) return wait({true, thread});
    serving_ = kNoOp;
  }
  hold(id);
  return true;
}

// Counts the op among the users of its storages and marks them as used now.
void Paging::hold(OpId id) {
  held_[id] = true;
  for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[id])) {
    if (!paged(use.storage)) continue;
    Page& page = pages_[use.storage];
    ++page.users;
    if (!host_clock_) continue;
    page.last_use = engine_.now_;
    if (page.state == State::resident) lru_.splice(lru_.end(), lru_, page.position);
  }
}

void Paging::pin(OpId id) {
  for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[id])) {
    if (!paged(use.storage)) continue;
    Page& page = pages_[use.storage];
    ++page.pins;
    page.last_use = engine_.now_;
    if (page.state == State::resident) lru_.splice(lru_.end(), lru_, page.position);
  }
}

bool Paging::ready_to_start(std::uint16_t stream, OpId id) {
  if (!held_[id]) return true;  // a node of a graph, or state before the window: outside the pager's reach
  const auto uses = engine_.trace_.uses_of(engine_.trace_.ops[id]);
  auto& state = engine_.streams_[stream];
  if (!host_clock_) {
    serving_ = id;
    if (!state.paging_asked) pin(id);
    state.paging_asked = true;
    for (const Use& use : uses)
      if (paged(use.storage) && make_resident(use.storage, id) == Answer::wait) return wait({false, stream});
    serving_ = kNoOp;
  }
  for (const Use& use : uses)
    if (paged(use.storage) && pages_[use.storage].state == State::arriving) return wait({false, stream});
  return true;
}

bool Paging::wait(const BlockedCaller& caller) {
  serving_ = kNoOp;
  blocked_callers_.push_back(caller);
  return false;
}

void Paging::wake_all() {
  std::vector<BlockedCaller> woken;
  woken.swap(blocked_callers_);
  for (const BlockedCaller& caller : woken) {
    if (caller.is_thread) {
      engine_.set_next_start(engine_.threads_[caller.index], engine_.now_);
    } else {
      engine_.streams_[caller.index].hold.raise(engine_.now_, WaitReason::page_fault, kNoOp);
      engine_.schedule_try(caller.index, engine_.now_);
    }
  }
}

void Paging::freed(StorageId storage) {
  Page& page = pages_[storage];
  if (!paged(storage)) return engine_.memory_.remove(engine_.now_, storage);
  page.freed = true;
  const bool moving = page.state == State::leaving || page.state == State::arriving;
  // On the host clock memory is handed on in stream order, as a caching allocator does; on the device clock the
  // ops that use the storage may not have started yet.
  if (moving || (!host_clock_ && page.users > 0)) {
    ++pending_frees_;
    return;
  }
  release(storage);
  if (!blocked_callers_.empty()) wake_all();
}

// Gives a freed storage's memory back. REQUIRES: it is not on the move.
void Paging::release(StorageId storage) {
  Page& page = pages_[storage];
  if (page.state == State::resident) leave_lru(storage);
  if (page.state == State::resident || page.state == State::elsewhere) engine_.memory_.remove(engine_.now_, storage);
  page.state = State::dead;
}

void Paging::op_ended(OpId id) {
  if (!held_[id]) return;
  for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[id])) {
    if (!paged(use.storage)) continue;
    Page& page = pages_[use.storage];
    assert(page.users > 0);
    --page.users;
    if (!host_clock_) --page.pins;
    if (page.state == State::leaving && may_leave(page) && page.target >= 0) leave(use.storage);
    if (page.users == 0 && page.freed && (page.state == State::resident || page.state == State::elsewhere)) {
      --pending_frees_;
      release(use.storage);
    }
  }
  if (!blocked_callers_.empty()) wake_all();
}

void Paging::add_links(Transfer& transfer, int from, int to) const {
  const Bytes bytes = engine_.trace_.storages[transfer.storage].bytes;
  const Machine& machine = engine_.machine_;
  const auto add = [&](const Route& route) {
    const double rate = route.bandwidth * route.efficiency.at(static_cast<double>(bytes));
    const Duration alone = route.latency + from_seconds(static_cast<double>(bytes) / rate);
    // Two hops are pipelined: the slower one decides.
    transfer.duration = std::max(transfer.duration, alone);
    transfer.weight = std::min(transfer.weight, route.weight);
    for (const std::uint16_t link : route.links) {
      const auto found = std::find(transfer.links.begin(), transfer.links.end(), link);
      if (found != transfer.links.end()) {
        double& share = transfer.link_shares[static_cast<std::size_t>(found - transfer.links.begin())];
        share = std::max(share, route.share_of(link));
        continue;
      }
      transfer.links.push_back(link);
      transfer.link_shares.push_back(route.share_of(link));
    }
  };
  const Route* direct = machine.route(from, to, false);
  if (direct != nullptr) {
    transfer.engine = direct->engine;
    return add(*direct);
  }
  for (std::size_t middle = 0; middle < machine.tiers.size(); ++middle) {
    const Route* first = machine.route(from, static_cast<int>(middle), false);
    const Route* second = machine.route(static_cast<int>(middle), to, false);
    if (first == nullptr || second == nullptr) continue;
    // The GPU's own engine is the one that queues.
    transfer.engine = machine.tiers[from].tier_class == TierClass::device ? first->engine : second->engine;
    add(*first);
    return add(*second);
  }
  throw UsageError("The pager moves data from '" + machine.tiers[from].name + "' to '" + machine.tiers[to].name +
                   "', for which machine '" + machine.name + "' has no route.");
}

void Paging::start_transfer(StorageId storage, int from, int to, OpId for_op) {
  Transfer transfer;
  transfer.storage = storage;
  add_links(transfer, from, to);
  transfer.move = moves_.size();
  moves_.push_back({kNever, kNever, storage, static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to),
                    engine_.trace_.storages[storage].bytes, for_op});
  const int engine = transfer.engine;
  queued_[engine].push_back(static_cast<std::uint32_t>(transfers_.size()));
  transfers_.push_back(std::move(transfer));
  start_next_transfer(engine);
}

void Paging::start_next_transfer(int engine) {
  if (engine_busy_[engine] || queued_[engine].empty()) return;
  const std::uint32_t index = queued_[engine].front();
  queued_[engine].pop_front();
  engine_busy_[engine] = true;
  const Transfer& transfer = transfers_[index];
  MoveRecord& move = moves_[transfer.move];
  move.start = engine_.now_;
  ActivitySpec spec;
  spec.owner = static_cast<std::uint32_t>(engine_.trace_.ops.size()) + index;
  spec.duration = transfer.duration;
  spec.bytes = move.bytes;
  // Growth of transfers_ moves its vectors, not their heap buffers: the pointers stay valid.
  spec.links = transfer.links.data();
  spec.link_shares = transfer.link_shares.data();
  spec.link_count = static_cast<std::uint32_t>(transfer.links.size());
  spec.weight = transfer.weight;
  engine_.activities_.start(engine_.now_, spec);
}

void Paging::transfer_ended(std::uint32_t index) {
  const Transfer& transfer = transfers_[index];
  MoveRecord& move = moves_[transfer.move];
  move.end = engine_.now_;
  const StorageId storage = transfer.storage;
  const int engine = transfer.engine;
  Page& page = pages_[storage];
  engine_busy_[engine] = false;
  if (page.state == State::leaving) {
    --leaving_;
    inbound_bytes_[move.to] -= move.bytes;
    engine_.memory_.remove(engine_.now_, storage);
    page.state = State::dead;
    if (page.freed && page.users == 0) {
      --pending_frees_;
    } else {
      page.state = State::elsewhere;
      page.backing = move.to;
      if (!engine_.memory_.place(engine_.now_, storage, move.to))
        engine_.memory_.place_unlimited(engine_.now_, storage, move.to);
    }
  } else {
    set_resident(storage);
    if (page.freed && page.users == 0) {
      --pending_frees_;
      release(storage);
    }
  }
  start_next_transfer(engine);
  wake_all();
}

void Paging::set_resident(StorageId storage) {
  Page& page = pages_[storage];
  page.state = State::resident;
  page.last_use = engine_.now_;
  lru_.push_back(storage);
  page.position = std::prev(lru_.end());
}

void Paging::leave_lru(StorageId storage) { lru_.erase(pages_[storage].position); }

}  // namespace memwall
