#include "validate/replay/executor_places.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace memwall {
namespace {

// Direct I/O reads and writes whole sectors.
constexpr Bytes kSector = 4096;

// Per lane (streams, then host threads): how many of its ops are known to have ended.
using VectorClock = std::vector<std::uint32_t>;

void merge(VectorClock& into, const VectorClock& from) {
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

bool covers(const VectorClock& clock, const VectorClock& needed) {
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (clock[i] < needed[i]) return false;
  return true;
}

class PlacePlanner {
 public:
  explicit PlacePlanner(const Trace& trace)
      : t_(trace),
        none_(trace.streams.size() + trace.threads.size(), 0),
        hosts_(trace.threads.size(), none_),
        streams_(trace.streams.size(), none_),
        events_(trace.event_count),
        used_(trace.storages.size()) {
    places_.block_of.assign(trace.storages.size(), FixedPlaces::kNone);
    for (const Op& op : trace.ops)
      if (op.kind == OpKind::hand_over) handed_[op.target];
  }

  FixedPlaces run() {
    for (StorageId id = 0; id < t_.storages.size(); ++id) {
      if (!t_.storages[id].preexisting || !is_fixed(id)) continue;
      count(id, 1);
      if (t_.storages[id].bytes > 0) give_block(id, none_);
    }
    for (OpId id = 0; id < t_.ops.size(); ++id) visit(id);
    places_.host.reserved = std::max(places_.host.reserved, places_.host.allocated);
    places_.file.reserved = std::max(places_.file.reserved, places_.file.allocated);
    return std::move(places_);
  }

 private:
  bool is_fixed(StorageId id) const { return t_.places[t_.storages[id].place] != "hbm"; }

  PlaceClass class_of(const Storage& s) const {
    if (t_.places[s.place] == "nvme") return PlaceClass::file;
    return s.pinned ? PlaceClass::pinned : PlaceClass::pageable;
  }

  static Bytes counted(PlaceClass place_class, Bytes bytes) {
    return place_class == PlaceClass::pinned && bytes > 0
               ? static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(bytes)))
               : bytes;
  }

  void count(StorageId id, int sign) {
    const PlaceClass place_class = class_of(t_.storages[id]);
    const bool file = place_class == PlaceClass::file;
    Bytes& alive = file ? file_alive_ : host_alive_;
    PlaceUse& use = file ? places_.file : places_.host;
    alive += sign * counted(place_class, t_.storages[id].bytes);
    use.allocated = std::max(use.allocated, alive);
  }

  void visit(OpId id) {
    const Op& op = t_.ops[id];
    VectorClock& host = hosts_[op.thread];
    const std::size_t lane = t_.streams.size() + op.thread;
    ++host[lane];
    if (op.kind == OpKind::synchronize || op.kind == OpKind::host_work) await(op, host);
    if (runs_on_device(op.kind)) {
      launch(op, host);
    } else if (op.kind == OpKind::host_work) {
      use(op, host, lane, host[lane]);
    } else if (op.kind == OpKind::event_record) {
      events_[op.target] = streams_[op.stream];
      merge(events_[op.target], host);
    } else if (op.kind == OpKind::event_wait) {
      merge(streams_[op.stream], events_[op.target]);
    } else if (op.kind == OpKind::hand_over) {
      merge(host, handed_[op.target]);
    } else if (op.kind == OpKind::alloc && is_fixed(op.target)) {
      count(op.target, 1);
    } else if (op.kind == OpKind::free && is_fixed(op.target)) {
      release(op.target);
    }
    if (const auto found = handed_.find(id); found != handed_.end()) found->second = host;
  }

  void await(const Op& op, VectorClock& host) const {
    if (op.wait_for == WaitFor::event) merge(host, events_[op.target]);
    if (op.wait_for == WaitFor::stream) merge(host, streams_[op.stream]);
    if (op.wait_for == WaitFor::device)
      for (std::size_t s = 0; s < streams_.size(); ++s)
        if (t_.streams[s].role != StreamRole::storage) merge(host, streams_[s]);
  }

  void launch(const Op& op, VectorClock& host) {
    VectorClock& stream = streams_[op.stream];
    merge(stream, host);
    use(op, stream, op.stream, stream[op.stream] + 1);
    ++stream[op.stream];
    if (op.wait_for != WaitFor::nothing) merge(host, stream);
  }

  // An op that begins when `start` is known to have ended, and is itself number `index` of its lane.
  void use(const Op& op, const VectorClock& start, std::size_t lane, std::uint32_t index) {
    for (const Use& u : t_.uses_of(op)) {
      if (!is_fixed(u.storage) || t_.storages[u.storage].bytes == 0) continue;
      if (places_.block_of[u.storage] == FixedPlaces::kNone) give_block(u.storage, start);
      VectorClock& used = used_[u.storage];
      if (used.empty()) used = none_;
      used[lane] = std::max(used[lane], index);
    }
  }

  void give_block(StorageId id, const VectorClock& start) {
    const Storage& s = t_.storages[id];
    const PlaceClass place_class = class_of(s);
    const Bytes sectors = (s.bytes + kSector - 1) / kSector * kSector;
    const Bytes bytes = std::max(sectors, counted(place_class, s.bytes));
    std::vector<std::uint32_t>& unused = free_[{place_class, bytes}];
    for (auto block = unused.begin(); block != unused.end(); ++block) {
      if (!covers(start, busy_[*block])) continue;
      places_.block_of[id] = *block;
      unused.erase(block);
      return;
    }
    places_.block_of[id] = static_cast<std::uint32_t>(places_.blocks.size());
    places_.blocks.push_back({place_class, bytes});
    busy_.emplace_back();
    (place_class == PlaceClass::file ? places_.file : places_.host).reserved += bytes;
  }

  void release(StorageId id) {
    count(id, -1);
    const std::uint32_t block = places_.block_of[id];
    if (block == FixedPlaces::kNone) return;
    busy_[block] = used_[id].empty() ? none_ : used_[id];
    free_[{places_.blocks[block].place_class, places_.blocks[block].bytes}].push_back(block);
  }

  const Trace& t_;
  const VectorClock none_;
  std::vector<VectorClock> hosts_, streams_, events_;  // an event that was never recorded: empty
  std::vector<VectorClock> used_;                      // by storage: its users
  std::vector<VectorClock> busy_;                      // by block: the former storage's users
  std::map<OpId, VectorClock> handed_;                 // by op that a hand-over names: its thread after it
  std::map<std::pair<PlaceClass, Bytes>, std::vector<std::uint32_t>> free_;
  Bytes host_alive_ = 0, file_alive_ = 0;
  FixedPlaces places_;
};

}  // namespace

FixedPlaces plan_fixed_places(const Trace& schedule) { return PlacePlanner(schedule).run(); }

}  // namespace memwall
