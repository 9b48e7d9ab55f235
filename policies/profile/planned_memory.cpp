#include "policies/profile/planned_memory.h"

#include <algorithm>
#include <vector>

namespace memwall {
namespace {

// The first op behind which what is dropped at the point is gone: dropped right before op 7 it still is there when op 6
// has allocated.
OpId first_without(const PlanPoint& point) { return point.after ? point.op + 1 : point.op; }
// The first op behind which what is brought back at the point is there again.
OpId first_with(const PlanPoint& point) { return point.after || point.op == 0 ? point.op : point.op - 1; }

class PlannedLifetimes {
 public:
  PlannedLifetimes(const StepProfile& profile, const MemoryPlan& plan)
      : p_(profile),
        plan_(plan),
        memory_(profile),
        back_(profile.trace().storages.size()),
        decided_(profile.trace().storages.size(), false) {
    for (const StorageDecision& d : plan_.storages) decided_[d.storage] = true;
  }

  Bytes run() {
    std::vector<OpId> kept(p_.trace().storages.size(), 0);
    for (const PlannedRerun& rerun : plan_.reruns) read_by(rerun, kept);
    for (const PlannedKeep& keep : plan_.keeps)
      kept[keep.storage] = std::max(kept[keep.storage], first_without(keep.until));
    for (const StorageDecision& decision : plan_.storages) absent(decision);
    for (StorageId s = 0; s < kept.size(); ++s)
      if (const OpId freed = p_.flow().free(s); kept[s] > freed && !decided_[s]) memory_.restore(s, freed, kept[s] - 1);
    return memory_.peak();
  }

 private:
  // What a re-run makes is back there; what it starts from lives until there.
  void read_by(const PlannedRerun& rerun, std::vector<OpId>& kept) {
    const Trace& t = p_.trace();
    for (const OpId id : rerun.ops)
      for (const Use& use : t.uses_of(t.ops[id])) {
        if (use.access == Access::write) {
          if (decided_[use.storage]) back_[use.storage].push_back(rerun.at);
          continue;
        }
        const OpId writer = p_.flow().writer(use.storage, use.version);
        if (writer != kNoOp && std::binary_search(rerun.ops.begin(), rerun.ops.end(), writer)) continue;
        kept[use.storage] = std::max(kept[use.storage], rerun.at.op);
      }
  }

  void absent(const StorageDecision& d) {
    std::vector<PlanPoint>& back = back_[d.storage];
    for (const PlannedFetch& fetch : d.fetches) back.push_back(fetch.at);
    std::sort(back.begin(), back.end());
    if (d.home != StorageDecision::kDevice) {
      memory_.remove_at_start(d.storage);
      away(d.storage, {}, back);
    }
    for (const PlannedDrop& drop : d.drops) away(d.storage, drop.at, back);
  }

  // From `begin` (kNoOp: the start) until it is back, or freed, or to the end.
  void away(StorageId storage, const PlanPoint& begin, const std::vector<PlanPoint>& back) {
    const auto next = begin.op == kNoOp ? back.begin() : std::upper_bound(back.begin(), back.end(), begin);
    const OpId freed = p_.flow().free(storage);
    OpId end = freed == kNoOp ? static_cast<OpId>(p_.trace().ops.size()) : freed;
    if (next != back.end()) end = std::min(end, first_with(*next));
    const OpId first = begin.op == kNoOp ? 0 : first_without(begin);
    if (end > first) memory_.remove(storage, first, end - 1);
  }

  const StepProfile& p_;
  const MemoryPlan& plan_;
  PlannedMemory memory_;
  std::vector<std::vector<PlanPoint>> back_;  // by storage: where it is brought back
  std::vector<bool> decided_;                 // by storage: has it a decision?
};

}  // namespace

Bytes planned_peak(const StepProfile& profile, const MemoryPlan& plan) { return PlannedLifetimes(profile, plan).run(); }

}  // namespace memwall
