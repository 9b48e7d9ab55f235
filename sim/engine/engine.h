// The simulation at work. Two clocks: host threads run ahead and launch; streams
// follow. A host op happens at its start time; the device is never let past the
// earliest host op that could still launch something.
//
// Internal to sim/: users call simulate() in sim/engine/simulation.h.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "sim/engine/activities.h"
#include "sim/engine/device_calls.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/pending_producers.h"
#include "sim/engine/ring_queue.h"
#include "sim/engine/simulation.h"
#include "sim/engine/thread_clock.h"
#include "sim/engine/tier_memory.h"
#include "sim/engine/waiters.h"
#include "sim/machine/group_place.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/rendezvous.h"

namespace memwall {

class Paging;

class Engine {
 public:
  Engine(const Trace& trace, const RankMachine& machine, const SimulationOptions& options,
         const TierAllocators& allocators);
  ~Engine();
  SimulationResult run();

 private:
  friend class Paging;

  struct RankState;

  enum EventKind : std::uint32_t { kTryStart, kEnd, kSolve, kReturn, kCacheFull };

  // Why a host thread does not run.
  enum class Block : std::uint8_t { none, finished, device_work, hand_over, launch_queue, host_work, room };

  struct Thread {
    RankState* rank = nullptr;
    OpId current = 0;        // the op that it is at or before; trace.ops.size(): none is left
    std::vector<OpId> ops;   // of a trace of several threads: all of its own, ascending
    std::size_t cursor = 0;  // in ops
    Time previous_end{};
    Block block = Block::none;
    OpId previous_op = kNoOp;
    // While blocked:
    Time call_start{};
    std::uint32_t pending = 0;  // device ops still awaited
    Time latest_end{};          // of those that ended
    OpId latest_op = kNoOp;
    Duration device_calls{};      // of the allocation that it is at
    bool returned_early = false;  // a negative return delay let the call return before the end
    // Of an allocation that waits for memory which other streams have yet to give back: what its allocator had done
    // before.
    std::optional<AllocatorEvents> before_late_frees{};
    // Of work on the CPU: what it crosses, and its shares of the bytes there.
    std::uint16_t work_links[2] = {};
    double work_shares[2] = {};
  };

  static constexpr OpRecord kNotBegun{.host_start = kNever, .host_end = kNever};

  struct Submitted {
    OpId op = kNoOp;
    Time ready{};
  };

  struct Edge {
    OpId consumer = kNoOp, producer = kNoOp;
  };

  // A lower bound on a start, and who set it.
  struct Bound {
    Time time{};
    WaitReason reason = WaitReason::none;
    OpId cause = kNoOp;
    void raise(Time t, WaitReason r, OpId c) {
      if (t > time || reason == WaitReason::none) *this = {t, r, c};
    }
  };

  // What one rank has of its own.
  struct RankState {
    const ReplayConstants* constants = nullptr;
    const std::vector<Route>* routes = nullptr;
    std::vector<std::uint16_t> tier_of_place;
    std::uint16_t hbm_link = 0, dram_link = 0;
    double dram_times = 1;        // RankView::multiplicity of dram_link
    double core_times = 1;        // RankView::core_times
    std::uint16_t core_pool = 0;  // as Activities numbers it; 0: no cores are counted
    // What the rank's part of a collective that a policy added crosses, by process group and kind.
    std::map<std::pair<std::uint16_t, CollectiveKind>, GroupRoute> group_routes;
    std::map<std::uint8_t, Route> work_in;  // by place: what host_work there crosses; not of the host's memory
    std::uint32_t added_collectives = 0;    // that run
    Time end{};                             // of all that has ended so far, host and device
  };

  // The collectives of several ranks that are one.
  struct RendezvousState {
    std::uint32_t missing = 0;  // members that have not begun
    Duration longest{};
    GroupRoute route;  // of the members that a policy added
    Bytes bytes = 0;
  };

  struct StreamState {
    RankState* rank = nullptr;
    bool is_storage = false;
    RingQueue<Submitted> fifo;           // submitted and not yet started; the front is next
    RingQueue<Edge> edges;               // of ops in fifo, in their order
    Bound met;                           // of those of the front op that have ended and are no longer in `edges`
    PendingProducers pending_producers;  // of the next op to be submitted
    OpId last_submitted = kNoOp, running = kNoOp, previous = kNoOp;
    Time previous_end{};
    std::uint32_t queued = 0;  // calls submitted and not started; a graph counts once
    Time try_at = kNever;      // a kTryStart is scheduled for then
    Bound hold;                // occupancy, copy engine or page fault of the front op
    bool occupancy_checked = false, in_engine_queue = false, paging_asked = false;
    std::vector<std::uint16_t> queue_waiters;  // threads
  };

  struct CopyEngine {
    OpId running = kNoOp, previous = kNoOp;
    std::deque<std::uint16_t> queue;  // streams whose front op waits
  };

  // engine.cpp
  void describe_ranks(const RankMachine& machine);
  void resolve_places(const RankMachine& machine);
  void resolve_op(const Op& op);
  void resolve_work(const Op& op);
  void resolve_collective(const Op& op);
  void list_program();
  void expect_rendezvous();
  void start_program();
  void loop();
  void handle(const Event& event);
  SimulationResult collect();
  void require_all_finished();
  void require_complete_rendezvous() const;

  // noinline: rare, and not worth their place in the one piece that loop() is.
  // engine_host.cpp
  void advance(Thread& thread);
  void prepare_next(Thread& thread);
  void block(Thread& thread, Block reason);
  void set_next_start(const Thread& thread, Time time);
  void step_host(Thread& thread, std::uint16_t index);
  void finish_host(Thread& thread, Time end, WaitReason end_reason);
  void launch(Thread& thread, std::uint16_t index, OpId id);
  [[gnu::noinline]] void launch_graph_member(Thread& thread, OpId id);
  void cross_host(Thread& thread, const RankState& rank, const Op& op, ActivitySpec& spec) const;
  [[gnu::noinline]] void await(Thread& thread, std::uint16_t index, OpId id);
  void await_op_end(Thread& thread, std::uint16_t index, OpId awaited);
  void await_stream(Thread& thread, std::uint16_t index, const StreamState& stream);
  void await_device(Thread& thread, std::uint16_t index);
  [[gnu::noinline]] void begin_host_work(Thread& thread, std::uint16_t index, OpId id);
  void allocate(Thread& thread, std::uint16_t index, OpId id);
  [[gnu::noinline]] void call_device(Thread& thread, std::uint16_t index, const DeviceCalls::Cost& cost,
                                     OpId waited_for);
  void return_from_device_calls(Thread& thread);
  [[gnu::noinline]] DeviceCalls::Cost place_page_locked(StorageId storage, int tier);
  Duration free_page_locked(StorageId storage);
  void release(StorageId storage);
  [[gnu::noinline]] bool hold_back(const Op& op);
  [[gnu::noinline]] void release_held_back(OpId ended);
  [[gnu::noinline]] bool await_late_frees(Thread& thread, std::uint16_t index, int tier);
  void begin_wait(Thread& thread) const;
  [[gnu::noinline]] void record_event(const Op& op);
  [[gnu::noinline]] void wait_event(const Op& op);
  bool is_past(OpId producer, const StreamState& stream) const;
  [[gnu::noinline]] void await_op(Thread& thread, std::uint16_t index, OpId id);
  [[gnu::noinline]] void wake_from_device(std::uint16_t index, OpId ended);
  void return_call(Thread& thread);
  [[gnu::noinline]] void wake_hand_overs(OpId ended);

  // engine_device.cpp
  void submit(OpId id, Time ready);
  void try_start(std::uint16_t stream);
  Duration gap_before(const StreamState& stream, OpId next) const;
  bool front_bound(std::uint16_t index, Bound& bound);
  [[gnu::noinline]] Time occupancy_bound(OpId id, OpId& cause) const;
  [[gnu::noinline]] bool take_engine(std::uint16_t stream, OpId id);
  void begin(std::uint16_t stream, const Bound& bound);
  bool arrive_at_rendezvous(OpId id);
  void end_work(OpId id);
  void end_op(OpId id);
  [[gnu::noinline]] void release_engine(OpId id);
  void schedule_try(std::uint16_t stream, Time time);
  [[gnu::noinline]] void update_multiprocessor_share(const RankState& rank);
  ActivitySpec activity_of(OpId id) const;
  [[gnu::noinline]] ActivitySpec activity_of_rendezvous(OpId last, const RendezvousState& rendezvous) const;
  const Route* route_of(const Op& op) const;
  bool is_multi_wave(const Op& op) const;

  Time now() const { return now_; }
  // REQUIRES: the op has been submitted to its stream.
  bool has_ended(OpId id) const { return records_[id].end != kNever; }
  OpRecord& new_record(OpId id);

  const Trace& trace_;
  const RankMachine& machine_;  // of all ranks
  const SimulationOptions& options_;
  EventQueue queue_;
  Activities activities_;
  TierMemory memory_;
  DeviceCalls device_calls_;
  std::unique_ptr<Paging> paging_;  // null without a pager

  Time now_{};
  // Grows as the host comes to the ops, so that a record is first touched when it is written.
  std::vector<OpRecord> records_;
  std::vector<std::uint8_t> is_allocated_;  // storages: preexisting, or their alloc has happened
  std::set<StorageId> freed_early_;         // whose free came before their alloc
  std::vector<Thread> threads_;
  ThreadClock thread_clock_;  // when the next call of each begins
  std::vector<StreamState> streams_;
  std::vector<OpId> event_op_;                              // per event: the op it was recorded behind
  std::map<std::uint32_t, std::vector<OpId>> event_waits_;  // and what its stream was told to wait for since
  Waiters waiters_;
  std::vector<std::vector<OpId>> multi_wave_;             // by device: running kernels of several waves
  Time first_device_start_ = kNever, last_device_end_{};  // storage streams not counted
  std::vector<std::vector<CopyEngine>> engines_;          // [device][engine class]
  std::vector<RankState> ranks_;
  std::vector<std::uint16_t> tier_of_storage_;
  RendezvousTable rendezvous_;
  std::vector<RendezvousState> rendezvous_states_;
  std::vector<ActivityId> activity_of_stream_;
  std::vector<OpId> placed_;  // ops that stand in their streams before the program begins
  std::unordered_map<OpId, std::vector<std::uint16_t>> hand_over_waiters_;  // by the op awaited: threads
  std::unordered_map<OpId, std::vector<StorageId>> held_back_;  // freed; memory comes back when the op has ended
  std::uint64_t issued_ = 0;
};

}  // namespace memwall
