#include "policies/planners/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "policies/plan/plan_owner.h"
#include "policies/plan/plan_writer.h"
#include "policies/planners/held_at_peak.h"
#include "policies/planners/repair.h"
#include "policies/planners/tried_plans.h"
#include "policies/trace/pipelined_passes.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/machine/device_memory.h"
#include "sim/policy/given_budget.h"
#include "sim/side_by_side.h"

namespace memwall {
namespace {

// Of a planner whose sketch has shown which budget its plans keep to.
constexpr int kTriesOfPlanner = 8;
constexpr int kInFullOfPlanner = 6, kInFullAtOnce = 2;
// Other planners' plans are looked at more closely where their step takes at most so many times the best plan's.
constexpr double kPromising = 1.03;
// For other budgets a planner is asked where its plan would be better by so much without the allocator's calls.
constexpr double kWorthAsking = 1.01;
// A plan was made for much less than the budget where it was for less by this part of it.
constexpr Bytes kMuchLess = 50;
// ProposedPlans::work of all others together, where the best plan so far makes the step at most so many times as long
// as what no plan is faster than: little is to be gained then. With six times as much, no plan was faster of seven
// steps at 14 budgets of 60 to 90 % of what they need; up to 1.06 times, three of these plans were.
constexpr std::uint64_t kMostWorkNear = 500'000;
constexpr double kNear = 1.04;

class PlannedStepRewriter : public Rewriter {
 public:
  PlannedStepRewriter(PlannerInfo info, const PolicyArguments& arguments, GivenBudget budget)
      : info_(std::move(info)), arguments_(arguments), planner_(info_.make(arguments)), budget_(budget) {
    if (info_.sketch) sketch_ = info_.sketch(arguments);
    if (info_.others) others_ = info_.others(arguments);
    if (info_.closing) closing_ = info_.closing(arguments);
    if (info_.takes_any) takes_any_ = info_.takes_any(arguments);
    if (info_.others_if_slower_by) others_if_slower_by_ = info_.others_if_slower_by(arguments);
    if (info_.most_work_of_others) most_work_ = info_.most_work_of_others(arguments);
    if (info_.restriction) own_restriction_ = info_.restriction(arguments);
    if (info_.heeds_budget_with) info_.heeds_budget = info_.heeds_budget_with(arguments);
  }

  // Behind what `checkpoint` and `offload` do: the budget is for what they leave.
  int precedence() const override { return 5; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    if (info_.plans_each_pass && !info_.heeds_budget && !budget_.is_given() && has_pipelined_passes(trace))
      return with_each_pass_rewritten(trace, [&](const Trace& passes) {
        const StepProfile profile(passes, machine);
        return planned(plan_made(profile, pricer), profile, pricer);
      });
    const StepProfile profile(trace, machine);
    return planned(*made([&] { return plan_made(profile, pricer); }), profile, pricer);
  }

  std::optional<MemoryPlan> memory_plan(const Trace& trace, const Machine& machine,
                                        const Pricer& pricer) const override {
    return made([&] { return plan_made(StepProfile(trace, machine), pricer); })->plan;
  }

 private:
  std::shared_ptr<const MadePlan> made(const std::function<MadePlan()>& make) const {
    return info_.is_user_code ? std::make_shared<const MadePlan>(make()) : remembered(make);
  }

  static Trace planned(const MadePlan& made, const StepProfile& profile, const Pricer& pricer) {
    Trace result = written(made.plan, profile, pricer);
    result.notes.insert(result.notes.end(), made.notes.begin(), made.notes.end());
    if (made.budget) result.budgets.push_back(*made.budget);
    return result;
  }

  static Trace written(const MemoryPlan& plan, const StepProfile& profile, const Pricer& pricer) {
    TraceEdit edit(profile.trace(), profile.machine().host);
    write_plan(plan, profile.flow(), pricer, edit);
    return std::move(edit).apply();
  }

  MadePlan plan_made(const StepProfile& profile, const Pricer& pricer) const {
    const RepairedPlan repaired = settle(profile, pricer);
    MadePlan made{repaired.plan};
    made.notes.push_back(note(profile, repaired, pricer));
    if (!repaired.restricted.empty()) made.notes.push_back(info_.name + ": " + repaired.restricted);
    if (budget_.is_given()) made.budget = {info_.name, budget(profile).device, repaired.over};
    if (info_.remark && (!info_.heeds_budget || repaired.over > 0))
      if (const std::string remark = info_.remark(profile, repaired.plan); !remark.empty())
        made.notes.push_back(info_.name + ": " + remark);
    if (info_.proof && !(repaired.is_untouched && repaired.over == 0))
      if (const std::string proof = info_.proof(arguments_, profile, budget(profile), repaired.plan); !proof.empty())
        made.notes.push_back(info_.name + ": " + proof);
    return made;
  }

  Budget budget(const StepProfile& profile) const {
    if (budget_.bytes > 0) return {budget_.bytes, allocator()};  // whatever the device has
    return {budget_.of(device_bytes_for(profile.trace(), profile.machine())), allocator()};
  }

  RepairedPlan settle(const StepProfile& profile, const Pricer& pricer) const {
    const Budget kept = budget(profile);
    if (!info_.heeds_budget) return required(plan_as_made(planner_, profile, kept, pricer, held_to()));
    const Planner& first = sketch_ ? sketch_ : planner_;
    const RepairedPlan untouched = untouched_plan(profile, kept, pricer);
    const TriedPlans known;
    RepairedPlan best =
        repaired_plan(first, profile, kept, pricer, held_to(),
                      {.makes_room = info_.makes_room, .any = takes_any_, .known = &known, .untouched = &untouched});
    if (takes_any_ && best.over == 0) return required(std::move(best));
    RepairEffort for_less{.makes_room = info_.makes_room, .any = takes_any_, .known = &known};
    if (info_.sketch && pieces_decide(best, kept)) {
      for_less.worth = best.step_time;
      if (auto other = plan_for_less(first, profile, kept, pricer, held_to(), for_less))
        if (takes_other(best, *other, kept)) best = std::move(*other);
    }
    int tries = kTriesOfPlanner;
    bool is_for_less = false;  // then others may have better plans, as where none is known
    if (best.over > 0 && best.over_beside == 0 && info_.sketch)  // whose plans are quickly made
      if (auto other = plan_for_less(first, profile, kept, pricer, held_to(), for_less)) {
        best = std::move(*other);
        if (takes_any_) return required(std::move(best));
        is_for_less = true;
        tries = 0;  // what leaves a sketch's largest block a place says nothing of the planner's
      }
    // Whose plans are quickly made, is asked where pieces decide, however slow the step may be.
    const bool asks_all = is_for_less || asks_other(best, profile.step_time(), others_if_slower_by_);
    const bool asks_quick = !asks_all && pieces_decide(best, kept);
    if (!asks_all && !asks_quick) return required(closed(std::move(best), profile, pricer, known));
    const LeastSteps least = info_.least ? info_.least(arguments_, profile, kept) : LeastSteps{};
    const Duration any = std::max(profile.step_time(), least.any);
    std::vector<OtherPlanner> all = others_;
    if (sketch_ && asks_other(best, any, others_if_slower_by_))
      all.insert(all.begin(), {.planner = planner_,
                               .tries = tries,
                               .is_first = true,
                               .in_full = kInFullOfPlanner,
                               .in_full_at_once = kInFullAtOnce,
                               .makes_room = info_.makes_room});
    if (asks_all && pieces_decide(best, kept) && !is_near(best, any)) put_quick_first(all);
    Effort effort{any, untouched, &known, most_work_};
    effort.own = best;
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      for (end = begin + 1; end < all.size() && all[end].beside;) ++end;
      if (begin > 0 && !asks_quick && !is_for_less && !asks_other(best, any, others_if_slower_by_)) break;
      if (takes_any_ && best.over == 0) break;
      std::vector<const OtherPlanner*> asked;
      for (std::size_t i = begin; i < end; ++i) {
        const OtherPlanner& one = all[i];
        if (asks_quick && !one.is_quick && !one.is_first) continue;
        if (best.over == 0 && least_of(one.kind, least) >= best.step_time) continue;
        asked.push_back(&one);
      }
      take_better(asked, profile, pricer, best, effort);
    }
    return required(closed(std::move(best), profile, pricer, known));
  }

  // With what the last planner finds. Nothing is asked for behind it, so that no plan that was found is lost for it.
  RepairedPlan closed(RepairedPlan best, const StepProfile& profile, const Pricer& pricer,
                      const TriedPlans& known) const {
    if (!closing_ || (best.over == 0 && (best.is_untouched || takes_any_))) return best;
    const Budget kept = budget(profile);
    std::vector<Bytes> asked{kept.device};
    if (best.asked > 0 && best.asked < kept.device) asked.push_back(best.asked);
    const Duration worth = best.over == 0 ? best.step_time : kNever;
    if (auto faster = faster_plan(closing_, asked, profile, kept, pricer, held_to(), worth, info_.makes_room, &known))
      best = std::move(*faster);
    return best;
  }

  static bool is_near(const RepairedPlan& best, Duration least) {
    return to_seconds(best.step_time) <= kNear * to_seconds(least);
  }

  // For which budget the sketch's plan has a place says nothing of theirs.
  static void put_quick_first(std::vector<OtherPlanner>& all) {
    std::ranges::stable_partition(all, &OtherPlanner::goes_first);
    for (OtherPlanner& one : all)
      if (one.goes_first) one.tries = 0;
  }

  static Duration least_of(PlanKind kind, const LeastSteps& least) {
    return kind == PlanKind::moves ? least.by_moves : kind == PlanKind::reruns ? least.by_reruns : least.any;
  }

  // It keeps to the budget, but made for less or held up: which budget is asked for is luck then.
  static bool pieces_decide(const RepairedPlan& best, const Budget& kept) {
    return best.over == 0 && best.asked > 0 &&
           (best.asked < kept.device - kept.device / kMuchLess || best.is_held_up());
  }

  // What was done for all others so far.
  struct Effort {
    Duration least;  // that no plan is faster than
    const RepairedPlan& untouched;
    const TriedPlans* known;
    std::uint64_t most;
    std::uint64_t done = 0;
    RepairedPlan own{};  // the best plan of those that search: for what they were asked, the next is asked first

    std::uint64_t left(const RepairedPlan& best) const {
      const std::uint64_t all = best.over == 0 && is_near(best, least) ? std::min(most, kMostWorkNear) : most;
      return all == kAnyWork ? all : all - std::min(all, done);
    }
  };

  // Each knows what is best before; what they find is compared in their order.
  void take_better(const std::vector<const OtherPlanner*>& asked, const StepProfile& profile, const Pricer& pricer,
                   RepairedPlan& best, Effort& effort) const {
    std::vector<std::optional<RepairedPlan>> found(asked.size());
    std::vector<std::uint64_t> work(asked.size(), 0);
    std::vector<std::function<void()>> calls;
    for (std::size_t i = 0; i < asked.size(); ++i)
      calls.emplace_back([&, i] {
        Effort own = effort;
        found[i] = plan_of(*asked[i], profile, pricer, best, own);
        work[i] = own.done - effort.done;
      });
    call_side_by_side(calls);
    const Budget kept = budget(profile);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      effort.done += work[i];
      if (found[i] && !asked[i]->goes_first && takes_other(effort.own, *found[i], kept)) effort.own = *found[i];
      if (found[i] && takes_other(best, *found[i], kept)) best = *std::move(found[i]);
    }
  }

  // A planner that has nothing for steps of this kind says so by a UsageError: nothing.
  std::optional<RepairedPlan> plan_of(const OtherPlanner& one, const StepProfile& profile, const Pricer& pricer,
                                      const RepairedPlan& best, Effort& effort) const {
    const Budget kept = budget(profile);
    try {
      // Where the allocator's calls to the device hold the best up, another budget may be asked for with more luck.
      const RepairedPlan& shown = one.goes_first ? best : effort.own;
      const bool is_quick = one.is_quick && pieces_decide(shown, kept);
      const bool is_known = one.tries > 0 && shown.over == 0 && shown.asked > 0 && !shown.is_held_up() && !is_quick;
      const Duration worth = best.over == 0 ? best.step_time : kNever;
      const auto asked = [&](Bytes first, int tries) {
        RepairedPlan made = repaired_plan(one.planner, profile, kept, pricer, held_to(),
                                          {.first_asked = first,
                                           .most_tries = tries,
                                           .worth = worth,
                                           .most_work = effort.left(best),
                                           .roughly_first = one.in_full > 0,
                                           .most_in_full = one.in_full,
                                           .in_full_at_once = one.in_full_at_once,
                                           .makes_room = one.makes_room,
                                           .any = takes_any_,
                                           .known = effort.known,
                                           .untouched = &effort.untouched});
        effort.done += made.work;
        return made;
      };
      RepairedPlan other = is_known ? asked(shown.asked, one.tries) : asked(0, kMostTries);
      if (is_known && (one.name.empty() ? is_held_up(other, best) : is_promising(other, best)))
        if (RepairedPlan again = asked(0, kMostTries); takes_other(other, again, kept)) other = std::move(again);
      if (one.is_quick && other.over_beside == 0 && (other.over > 0 || pieces_decide(other, kept)))
        if (auto less =
                plan_for_less(one.planner, profile, kept, pricer, held_to(),
                              {.worth = worth, .makes_room = one.makes_room, .any = takes_any_, .known = effort.known}))
          if (other.over > 0 || takes_other(other, *less, kept)) other = std::move(*less);
      other.planner = one.name;
      return other;
    } catch (const UsageError&) {
      return std::nullopt;
    }
  }

  // With as many tries as the first planner had, the other one's plans could be better.
  static bool is_promising(const RepairedPlan& other, const RepairedPlan& best) {
    return other.over == 0 && to_seconds(other.step_time) < kPromising * to_seconds(best.step_time);
  }

  // Without the allocator's calls to the device it would be better; for another budget there may be none.
  static bool is_held_up(const RepairedPlan& other, const RepairedPlan& best) {
    return other.over == 0 && other.is_held_up() &&
           kWorthAsking * to_seconds(other.step_without_calls()) < to_seconds(best.step_time);
  }

  const PlanRestriction& held_to() const { return restriction() ? restriction() : own_restriction_; }

  // Nothing is left of any plan: that is no plan that leaves the step as it is.
  RepairedPlan required(RepairedPlan repaired) const {
    if (repaired.is_untouched && !repaired.restricted.empty())
      throw UsageError("Policy '" + info_.name + "': " + repaired.restricted);
    return repaired;
  }

  // What the budget is, and whether it holds.
  std::string budget_text(const StepProfile& profile, const RepairedPlan& repaired, const Pricer& pricer) const {
    const int device = profile.machine().tier("hbm");
    const TierResult& tier = repaired.estimate.tiers[static_cast<std::size_t>(device)];
    const std::string all = human_bytes(budget(profile).device), missing = human_bytes(repaired.over);
    if (info_.heeds_budget) {
      std::string text = "budget " + all + "; ";
      if (repaired.over > 0)
        text += "no plan was found that keeps to it, " + missing + " more are needed: " +
                (repaired.over_beside > 0 ? human_bytes(repaired.over_beside) + " of them beside the GPU's memory"
                                          : held_at_peak(written(repaired.plan, profile, pricer))) +
                "; ";
      return text + (repaired.is_untouched && repaired.over == 0 ? "the step keeps to it as it is; " : "");
    }
    std::string text = human_bytes(tier.peak_allocated) + " are in use at the peak; ";
    if (!budget_.is_given()) return text;
    text += "its plan does not depend on the budget of " + all + ", ";
    return text + (repaired.over > 0 ? "and needs " + missing + " more; " : "which it keeps to; ");
  }

  std::string note(const StepProfile& profile, const RepairedPlan& repaired, const Pricer& pricer) const {
    Bytes moved = 0;
    std::size_t movers = 0;
    for (const StorageDecision& d : repaired.plan.storages) {
      if (d.copies.empty()) continue;
      ++movers;
      moved += profile.trace().storages[d.storage].bytes;
    }
    const PlanEstimate& e = repaired.estimate;
    std::string text = info_.name + ": " + budget_text(profile, repaired, pricer);
    if (movers > 0)
      text +=
          fmt::format("{} ({}) {} by copies, {} out and {} back", counted_text(movers, "storage"), human_bytes(moved),
                      movers == 1 ? "leaves" : "leave", human_bytes(e.bytes_out), human_bytes(e.bytes_in));
    if (e.rerun_ops > 0)
      text += fmt::format("{}{} of {} run again", movers > 0 ? "; " : "", counted_text(e.rerun_ops, "op"),
                          human_time(e.rerun_time));
    if (movers == 0 && e.rerun_ops == 0)
      text += "nothing leaves the device";
    else if (profile.trace().steps.size() > 1)
      text += fmt::format("; all of {} steps together", profile.trace().steps.size());
    text += ".";
    if (!repaired.planner.empty()) text += " " + plan_owner_sentence(repaired.planner);
    return text;
  }

  PlannerInfo info_;
  PolicyArguments arguments_;
  Planner planner_, sketch_, closing_;
  std::vector<OtherPlanner> others_;
  double others_if_slower_by_ = 0;
  std::uint64_t most_work_ = kAnyWork;
  bool takes_any_ = false;
  PlanRestriction own_restriction_;
  GivenBudget budget_;  // a share is of device_bytes_for()
};

// By name: what makes them. Constructed on first use.
std::map<std::string, std::function<Planner(const PolicyArguments&)>>& makers() {
  static std::map<std::string, std::function<Planner(const PolicyArguments&)>> all;
  return all;
}

}  // namespace

Planner planner_named(const std::string& text) {
  const PolicySpec spec = parse_policy(text);
  const auto maker = makers().find(spec.info->name);
  if (maker == makers().end()) throw UsageError("Policy '" + spec.info->name + "' is no planner of memory plans.");
  return maker->second(spec.arguments);
}

RegisterPlanner::RegisterPlanner(PlannerInfo info) {
  PolicyInfo policy;
  policy.name = info.name;
  policy.sentence = info.sentence;
  policy.kind = PolicyKind::memory_plan;
  policy.needs = {.timing = true, .allocations = true, .dataflow = true};
  policy.parameters = info.parameters;
  policy.parameters.push_back(bytes_or_share(
      "budget", Unset{"device"}, kLeastBudget,
      info.heeds_budget ? "device memory that the step's storages may take at once, or a share of what the machine has "
                          "for them; device: all of that."
                        : "device memory, or a share of what the machine has for the step. This planner takes no "
                          "notice of it: a note says whether its plan keeps to it. device: all of that."));
  makers()[info.name] = info.make;
  policy.make_rewriter = [info = std::move(info)](const PolicyArguments& arguments) {
    GivenBudget budget;
    if (arguments.is_set("budget")) budget = {arguments.bytes("budget"), arguments.share("budget")};
    return std::make_unique<PlannedStepRewriter>(info, arguments, budget);
  };
  RegisterPolicy registered{std::move(policy)};
}

}  // namespace memwall
