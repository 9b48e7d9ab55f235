// Least recently used: when the device is full, what was not used for longest leaves first. The
// yardstick of every pager; knows nothing of the future.
#include <algorithm>

#include "sim/error.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

class LruPager : public Pager {
 public:
  explicit LruPager(const PolicyArguments& arguments)
      : clock_(arguments.choice("clock") == "host" ? PagerClock::host : PagerClock::device),
        to_(arguments.list("to")),
        to_text_(arguments.text("to")) {}

  PagerClock clock() const override { return clock_; }

  // Looks at the machine only, never at what is to come.
  void plan(const Machine& machine, const Trace&) override {
    targets_.clear();
    for (const std::string& name : to_) add_target(machine, name);
    if (targets_.size() == 1) add_slower(machine);
  }

  std::vector<int> spill_order() const override { return targets_; }

  std::vector<Move> make_room(int tier, Bytes bytes, const PagerView& view) override {
    std::vector<Move> moves;
    std::vector<Bytes> room;
    for (const int target : targets_) room.push_back(view.free_bytes(target));
    Bytes freed = 0;
    if (bytes <= 0) return moves;
    view.each_movable([&](const ResidentStorage& resident) {
      Move move{MoveKind::drop, resident.storage, 0};
      if (!resident.clean && !find_target(tier, resident.bytes, room, move)) return true;
      moves.push_back(move);
      freed += resident.bytes;
      return freed < bytes;
    });
    return moves;
  }

 private:
  void add_target(const Machine& machine, const std::string& name) {
    const int tier = machine.tier(name);
    const std::string head = "Pager 'lru': to=" + to_text_;
    if (tier < 0) {
      std::vector<std::string> known;
      for (const Tier& t : machine.tiers) known.push_back(t.name);
      throw UsageError(head + " needs a tier" + (to_.size() == 1 ? "" : " '" + name + "'") + " that machine '" +
                       machine.name + "' does not have; it has " + listed(known) + ".");
    }
    if (machine.tiers[static_cast<std::size_t>(tier)].tier_class == TierClass::device)
      throw UsageError(head + ": '" + name + "' is memory of a GPU; expected tiers of host memory or storage.");
    targets_.push_back(tier);
  }

  // Behind the one tier that is named stand those that follow it: host memory before storage, as the machine has them.
  void add_slower(const Machine& machine) {
    std::vector<int> order;
    for (const TierClass tier_class : {TierClass::host, TierClass::storage})
      for (std::size_t t = 0; t < machine.tiers.size(); ++t)
        if (machine.tiers[t].tier_class == tier_class) order.push_back(static_cast<int>(t));
    targets_.assign(std::find(order.begin(), order.end(), targets_.front()), order.end());
  }

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
  std::vector<std::string> to_;
  std::string to_text_;
  std::vector<int> targets_;  // tiers, in the order in which they fill
};

const RegisterPolicy registered_lru{
    {.name = "lru",
     .sentence = "evicts what was least recently used when the GPU is full, to the host, then to NVMe or whatever "
                 "tiers there are",
     .kind = PolicyKind::pager,
     .needs = {.allocations = true, .dataflow = true},
     .parameters =
         {choice(
              "clock", "host", {"host", "device"},
              "host: over the allocator, the host waits for room; device: own address space, faults at kernel start"),
          tiers("to", "host",
                "a tier, and those behind it as each fills (host, then nvme); or several in the order in which they "
                "fill: cxl+host")},
     .make_pager = [](const PolicyArguments& arguments) { return std::make_unique<LruPager>(arguments); }}};

}  // namespace
}  // namespace memwall
