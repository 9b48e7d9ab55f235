// Least recently used: when the device is full, what was not used for longest leaves first. The
// yardstick of every pager; knows nothing of the future.
#include <algorithm>

#include "sim/error.h"
#include "sim/registry.h"

namespace memwall {
namespace {

class LruPager : public Pager {
 public:
  explicit LruPager(const PolicyArguments& arguments)
      : clock_(arguments.choice("clock", {"host", "device"}) == "host" ? PagerClock::host : PagerClock::device),
        to_(arguments.choice("to", {"host", "nvme"})) {}

  PagerClock clock() const override { return clock_; }

  // Looks at the machine only, never at what is to come.
  void plan(const Machine& machine, const Trace&) override {
    targets_.clear();
    for (const char* name : {"host", "nvme"})
      if (machine.tier(name) >= 0 && (to_ == "host" || to_ == name)) targets_.push_back(machine.tier(name));
    if (machine.tier(to_) >= 0) return;
    std::string tiers;
    for (const Tier& tier : machine.tiers) tiers += (tiers.empty() ? "" : ", ") + tier.name;
    throw UsageError("Pager 'lru': to=" + to_ + " needs a tier that machine '" + machine.name +
                     "' does not have; it has " + tiers + ".");
  }

  std::vector<Move> make_room(int tier, Bytes bytes, const PagerView& view) override {
    std::vector<Move> moves;
    std::vector<Bytes> room;
    for (const int target : targets_) room.push_back(view.free_bytes(target));
    Bytes freed = 0;
    for (const ResidentStorage& resident : view.resident()) {
      if (freed >= bytes) break;
      if (resident.pinned) continue;
      Move move{MoveKind::drop, resident.storage, 0};
      if (!resident.clean && !find_target(tier, resident.bytes, room, move)) continue;
      moves.push_back(move);
      freed += resident.bytes;
    }
    return moves;
  }

 private:
  // The first target with room for it, which is taken.
  bool find_target(int tier, Bytes bytes, std::vector<Bytes>& room, Move& move) const {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      if (targets_[i] == tier || room[i] < bytes) continue;
      room[i] -= bytes;
      move.kind = MoveKind::evict;
      move.to = static_cast<std::uint8_t>(targets_[i]);
      return true;
    }
    return false;
  }

  PagerClock clock_;
  std::string to_;
  std::vector<int> targets_;  // tiers, in the order in which they fill
};

const RegisterPolicy registered{
    {"lru",
     "evicts what was least recently used when the GPU is full, to the host and then to NVMe",
     {{"clock", "host",
       "host: over the allocator, the host waits for room; device: own address space, faults at kernel start"},
      {"to", "host", "where storages go: host (and, when it is full, nvme where there is one) or nvme"}},
     {},
     [](const PolicyArguments& arguments) { return std::make_unique<LruPager>(arguments); }}};

}  // namespace
}  // namespace memwall
