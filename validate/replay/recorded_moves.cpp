#include "validate/replay/recorded_moves.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "sim/engine/tier_memory.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

// Where a storage of the trace is, and who works on it there.
struct Residence {
  StorageId device = kNoStorage, far = kNoStorage;  // of the new trace; one of them, or none
  std::map<std::uint16_t, OpId> users;              // on the device: the last op of each stream
  std::uint32_t landed = kNone;                     // the event behind the copy that brought it
  std::vector<std::uint16_t> waited;                // streams that wait for it already
  bool alive = false, freed = false;
  bool written = false;  // is there content to carry?
};

struct AddedOp {
  Op op;
  std::vector<Use> uses;
};

// Decides, op by op of the base trace, what stands before and after it; then writes the new trace.
class MoveWriter {
 public:
  MoveWriter(const Trace& base, const Machine& machine, const std::vector<MoveRecord>& moves)
      : base_(base), machine_(machine), moves_(moves), builder_(TraceBuilder::like(base)), t_(builder_.trace()) {}

  Trace run() {
    hbm_ = tier("hbm");
    host_ = tier("host");
    out_ = stream("pager out");
    in_ = stream("pager in");
    place_at_start();
    for (const MoveRecord& move : moves_) accept(move);
    before_.resize(base_.ops.size());
    after_.resize(base_.ops.size());
    for (const Use& use : base_.uses) uses_now_.push_back(use.storage);
    for (const Op& op : base_.ops) targets_now_.push_back(op.target);
    for (OpId id = 0; id < base_.ops.size(); ++id) plan(id);
    write();
    t_.notes.push_back("pager: " + std::to_string(moves_.size()) + " recorded moves became ops" +
                       (without_content_ == 0 ? "."
                                              : ", but for " + std::to_string(without_content_) +
                                                    " of storages that were freed already."));
    require_made_sound(t_, "writing down the pager's moves");
    return std::move(builder_).finish();
  }

 private:
  [[noreturn]] void refuse(const MoveRecord& move, const std::string& why) const {
    throw UsageError("Trace '" + base_.name + "': the move of storage " + std::to_string(move.storage) + " for op " +
                     (move.for_op == kNoOp ? "none" : std::to_string(move.for_op)) + " " + why +
                     "; executing such a pager is not implemented, expected one on the host's clock between hbm and "
                     "host.");
  }

  int tier(const char* name) const {
    const int found = machine_.tier(name);
    if (found >= 0) return found;
    throw UsageError("Machine '" + machine_.name + "' has no tier '" + name + "', between which pagers' moves go.");
  }

  std::uint16_t stream(const char* name) {
    const std::uint16_t device = t_.streams.empty() ? std::uint16_t{0} : t_.streams.front().device;
    return builder_.add_stream(name, StreamRole::copy, device);
  }

  bool on_device(StorageId id) const { return base_.places[base_.storages[id].place] == "hbm"; }

  StorageId twin(StorageId model, const char* place, bool preexisting) {
    const Storage like = base_.storages[model];
    const StorageId id = builder_.add_storage(like.bytes, like.kind, place, "", preexisting);
    Storage& s = t_.storages[id];
    s.label = like.label;
    s.stream = like.stream;
    s.pinned = std::string_view(place) == "host";
    return id;
  }

  // What did not fit before the first op began in host memory, without a move. What moves first tells; of what
  // never moves and is never used, the allocator.
  void place_at_start() {
    std::vector<int> first(base_.storages.size(), -1);
    std::vector<bool> used(base_.storages.size(), false);
    for (const Use& use : base_.uses) used[use.storage] = true;
    for (const MoveRecord& move : moves_)
      if (move.storage < first.size() && first[move.storage] < 0) first[move.storage] = move.from;
    TierMemory memory(base_, machine_of_ranks(machine_, base_), tier_allocators(machine_, "pytorch"), nullptr);
    for (StorageId id = 0; id < base_.storages.size(); ++id) {
      const Storage& s = base_.storages[id];
      residences_.push_back({id, kNoStorage, {}, kNone, {}, s.preexisting, false, s.preexisting});
      if (!s.preexisting || !on_device(id) || s.bytes == 0) continue;
      const bool fits = memory.place(Time{}, id, hbm_);
      if (first[id] < 0 ? fits || used[id] : first[id] == hbm_) continue;
      t_.storages[id].place = t_.place("host");
      t_.storages[id].pinned = true;
      residences_[id].device = kNoStorage;
      residences_[id].far = id;
    }
  }

  void accept(const MoveRecord& move) {
    if (move.for_op >= base_.ops.size() || move.storage >= base_.storages.size() || !on_device(move.storage))
      refuse(move, "names no op or no storage of the device");
    const bool out = move.from == hbm_ && move.to == host_, in = move.from == host_ && move.to == hbm_;
    if (!out && !in)
      refuse(move, "goes from '" + machine_.tiers[move.from].name + "' to '" + machine_.tiers[move.to].name + "'");
    const Op& op = base_.ops[move.for_op];
    if (op.graph_member || op.placed) refuse(move, "is for an op without a call of the host");
    moves_of_[move.for_op].push_back(&move);
  }

  void plan(OpId id) {
    const Op& op = base_.ops[id];
    if (const auto found = moves_of_.find(id); found != moves_of_.end()) carry_out(id, found->second);
    const auto uses = base_.uses_of(op);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      uses_now_[op.first_use + i] = use(id, uses[i].storage);
      if (uses[i].access == Access::write) residences_[uses[i].storage].written = true;
    }
    if (op.kind == OpKind::alloc) residences_[op.target].alive = true;
    if (op.kind == OpKind::free) targets_now_[id] = freed(op.target);
  }

  // Which storage of the new trace the op works on; the op is a user of it from now on.
  StorageId use(OpId id, StorageId storage) {
    if (!on_device(storage)) return storage;
    const Op& op = base_.ops[id];
    Residence& r = residences_[storage];
    if (r.device == kNoStorage)
      throw UsageError("Trace '" + base_.name + "': op " + std::to_string(id) + " uses storage " +
                       std::to_string(storage) + ", which the pager has moved to the host and not back; executing " +
                       "such a pager is not implemented.");
    if (!runs_on_device(op.kind)) return r.device;
    if (r.landed != kNone && std::find(r.waited.begin(), r.waited.end(), op.stream) == r.waited.end()) {
      r.waited.push_back(op.stream);
      before_[call_of(id)].push_back({call(id, OpKind::event_wait, op.stream, r.landed), {}});
    }
    r.users[op.stream] = id;
    return r.device;
  }

  StorageId freed(StorageId storage) {
    if (!on_device(storage)) return storage;
    Residence& r = residences_[storage];
    r.alive = false;
    r.freed = true;
    if (r.device == kNoStorage) return r.far;
    leave_pool(storage, r);
    return r.device;
  }

  // Whoever gets this memory from the pool must come behind its users.
  void leave_pool(StorageId storage, const Residence& r) {
    std::map<std::uint16_t, OpId>& last = pools_[base_.storages[storage].stream];
    for (const auto& [user_stream, op] : r.users) {
      const auto [entry, is_new] = last.try_emplace(user_stream, op);
      if (!is_new) entry->second = std::max(entry->second, op);
    }
  }

  // Evictions together, so that the host waits once; then fetches.
  void carry_out(OpId id, const std::vector<const MoveRecord*>& moves) {
    std::vector<StorageId> leaving;
    bool fetches = false;
    const auto settle = [&] {
      if (!leaving.empty()) finish_evictions(id, leaving);
      leaving.clear();
    };
    for (const MoveRecord* move : moves) {
      Residence& r = residences_[move->storage];
      if (r.freed) {
        ++without_content_;  // was still on its way in when the host dropped it: the pager saw it a while longer
      } else if (move->from == hbm_) {
        if (r.device == kNoStorage || !r.alive) refuse(*move, "leaves the device, where the storage is not");
        evict(id, move->storage, r);
        leaving.push_back(move->storage);
      } else {
        settle();
        if (r.far == kNoStorage || !r.alive) refuse(*move, "comes from the host, where the storage is not");
        fetch(id, move->storage, r);
        fetches = true;
      }
    }
    settle();
    // On the host's clock only an allocation, or a storage on its way back, asks for room.
    if (!fetches && base_.ops[id].kind != OpKind::alloc) refuse(*moves.front(), "makes room for a first touch");
  }

  void evict(OpId id, StorageId storage, Residence& r) {
    for (const auto& [user_stream, op] : r.users) wait_behind(id, op, out_);
    if (r.users.empty() && r.landed != kNone) add(id, call(id, OpKind::event_wait, out_, r.landed));
    r.far = twin(storage, "host", false);
    add(id, lifetime(id, OpKind::alloc, r.far));
    if (r.written) add_copy(id, r.device, r.far, out_);
  }

  void finish_evictions(OpId id, const std::vector<StorageId>& storages) {
    const std::uint32_t gone = builder_.add_event();
    add(id, call(id, OpKind::event_record, out_, gone));
    Op wait = call(id, OpKind::synchronize, out_, gone);
    wait.wait_for = WaitFor::event;
    wait.return_delay = machine_.host.synchronize_return;
    add(id, wait);
    for (const StorageId storage : storages) {
      Residence& r = residences_[storage];
      add(id, lifetime(id, OpKind::free, r.device));
      r = {kNoStorage, r.far, {}, kNone, {}, true, false, r.written};
    }
  }

  void fetch(OpId id, StorageId storage, Residence& r) {
    for (const auto& [user_stream, op] : pools_[base_.storages[storage].stream]) wait_behind(id, op, in_);
    r.device = twin(storage, "hbm", false);
    add(id, lifetime(id, OpKind::alloc, r.device));
    if (r.written) add_copy(id, r.far, r.device, in_);
    r.landed = builder_.add_event();
    add(id, call(id, OpKind::event_record, in_, r.landed));
    add(id, lifetime(id, OpKind::free, r.far));
    r.far = kNoStorage;
    r.users.clear();
    r.waited.clear();
  }

  // Before op `id`: `waiter` goes on only behind op `user`. Waits that an earlier one includes are left out.
  void wait_behind(OpId id, OpId user, std::uint16_t waiter) {
    const std::uint16_t user_stream = base_.ops[user].stream;
    const auto [newest, is_new] = waited_for_.try_emplace({waiter, user_stream}, user);
    if (!is_new && newest->second >= user) return;
    newest->second = user;
    const auto [event, is_first] = event_behind_.try_emplace(user, kNone);
    if (is_first) {
      event->second = builder_.add_event();
      OpId last = user;
      while (last + 1 < base_.ops.size() && base_.ops[last + 1].graph_member) ++last;
      after_[last].push_back({call(user, OpKind::event_record, user_stream, event->second), {}});
    }
    add(id, call(id, OpKind::event_wait, waiter, event->second));
  }

  // The call that launches an op: a node of a graph has none of its own.
  OpId call_of(OpId id) const {
    while (id > 0 && base_.ops[id].graph_member) --id;
    return id;
  }

  // A call beside op `beside`, with the machine's cost of it.
  Op call(OpId beside, OpKind kind, std::uint16_t on, std::uint32_t target) const {
    const Op& neighbour = base_.ops[beside];
    Op op;
    op.kind = kind;
    op.phase = neighbour.phase == Phase::recompute ? Phase::backward : neighbour.phase;
    op.origin = Origin::modelled;
    op.added = true;
    op.thread = neighbour.thread < base_.threads.size() ? neighbour.thread : std::uint16_t{0};
    op.stream = on;
    op.target = target;
    op.host_cost = kind == OpKind::alloc || kind == OpKind::free ? machine_.host.allocator_call
                   : kind == OpKind::copy                        ? machine_.host.copy_call
                                                                 : machine_.host.event_call;
    return op;
  }
  Op lifetime(OpId beside, OpKind kind, StorageId storage) const {
    return call(beside, kind, t_.storages[storage].stream, storage);
  }
  void add(OpId before, const Op& op) { before_[before].push_back({op, {}}); }

  void add_copy(OpId beside, StorageId from, StorageId to, std::uint16_t on) {
    const Storage &a = t_.storages[from], &b = t_.storages[to];
    const bool out = t_.places[a.place] == "hbm";
    const Route* route = machine_.route(out ? hbm_ : host_, out ? host_ : hbm_, false);
    if (route == nullptr)
      throw UsageError("Machine '" + machine_.name +
                       "' has no route between hbm and host, where the pager moved data.");
    Op op = call(beside, OpKind::copy, on, kNone);
    op.name = t_.strings.intern(out ? "pager hbm to host" : "pager host to hbm");
    op.operator_class = OperatorClass::memory;
    op.from = a.place;
    op.to = b.place;
    op.bytes = a.bytes;
    const auto bytes = static_cast<double>(a.bytes);
    op.duration = route->latency + from_seconds(bytes / (route->bandwidth * route->efficiency.at(bytes)));
    before_[beside].push_back({op, {{from, 0, Access::read}, {to, 0, Access::write}}});
  }

  void append(const Op& op, std::vector<Use> uses) {
    for (Use& use : uses) use.version = use.access == Access::read ? TraceBuilder::kLatest : 0;
    builder_.append(op, uses);
  }

  void write() {
    std::vector<OpId> own, last;
    for (OpId id = 0; id < base_.ops.size(); ++id) {
      for (const AddedOp& added : before_[id]) append(added.op, added.uses);
      own.push_back(static_cast<OpId>(t_.ops.size()));
      Op op = base_.ops[id];
      op.target = targets_now_[id];
      if (op.kind == OpKind::hand_over) op.target = last[op.target];
      if (op.source != kNoOp) op.source = own[op.source];
      std::vector<Use> uses(base_.uses_of(op).begin(), base_.uses_of(op).end());
      for (std::size_t i = 0; i < uses.size(); ++i) uses[i].storage = uses_now_[op.first_use + i];
      append(op, std::move(uses));
      for (const AddedOp& added : after_[id]) append(added.op, added.uses);
      last.push_back(static_cast<OpId>(t_.ops.size() - 1));
    }
    t_.steps = base_.steps;
    for (Step& step : t_.steps)
      for (OpId* boundary : {&step.first, &step.last})
        *boundary = *boundary < own.size() ? own[*boundary] : static_cast<OpId>(t_.ops.size());
  }

  const Trace& base_;
  const Machine& machine_;
  const std::vector<MoveRecord>& moves_;
  TraceBuilder builder_;
  Trace& t_;
  int hbm_ = 0, host_ = 0;
  std::uint16_t out_ = 0, in_ = 0;
  std::map<OpId, std::vector<const MoveRecord*>> moves_of_;
  std::vector<Residence> residences_;  // by storage of the base
  std::vector<std::vector<AddedOp>> before_, after_;
  std::vector<StorageId> uses_now_;                               // by use of the base
  std::vector<std::uint32_t> targets_now_;                        // by op of the base
  std::map<std::uint16_t, std::map<std::uint16_t, OpId>> pools_;  // by pool, by stream: last user of what was freed
  std::size_t without_content_ = 0;
  std::map<OpId, std::uint32_t> event_behind_;                          // by op of the base
  std::map<std::pair<std::uint16_t, std::uint16_t>, OpId> waited_for_;  // by waiting stream and user's stream
};

}  // namespace

Trace with_recorded_moves(const Trace& trace, const Machine& machine, const std::vector<MoveRecord>& moves) {
  return MoveWriter(trace, machine, moves).run();
}

}  // namespace memwall
