// Swaps to the host what is used furthest in the future, where memory lacks.
//
// Huang, Jin, Li 2020, "SwapAdvisor: Pushing Deep Learning Beyond the GPU Memory Limit via Smart Swapping" (ASPLOS
// 2020), its swap planner alone:
//   out   where an op lacks memory, of what it does not use the storage whose next use is furthest leaves (Belady
//         1966, "A study of replacement algorithms for a virtual-storage computer"). Its copy runs behind its last use;
//         the memory is given up where it is lacking, and the op waits for the copy.
//   in    as early as memory allows, in the order of use.
//   loop  what is away at the end of the step is away at its start: the steps are planned once from a full device, and
//         once more from what that leaves.
// As described in descriptions of the algorithm, details from memory of the paper; not checked against its code. Left
// out: its genetic search over the order of operators and the assignment to memory pools, so that the order is the
// program's and the pools are the allocator's. Deviations: what the next use overwrites is neither copied out nor back
// unless it crosses the boundary of the step; storages below min_bytes stay; where the peak stays above the budget
// whatever leaves, the plan is made once more with that peak as its budget, so that nothing leaves in vain.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "policies/planners/absence.h"
#include "policies/planners/host_transfer.h"
#include "policies/planners/planner.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

class SwapAdvisor {
 public:
  SwapAdvisor(const StepProfile& profile, Bytes budget, Bytes min_bytes)
      : p_(profile), budget_(budget), ops_(static_cast<OpId>(profile.trace().ops.size())), memory_(profile) {
    for (const Gap& gap : profile.gaps()) {
      if (!may_leave(profile, gap.storage) || profile.trace().storages[gap.storage].bytes < min_bytes) continue;
      by_begin_.push_back(&gap);
    }
    std::stable_sort(by_begin_.begin(), by_begin_.end(),
                     [](const Gap* a, const Gap* b) { return a->after < b->after; });
  }

  MemoryPlan planned() {
    plan_steps();
    if (memory_.peak() > budget_) {
      budget_ = memory_.peak();
      plan_steps();
    }
    MemoryPlan plan;
    plan.tiers.push_back(to_host());
    plan.storages = decisions_of(fetched_early());
    return plan;
  }

 private:
  // From a full device, and from what that leaves.
  void plan_steps() {
    walk({});
    std::map<const Gap*, Absence> away_at_end;
    for (const auto& [gap, absence] : absences_)
      if (absence.crosses()) away_at_end.emplace(gap, absence);
    if (!away_at_end.empty()) walk(away_at_end);
  }

  // A gap whose storage is there, by its next use: a use in the next step comes behind all of this one.
  using Resting = std::pair<OpId, const Gap*>;
  struct Nearest {
    bool operator()(const Resting& a, const Resting& b) const {
      return std::tuple(a.first, a.second->storage) < std::tuple(b.first, b.second->storage);
    }
  };

  // Before the allocs that the op of the next use makes.
  OpId fetch_point(const Gap& gap) const {
    return std::max(insertion_point(p_.trace(), gap.before), gap.wraps ? OpId{0} : gap.after + 1);
  }

  // Op by op; `away`: what the step before has left on the host.
  void walk(const std::map<const Gap*, Absence>& away) {
    for (const auto& [gap, absence] : absences_) memory_.take_back(absence);
    absences_.clear();
    resting_.clear();
    for (const auto& [gap, absence] : away) put(absence, gap);
    for (const Gap* gap : by_begin_)
      if (gap->wraps && !absences_.contains(gap)) resting_.insert({fetch_point(*gap), gap});
    auto next = by_begin_.begin();
    for (OpId op = first_place(p_.trace()); op < ops_; ++op) {
      for (; next != by_begin_.end() && (*next)->after < op; ++next)
        if (!is_away_at_end(*next)) resting_.insert({fetch_point(**next) + ((*next)->wraps ? ops_ : 0), *next});
      while (memory_.after(op) > budget_ && give_up_furthest(op)) {
      }
    }
  }

  bool is_away_at_end(const Gap* gap) const {
    const auto found = absences_.find(gap);
    return found != absences_.end() && found->second.crosses();
  }

  // False: nothing that is there could be away behind this op.
  bool give_up_furthest(OpId op) {
    if (resting_.empty()) return false;
    const auto furthest = std::prev(resting_.end());
    const auto [next, gap] = *furthest;
    if (next < op + 2) return false;
    resting_.erase(furthest);
    const bool in_next_step = next >= ops_;
    put({*gap, op, fetch_point(*gap), gap->wraps && !in_next_step, gap->wraps}, gap);
    return true;
  }

  // In place of what was said of the gap before.
  void put(const Absence& absence, const Gap* gap) {
    if (const auto before = absences_.find(gap); before != absences_.end()) memory_.take_back(before->second);
    memory_.take_away(absence);
    absences_.insert_or_assign(gap, absence);
  }

  std::vector<Absence> fetched_early() {
    std::vector<Absence> all;
    for (const auto& [gap, absence] : absences_) all.push_back(absence);
    std::sort(all.begin(), all.end(), [](const Absence& a, const Absence& b) {
      return std::tuple(a.fetched, a.gap.before, a.gap.storage) < std::tuple(b.fetched, b.gap.before, b.gap.storage);
    });
    for (Absence& absence : all) memory_.fetch_early(absence, budget_);
    return all;
  }

  const StepProfile& p_;
  Bytes budget_;
  const OpId ops_;
  AbsentMemory memory_;
  std::vector<const Gap*> by_begin_;
  std::set<Resting, Nearest> resting_;
  std::map<const Gap*, Absence> absences_;
};

const RegisterPlanner registered_swapadvisor{
    {.name = "swapadvisor",
     .sentence = "swaps to the host what is used furthest in the future where memory lacks (Huang et al. 2020)",
     .parameters = {bytes("min_bytes", "1MiB", 0, "smaller storages stay.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const Bytes min_bytes = arguments.bytes("min_bytes");
       return [min_bytes](const StepProfile& profile, const Budget& budget, const Machine& machine, const Pricer&) {
         require_host("swapadvisor", machine);
         return SwapAdvisor(profile, budget.device, min_bytes).planned();
       };
     }}};

}  // namespace
}  // namespace memwall
