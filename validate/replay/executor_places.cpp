#include "validate/replay/executor_places.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "validate/replay/happened_before.h"

namespace memwall {
namespace {

// Direct I/O reads and writes whole sectors.
constexpr Bytes kSector = 4096;

class PlacePlanner {
 public:
  explicit PlacePlanner(const Trace& trace) : t_(trace), order_(trace), used_(trace.storages.size()) {
    places_.block_of.assign(trace.storages.size(), FixedPlaces::kNone);
  }

  FixedPlaces run() {
    for (StorageId id = 0; id < t_.storages.size(); ++id) {
      if (!t_.storages[id].preexisting || !is_fixed(id)) continue;
      count(id, 1);
      if (t_.storages[id].bytes > 0) give_block(id, order_.nothing());
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
    if (const auto work = order_.enter(id)) use(op, *work);
    if (op.kind == OpKind::alloc && is_fixed(op.target)) count(op.target, 1);
    if (op.kind == OpKind::free && is_fixed(op.target)) release(op.target);
  }

  void use(const Op& op, const HappenedBefore::Work& work) {
    for (const Use& u : t_.uses_of(op)) {
      if (!is_fixed(u.storage) || t_.storages[u.storage].bytes == 0) continue;
      if (places_.block_of[u.storage] == FixedPlaces::kNone) give_block(u.storage, work.known);
      VectorClock& used = used_[u.storage];
      if (used.empty()) used = order_.nothing();
      used[work.lane] = std::max(used[work.lane], work.index);
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
    busy_[block] = used_[id].empty() ? order_.nothing() : used_[id];
    free_[{places_.blocks[block].place_class, places_.blocks[block].bytes}].push_back(block);
  }

  const Trace& t_;
  HappenedBefore order_;
  std::vector<VectorClock> used_;                      // by storage: its users
  std::vector<VectorClock> busy_;                      // by block: the former storage's users
  std::map<std::pair<PlaceClass, Bytes>, std::vector<std::uint32_t>> free_;
  Bytes host_alive_ = 0, file_alive_ = 0;
  FixedPlaces places_;
};

}  // namespace

FixedPlaces plan_fixed_places(const Trace& schedule) { return PlacePlanner(schedule).run(); }

}  // namespace memwall
