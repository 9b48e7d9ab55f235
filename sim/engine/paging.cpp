#include "sim/engine/paging.h"

#include <algorithm>
#include <cassert>

#include "sim/error.h"
#include "sim/trace/ranks.h"

namespace memwall {

Paging::Paging(Engine& engine, Pager& pager)
    : engine_(engine),
      pager_(pager),
      host_clock_(pager.clock() == PagerClock::host),
      rank_of_storage_(storage_ranks(engine.trace_)),
      pages_(engine.trace_.storages.size()),
      order_(rank_of_storage_, engine.ranks_.size()),
      thread_progress_(engine.trace_.threads.size()),
      stream_progress_(engine.trace_.streams.size()),
      held_(engine.trace_.ops.size(), false),
      inbound_bytes_(engine.machine_.tiers.size(), 0) {
  const Trace& trace = engine.trace_;
  ranks_.reserve(engine.ranks_.size());  // callers keep references
  for (std::uint16_t rank = 0; rank < engine.ranks_.size(); ++rank) ranks_.emplace_back(*this, rank);
  for (StorageId s = 0; s < pages_.size(); ++s) {
    const int tier = engine.tier_of_storage_[s];
    if (engine.machine_.tiers[tier].tier_class == TierClass::device && trace.storages[s].bytes > 0)
      pages_[s].home = tier;
  }
}

Paging::~Paging() = default;

void Paging::plan() {
  Machine seen = engine_.machine_.one;
  for (std::size_t t = 0; t < seen.tiers.size(); ++t) seen.tiers[t] = engine_.machine_.tiers[t];  // the first rank's
  pager_.plan(seen, engine_.trace_);
  spill_order_ = pager_.spill_order();
  if (!spill_order_.empty()) return;
  for (std::size_t t = 0; t < seen.tiers.size(); ++t)
    if (seen.tiers[t].tier_class != TierClass::device) spill_order_.push_back(static_cast<int>(t));
}

Bytes Paging::RankPages::free_bytes(int tier) const {
  const std::uint16_t own = paging.view_of(*this).tier[static_cast<std::size_t>(tier)];
  return paging.engine_.memory_.free_bytes(own) - paging.inbound_bytes_[own];
}

void Paging::RankPages::each_movable(const std::function<bool(const ResidentStorage&)>& take) const {
  const auto take_page = [&](StorageId s) {
    return take({s, paging.engine_.trace_.storages[s].bytes, paging.pages_[s].last_use, false});
  };
  paging.order_.walk(take_page, number);
}

// On the clock of the host, what the op being served uses is pinned while a pager is asked. It stays so until another
// op is served: an op that asks a thousand times for room does not pin its storages a thousand times.
void Paging::pin_served(RankPages& rank) {
  if (!host_clock_ || rank.served == rank.serving) return;
  if (rank.served != kNoOp)
    for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[rank.served])) order_.unpin(use.storage);
  rank.served = rank.serving;
  if (rank.served == kNoOp) return;
  for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[rank.served])) order_.pin(use.storage);
}

bool Paging::place_at_start(StorageId storage, int tier) {
  if (!paged(storage)) return false;
  if (engine_.memory_.place(Time{}, storage, tier)) {
    set_resident(storage);
    return true;
  }
  for (const int of_one : spill_order_) {
    const int slower = view_of(of_storage(storage)).tier[static_cast<std::size_t>(of_one)];
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
  RankPages& rank = of_storage(storage);
  rank.serving = kNoOp;
  const OpId id = engine_.threads_[thread].current;
  if (place_or_make_room(storage, id) == Answer::wait) return wait(rank, {true, thread});
  return true;
}

Paging::Answer Paging::place_or_make_room(StorageId storage, OpId for_op) {
  Page& page = pages_[storage];
  const RankPages& rank = of_storage(storage);
  for (;;) {
    if (engine_.memory_.place(engine_.now_, storage, page.home)) break;
    if (rank.leaving > 0) return Answer::wait;
    if (!ask_for_room(storage, for_op)) {
      // What is launched already gives back what the program has freed since.
      if (host_clock_ && rank.pending_frees > 0) return Answer::wait;
      engine_.memory_.place_unlimited(engine_.now_, storage, page.home);
      break;
    }
  }
  set_resident(storage);
  return Answer::done;
}

void Paging::check_move(const RankPages& rank, const Move& move) const {
  const bool known = move.storage < pages_.size() && rank_of_storage_[move.storage] == rank.number &&
                     pages_[move.storage].state == State::resident;
  if (known && order_.pinned(move.storage))
    throw UsageError("The pager moves storage " + std::to_string(move.storage) +
                     ", which an op uses that runs or is being served; expected one of those that it was shown.");
  const std::vector<Tier>& tiers = engine_.machine_.one.tiers;
  const bool target =
      move.kind != MoveKind::evict || (move.to < tiers.size() && tiers[move.to].tier_class != TierClass::device);
  if (known && target) return;
  throw UsageError("The pager moves storage " + std::to_string(move.storage) +
                   (known ? ", but not to a slower tier." : ", which is not resident."));
}

// Asks once; true if anything leaves because of it.
bool Paging::ask_for_room(StorageId storage, OpId for_op) {
  const Bytes bytes = engine_.trace_.storages[storage].bytes;
  RankPages& rank = of_storage(storage);
  const std::vector<std::uint16_t>& tiers = view_of(rank).tier;
  pin_served(rank);
  const auto home = std::find(tiers.begin(), tiers.end(), pages_[storage].home) - tiers.begin();
  const std::vector<Move> moves = pager_.make_room(static_cast<int>(home), bytes, rank);
  bool progress = false;
  for (const Move& move : moves) {
    check_move(rank, move);
    if (move.kind == MoveKind::drop)
      throw UsageError("The pager drops storage " + std::to_string(move.storage) +
                       ", of which there is no other copy; recomputing pagers are not implemented.");
    Page& page = pages_[move.storage];
    order_.leave(move.storage);
    page.state = State::leaving;
    page.target = tiers[move.to];
    page.for_op = for_op;
    ++rank.leaving;
    inbound_bytes_[tiers[move.to]] += engine_.trace_.storages[move.storage].bytes;
    progress = true;
    // What is launched already may still read it: the copy starts when the last of that has ended.
    if (may_leave(page)) leave(move.storage);
  }
  // On the clock of the device no op loses what it has asked for: that is pinned until the op ends.
  if (progress && host_clock_)
    for (std::size_t t = 0; t < thread_progress_.size(); ++t)
      if (engine_.trace_.threads[t].rank == rank.number && thread_progress_[t].op != for_op) thread_progress_[t] = {};
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
  order_.leave(storage);
  page.state = State::arriving;
  start_transfer(storage, from, page.home, for_op);
  return Answer::done;
}

bool Paging::ready_to_launch(std::uint16_t thread, OpId id) {
  if (host_clock_) {
    RankPages& rank = of_thread(thread);
    rank.serving = id;
    Progress& progress = thread_progress_[thread];
    if (progress.op != id) progress = {id};
    if (!make_all_resident(progress)) return wait(rank, {true, thread});
    rank.serving = kNoOp;
  }
  hold(id);
  return true;
}

// False where the op has to wait for one of its storages.
bool Paging::make_all_resident(Progress& progress) {
  const auto uses = engine_.trace_.uses_of(engine_.trace_.ops[progress.op]);
  for (; progress.resident < uses.size(); ++progress.resident, ++steps_) {
    const StorageId storage = uses[progress.resident].storage;
    if (paged(storage) && make_resident(storage, progress.op) == Answer::wait) return false;
  }
  return true;
}

// The same for their arrival. What has arrived stays: its op holds it (clock of the host) or has pinned it.
bool Paging::all_arrived(Progress& progress) {
  const auto uses = engine_.trace_.uses_of(engine_.trace_.ops[progress.op]);
  for (; progress.arrived < uses.size(); ++progress.arrived, ++steps_)
    if (pages_[uses[progress.arrived].storage].state == State::arriving) return false;
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
    order_.use(use.storage);
  }
}

void Paging::pin(OpId id) {
  for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[id])) {
    if (!paged(use.storage)) continue;
    Page& page = pages_[use.storage];
    ++page.pins;
    page.last_use = engine_.now_;
    order_.use(use.storage);
    order_.pin(use.storage);
  }
}

bool Paging::ready_to_start(std::uint16_t stream, OpId id) {
  if (!held_[id]) return true;  // a node of a graph, or state before the window: outside the pager's reach
  auto& state = engine_.streams_[stream];
  RankPages& rank = of_stream(stream);
  Progress& progress = stream_progress_[stream];
  if (progress.op != id) progress = {id};
  if (!host_clock_) {
    rank.serving = id;
    if (!state.paging_asked) pin(id);
    state.paging_asked = true;
    if (!make_all_resident(progress)) return wait(rank, {false, stream});
    rank.serving = kNoOp;
  }
  return all_arrived(progress) || wait(rank, {false, stream});
}

bool Paging::wait(RankPages& rank, const BlockedCaller& caller) {
  rank.serving = kNoOp;
  rank.blocked_callers.push_back(caller);
  return false;
}

void Paging::wake_all(RankPages& rank) {
  std::vector<BlockedCaller> woken;
  woken.swap(rank.blocked_callers);
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
  RankPages& rank = of_storage(storage);
  if (moving || (!host_clock_ && page.users > 0)) {
    ++rank.pending_frees;
    return;
  }
  release(storage);
  if (!rank.blocked_callers.empty()) wake_all(rank);
}

// Gives a freed storage's memory back. REQUIRES: it is not on the move.
void Paging::release(StorageId storage) {
  Page& page = pages_[storage];
  if (page.state == State::resident) order_.leave(storage);
  if (page.state == State::resident || page.state == State::elsewhere) engine_.memory_.remove(engine_.now_, storage);
  page.state = State::dead;
}

void Paging::op_ended(OpId id) {
  if (!held_[id]) return;
  RankPages& rank = of_stream(engine_.trace_.ops[id].stream);
  for (const Use& use : engine_.trace_.uses_of(engine_.trace_.ops[id])) {
    if (!paged(use.storage)) continue;
    Page& page = pages_[use.storage];
    assert(page.users > 0);
    --page.users;
    if (!host_clock_) {
      --page.pins;
      order_.unpin(use.storage);
    }
    if (page.state == State::leaving && may_leave(page) && page.target >= 0) leave(use.storage);
    if (page.users == 0 && page.freed && (page.state == State::resident || page.state == State::elsewhere)) {
      --rank.pending_frees;
      release(use.storage);
    }
  }
  if (!rank.blocked_callers.empty()) wake_all(rank);
}

void Paging::set_resident(StorageId storage) {
  Page& page = pages_[storage];
  page.state = State::resident;
  page.last_use = engine_.now_;
  order_.enter(storage);
}

}  // namespace memwall
