#include "policies/plan/plan_numbers.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "policies/trace/described.h"

namespace memwall {
namespace {

class PlanNumbers {
 public:
  PlanNumbers(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow) : plan_(plan), t_(trace), flow_(flow) {}

  std::vector<std::string> run() {
    check_numbers();
    return std::move(problems_);
  }

 private:
  std::string describe(StorageId id) const { return described_storage(t_, id); }
  void problem(std::string sentence) { problems_.push_back(std::move(sentence)); }

  template <typename Item>
  void check_points(StorageId storage, const std::vector<Item>& items, const char* what) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].at.op >= t_.ops.size())
        problem(fmt::format("{}: {} {} is at op {}; the trace has {} ops.", describe(storage), what, i, items[i].at.op,
                            t_.ops.size()));
      if (i > 0 && !(items[i - 1].at < items[i].at))
        problem(fmt::format("{}: {} {} does not stand behind the one before it.", describe(storage), what, i));
    }
  }

  bool names_tier(std::uint8_t tier) const { return tier < plan_.tiers.size(); }

  void check_numbers() {
    std::set<StorageId> seen;
    for (const StorageDecision& d : plan_.storages) {
      if (problems_.size() >= kMostProblems) return;
      if (d.storage >= t_.storages.size()) {
        problem(fmt::format("It names storage {}; the trace has {}.", d.storage, t_.storages.size()));
        continue;
      }
      if (!seen.insert(d.storage).second) problem(describe(d.storage) + " has two decisions.");
      if (t_.places[t_.storages[d.storage].place] != "hbm")
        problem(fmt::format("{} lies in {}, not in device memory.", describe(d.storage),
                            t_.places[t_.storages[d.storage].place]));
      check_points(d.storage, d.copies, "copy");
      check_points(d.storage, d.drops, "drop");
      check_points(d.storage, d.fetches, "fetch");
      bool known = (d.home == StorageDecision::kDevice || names_tier(d.home)) &&
                   (d.held == StorageDecision::kDevice || names_tier(d.held));
      if (d.taken_away)
        problem(fmt::format("{} is said to be copied away by an op; the trace has none that is not the plan's.",
                            describe(d.storage)));
      if (d.held != StorageDecision::kDevice && (!t_.storages[d.storage].preexisting || flow_.free(d.storage) != kNoOp))
        problem(fmt::format("{} does not live from step to step: no step before has left a copy of it.",
                            describe(d.storage)));
      if (d.held != StorageDecision::kDevice && d.home != StorageDecision::kDevice)
        problem(fmt::format("{} has a home tier and a copy beside it.", describe(d.storage)));
      for (const PlannedCopy& copy : d.copies) known = known && names_tier(copy.tier);
      for (const PlannedFetch& fetch : d.fetches)
        known = known && (fetch.tier == PlannedFetch::kNoTier || names_tier(fetch.tier));
      if (!known)
        problem(
            fmt::format("{} names a tier by a number that is not below {}.", describe(d.storage), plan_.tiers.size()));
    }
    for (const PlannedRerun& rerun : plan_.reruns) check_rerun_numbers(rerun);
    for (const PlannedKeep& keep : plan_.keeps) check_keep(keep, seen);
  }

  void check_rerun_numbers(const PlannedRerun& rerun) {
    if (problems_.size() >= kMostProblems) return;
    if (rerun.ops.empty()) return problem("A re-run has no ops.");
    if (rerun.at.op >= t_.ops.size() || rerun.ops.back() >= rerun.at.op)
      return problem(fmt::format("A re-run at op {} repeats op {}, which does not stand before it.", rerun.at.op,
                                 rerun.ops.back()));
    if (!ascend(rerun.ops) || !ascend(rerun.called)) return problem("The ops of a re-run do not ascend.");
    for (const auto* ops : {&rerun.ops, &rerun.called})
      for (const OpId id : *ops)
        if (id < t_.ops.size() && !can_be_repeated(t_.ops[id].kind))
          return problem(fmt::format("A re-run at op {} repeats op {}, which is no work of the device or the host: {}.",
                                     rerun.at.op, id, to_string(t_.ops[id].kind)));
    for (const OpId id : rerun.called)
      if (id >= rerun.at.op || std::binary_search(rerun.ops.begin(), rerun.ops.end(), id))
        problem(fmt::format("A re-run at op {} calls op {}, which does not stand before it or is run again.",
                            rerun.at.op, id));
  }

  // Memory that a re-run needs is allocated and freed as it needs it; order follows from what it reads.
  static bool can_be_repeated(OpKind kind) { return runs_on_device(kind) || kind == OpKind::host_work; }

  static bool ascend(const std::vector<OpId>& ops) {
    return std::adjacent_find(ops.begin(), ops.end(), std::greater_equal<>()) == ops.end();
  }

  void check_keep(const PlannedKeep& keep, const std::set<StorageId>& decided) {
    if (problems_.size() >= kMostProblems) return;
    if (keep.storage >= t_.storages.size() || keep.until.op >= t_.ops.size())
      return problem(fmt::format("It keeps storage {} until op {}; the trace has {} storages and {} ops.", keep.storage,
                                 keep.until.op, t_.storages.size(), t_.ops.size()));
    if (decided.contains(keep.storage))
      problem(describe(keep.storage) + " is kept longer, and has a decision that drops it.");
  }

  const MemoryPlan& plan_;
  const Trace& t_;
  const Dataflow& flow_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> problems_of_numbers(const MemoryPlan& plan, const Trace& trace, const Dataflow& flow) {
  return PlanNumbers(plan, trace, flow).run();
}

}  // namespace memwall
