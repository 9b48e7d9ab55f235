// What a pager's answers do: moves as transfers, faults as waits. Present only
// when a run has a pager. Internal to sim/.
//
// Of a trace that holds several ranks each rank's memory is paged by itself, over its own copy engines; what ranks have
// in common are the slower tiers that they share, and the links that lead there.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/eviction_order.h"
#include "sim/policy/pager.h"

namespace memwall {

class Paging {
 public:
  Paging(Engine& engine, Pager& pager);
  ~Paging();

  // Once, before all else: the pager looks at the machine of one GPU, with the memory that a rank has, and at the
  // trace.
  void plan();
  // noinline: the engine takes what it calls into one piece, for speed; a run without a pager gains nothing from these.
  // Questions of the engine. Each returns false if the caller must wait; it is woken and asks again.
  [[gnu::noinline]] bool place_at_start(StorageId storage, int tier);
  [[gnu::noinline]] bool allocate(std::uint16_t thread, StorageId storage, int tier);
  [[gnu::noinline]] bool ready_to_launch(std::uint16_t thread, OpId id);
  [[gnu::noinline]] bool ready_to_start(std::uint16_t stream, OpId id);
  // Notices.
  [[gnu::noinline]] void freed(StorageId storage);
  [[gnu::noinline]] void op_ended(OpId id);
  [[gnu::noinline]] void transfer_ended(std::uint32_t transfer);

  const std::vector<MoveRecord>& moves() const { return moves_; }
  // Uses and residents that were looked at so far.
  std::uint64_t steps() const { return steps_ + order_.steps(); }

 private:
  enum class State : std::uint8_t { absent, resident, leaving, elsewhere, arriving, dead };

  struct Page {
    State state = State::absent;
    int home = -1;            // device tier that the storage belongs to; -1 = not paged
    int backing = -1;         // slower tier that holds it while elsewhere
    int target = -1;          // leaving: where to
    bool freed = false;       // dropped by the host while it was on the move, or still to be used
    std::uint32_t users = 0;  // ops launched and not yet ended that use it
    std::uint32_t pins = 0;   // device clock: those of them that have asked to start
    OpId for_op = kNoOp;      // leaving: the op that the room is for
    Time last_use{};
  };

  // How far the op that a thread or a stream asks for is: the storages of its uses before `resident` are there or on
  // their way, those before `arrived` are there. So that whoever is woken looks on where it had to wait, and an op of
  // many uses costs them once and not once per move.
  struct Progress {
    OpId op = kNoOp;
    std::uint32_t resident = 0, arrived = 0;
  };

  struct Transfer {
    StorageId storage = kNoStorage;
    int engine = 0;
    std::size_t move = 0;  // index into moves_
    Duration duration{};
    double weight = 1;
    std::vector<std::uint16_t> links;
    std::vector<double> link_shares;
  };

  struct BlockedCaller {
    bool is_thread = false;
    std::uint16_t index = 0;
  };

  // One rank's memory, and what the pager sees of it: tiers are numbered as one GPU has them.
  struct RankPages final : PagerView {
    RankPages(const Paging& all, std::uint16_t rank) : paging(all), number(rank) {}
    Time now() const override { return paging.engine_.now_; }
    // Less what is on its way there.
    Bytes free_bytes(int tier) const override;
    void each_movable(const std::function<bool(const ResidentStorage&)>& take) const override;

    const Paging& paging;
    const std::uint16_t number;  // index into Trace::rank_table
    std::deque<std::uint32_t> queued[kEngines];
    bool engine_busy[kEngines] = {};
    std::uint32_t leaving = 0;
    std::uint32_t pending_frees = 0;  // freed by the program, and still on the move or to be used
    OpId serving = kNoOp;             // the op whose storages must stay now
    OpId served = kNoOp;              // clock of the host: the op whose storages are pinned in order_, if any
    std::vector<BlockedCaller> blocked_callers;
  };

  enum class Answer : std::uint8_t { done, wait };

  bool paged(StorageId storage) const { return pages_[storage].home >= 0; }
  RankPages& of_storage(StorageId storage) { return ranks_[rank_of_storage_[storage]]; }
  RankPages& of_thread(std::uint16_t thread) { return ranks_[engine_.trace_.threads[thread].rank]; }
  RankPages& of_stream(std::uint16_t stream) { return ranks_[engine_.trace_.streams[stream].rank]; }
  const RankView& view_of(const RankPages& rank) const { return engine_.machine_.views[rank.number]; }
  Answer make_resident(StorageId storage, OpId for_op);
  Answer place_or_make_room(StorageId storage, OpId for_op);
  bool ask_for_room(StorageId storage, OpId for_op);
  void check_move(const RankPages& rank, const Move& move) const;
  void leave(StorageId storage);
  void start_transfer(StorageId storage, int from, int to, OpId for_op);
  void start_next_transfer(RankPages& rank, int engine);
  void add_links(Transfer& transfer, const RankPages& rank, int from, int to) const;
  bool wait(RankPages& rank, const BlockedCaller& caller);
  void wake_all(RankPages& rank);
  void hold(OpId id);
  void pin(OpId id);
  void release(StorageId storage);
  bool may_leave(const Page& page) const { return host_clock_ ? page.users == 0 : page.pins == 0; }
  void set_resident(StorageId storage);
  bool make_all_resident(Progress& progress);
  bool all_arrived(Progress& progress);
  void pin_served(RankPages& rank);

  Engine& engine_;
  Pager& pager_;
  const bool host_clock_;
  const std::vector<std::uint16_t> rank_of_storage_;
  std::vector<RankPages> ranks_;
  std::vector<Page> pages_;
  mutable EvictionOrder order_;  // of what is resident; a walk over it changes nothing that can be seen
  std::vector<Progress> thread_progress_, stream_progress_;
  std::uint64_t steps_ = 0;
  std::vector<Transfer> transfers_;
  std::vector<bool> held_;            // per op: counted among the users
  std::vector<int> spill_order_;      // tiers for what does not fit at the start, as one GPU has them
  std::vector<Bytes> inbound_bytes_;  // per tier of all ranks: of storages that leave for it and have not arrived
  std::vector<MoveRecord> moves_;
};

}  // namespace memwall
