#include "study/step_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <tuple>
#include <utility>

#include "policies/cycle/cycle_of_step.h"
#include "policies/trace/described.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "sim/trace/dataflow_note.h"
#include "sim/trace/step_count.h"
#include "study/device_budget.h"
#include "study/parallel_tasks.h"
#include "study/policy_text.h"

namespace memwall {
namespace {

const char* const kCheckpointAll = "checkpoint:mode=full";

// What people and frameworks would do else, one planner of each kind.
struct Asked {
  const char* policy;
  bool takes_budget, needs_host;
  const char* what;
};
const Asked kMovesAlone{"plan:recompute=0", true, false, "moves alone"};
const Asked kOthers[] = {{"rotor", true, false, "computes again alone, optimal for a chain of units"},
                         {"capuchin", true, true, "swaps and re-runs as Capuchin chooses them"},
                         {kCheckpointAll, false, false, "computes every block again"}};
// Where nothing may run again.
const Asked kOtherMoves[] = {{"capuchin:use=swaps", true, true, "swaps as Capuchin chooses them"},
                             {"swapadvisor", true, true, "swaps by SwapAdvisor's scores"}};
constexpr std::size_t kAlternatives = 3;

// The smallest budget is looked for to a hundredth of what the step needs.
constexpr Bytes kResolutionShare = 100;
// Plans of more ops take too long to make a dozen of them that were not asked for.
constexpr std::size_t kMostOpsSearched = 50'000;
const char* const kFirstPlan = "search=0";
// The same, but for its step: whether there is one is all that is asked. Where `search=0` finds a plan, so does this,
// and the other way round.
const char* const kAnyPlan = "search=0,any=1";

// A step that the allocator makes slower by more than this is planned, though it fits.
constexpr double kHeldUp = 0.02;
// Other settings of the allocator are told where a plan is faster under them by more than this.
constexpr double kWorthSettings = 0.01;

// Of a trace of several steps the certificate is of all of them.
void per_step(PlanCertificate& c, double steps) {
  for (double* seconds : {&c.ideal_seconds, &c.moves_seconds, &c.joint_seconds, &c.moves_per_gigabyte,
                          &c.joint_per_gigabyte, &c.moves_per_out_rate, &c.moves_per_in_rate, &c.joint_per_out_rate,
                          &c.joint_per_in_rate, &c.moves_per_rate, &c.joint_per_rate})
    *seconds /= steps;
}

class Advising {
 public:
  Advising(Study& study, const AdviceRequest& request, Watch* watch)
      : study_(study), request_(request), watch_(watch) {}

  StepAdvice run() {
    advice_.scenario = request_.scenario;
    advice_.moves_only = request_.settings.find("recompute=0") != std::string::npos;
    advice_.budget = budget_bytes(study_, request_);
    advice_.device = device_bytes(study_, request_);
    advice_.given_budget = request_.budget;
    if (request_.ranks > 0) choose_layout();
    step_ = study_.prepare(advice_.scenario);
    simulate_without_plan();
    certify();
    done(0.25);
    if (needs_no_plan())
      keep_untouched();
    else
      simulate_plans();
    order();
    if (!needs_no_plan()) try_other_settings();
    if (request_.smallest && !needs_no_plan()) find_smallest();
    done(1);
    return std::move(advice_);
  }

 private:
  struct Candidate {
    std::string policy, what;  // `what`: "" = that of the request itself
    AdvisedPlan plan{};
    std::string refusal{};
  };

  void done(double share) const {
    if (watch_ != nullptr) watch_->searched(share);
  }

  void choose_layout() {
    advice_.layouts = layouts_of(study_, request_.scenario, request_.ranks);
    compare_layouts(
        study_, advice_.layouts,
        {own_policy(request_, request_.budget, kFirstPlan), advice_.budget, tiers_of(request_), request_.jobs});
    advice_.scenario = advice_.layouts.front().scenario;
    done(0.2);
  }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all{{own_policy(request_, request_.budget), ""}};
    const std::vector<std::string> tiers = tiers_of(request_);
    const bool has_host = std::find(tiers.begin(), tiers.end(), "host") != tiers.end();
    const std::span<const Asked> others = advice_.moves_only ? std::span<const Asked>(kOtherMoves) : kOthers;
    for (const Asked& other : others)
      if (has_host || !other.needs_host) all.push_back(candidate(other));
    return all;
  }

  Candidate candidate(const Asked& asked) const {
    std::string policy = asked.policy;
    if (asked.takes_budget && !request_.budget.empty()) policy = with_parameters(policy, "budget=" + request_.budget);
    if (policy.rfind("plan", 0) == 0 && request_.tiers != "host")
      policy = with_parameters(policy, "tiers=" + request_.tiers);
    return {policy, asked.what};
  }

  void simulate_without_plan() {
    require_allocations();
    const AdvisedPlan unlimited = simulated_plan(study_, advice_.scenario, {}, kUnlimitedDevice);
    advice_.unlimited = unlimited.step_time;
    advice_.beside = step_.trace->untracked_bytes;
    advice_.needed = unlimited.peak_reserved - advice_.beside;
    advice_.untouched = simulated_plan(study_, advice_.scenario, {}, advice_.budget);
  }

  void simulate_plans() {
    std::vector<Candidate> all = candidates();
    std::vector<std::function<void()>> tasks;
    for (Candidate& one : all) tasks.emplace_back([&] { try_plan(one); });
    run_tasks(tasks, request_.jobs);
    if (!advice_.moves_only && asks_moves_alone(all)) {
      all.push_back(candidate(kMovesAlone));
      if (is_last(all)) take_first_plan(all.back());
      try_plan(all.back());
    }
    done(0.6);
    for (Candidate& one : all) {
      if (!one.refusal.empty()) {
        advice_.refused.push_back(one.policy + ": " + one.refusal);
        continue;
      }
      if (one.policy == kCheckpointAll) advice_.full_checkpointing = one.plan;
      one.plan.why = one.what;
      advice_.plans.push_back(std::move(one.plan));
    }
  }

  // Could it be among those that are shown? It takes long, and often what it has to wait for is known.
  bool asks_moves_alone(const std::vector<Candidate>& all) const {
    return fits_faster_than_moves(all) <= static_cast<std::ptrdiff_t>(kAlternatives);
  }

  // Plans that no plan is faster than that only moves.
  std::ptrdiff_t fits_faster_than_moves(const std::vector<Candidate>& all) const {
    return std::ranges::count_if(all, [&](const Candidate& one) {
      return one.refusal.empty() && one.plan.fits && to_seconds(one.plan.step_time) < advice_.certificate.moves_seconds;
    });
  }

  // Behind all others that fit, however fast a search makes it. REQUIRES: `all` ends with moves alone, not tried yet.
  bool is_last(const std::vector<Candidate>& all) const {
    const auto fit =
        std::ranges::count_if(all, [](const Candidate& one) { return one.refusal.empty() && one.plan.fits; });
    return fit > 0 && fits_faster_than_moves(all) == fit;
  }

  // To search for a better one takes long, and would change its own figures alone.
  static void take_first_plan(Candidate& one) {
    one.policy = with_parameters(one.policy, kFirstPlan);
    one.what += ", the first plan";
  }

  // Where it says nothing of memory, all would seem to fit.
  void require_allocations() const {
    const std::vector<std::string> missing =
        missing_knowledge({.timing = true, .allocations = true}, step_.trace->knowledge);
    const std::string why = why_no_dataflow(*step_.trace);
    if (!missing.empty())
      throw UsageError(
          fmt::format("{}: it does not know its {}; expected a step that does. {}`memwall inspect` says how to "
                      "capture it.",
                      step_.trace->name, listed(missing), why.empty() ? "" : why + " "));
  }

  // It fits as it is, and the allocator's calls to the device do not hold it up.
  bool needs_no_plan() const {
    return advice_.untouched.fits &&
           to_seconds(advice_.untouched.step_time) <= to_seconds(advice_.unlimited) * (1 + kHeldUp);
  }

  // It fits as it is: nothing is planned.
  void keep_untouched() {
    advice_.plans.push_back(advice_.untouched);
    Candidate full{kCheckpointAll, "computes every block again"};
    try_plan(full);
    if (!full.refusal.empty()) return;
    full.plan.why = full.what;
    advice_.full_checkpointing = full.plan;
    advice_.plans.push_back(std::move(full.plan));
  }

  void try_plan(Candidate& one) const {
    try {
      one.plan = simulated_plan(study_, advice_.scenario, {one.policy}, advice_.budget);
    } catch (const UsageError& error) {
      if (one.what.empty()) throw;
      one.refusal = error.what();
    }
  }

  // A quick plan: is it worth to ask again under them?
  void try_other_settings() {
    const AdvisedPlan& best = advice_.plans.front();
    const Scenario& s = advice_.scenario;
    const bool is_near = best.fits && to_seconds(best.step_time) <= to_seconds(advice_.unlimited) * (1 + kHeldUp);
    const bool is_impossible = advice_.certificate.least_budget > advice_.budget;
    if (is_near || is_impossible || s.allocator != Scenario{}.allocator || !s.allocator_settings.empty() ||
        step_.trace->ops.size() > kMostOpsSearched)
      return;
    Scenario other = s;
    other.allocator_settings = kOtherSettings;
    AdvisedPlan plan =
        simulated_plan(study_, other, {own_policy(request_, request_.budget, kFirstPlan)}, advice_.budget);
    const bool is_faster = to_seconds(plan.step_time) < to_seconds(best.step_time) * (1 - kWorthSettings);
    if (plan.fits && (!best.fits || is_faster)) advice_.with_other_settings = std::move(plan);
  }

  std::string plan_within(Bytes budget, const char* which) const {
    return own_policy(request_, fmt::format("{}MiB", budget / kBudgetUnit), which);
  }

  void find_smallest() {
    advice_.is_too_long = step_.trace->ops.size() > kMostOpsSearched;
    if (advice_.is_too_long) return;
    const Bytes budget = advice_.budget;
    const bool fits = advice_.plans.front().fits;
    const Bytes most = fits ? std::min(budget, advice_.needed) : advice_.needed;
    const Bytes fails = std::min(most, std::max(fits ? 0 : budget, advice_.certificate.least_budget - 1));
    const auto fit = [&](const std::vector<Bytes>& budgets) {
      std::vector<char> answers(budgets.size());
      std::vector<std::function<void()>> tasks;
      for (std::size_t i = 0; i < budgets.size(); ++i)
        tasks.emplace_back([&, i] {
          answers[i] = simulated_plan(study_, advice_.scenario, {plan_within(budgets[i], kAnyPlan)}, budgets[i]).fits;
        });
      run_tasks(tasks, request_.jobs);
      return std::vector<bool>(answers.begin(), answers.end());
    };
    advice_.smallest = find_smallest_budget(fails, most, advice_.needed / kResolutionShare, kBudgetUnit, fit);
    if (advice_.smallest.bytes != most)
      advice_.smallest_policy = plan_within(advice_.smallest.bytes, kFirstPlan);
    else if (const auto& first = advice_.plans.front().policies; fits && !first.empty())
      advice_.smallest_policy = first.front();
  }

  // What fits first, the fastest of it first; what does not fit by what is missing. Then why.
  void order() {
    std::stable_sort(advice_.plans.begin(), advice_.plans.end(), [](const AdvisedPlan& a, const AdvisedPlan& b) {
      if (a.fits != b.fits) return a.fits;
      return a.fits ? a.step_time < b.step_time : a.missing < b.missing;
    });
    if (advice_.plans.size() > kAlternatives + 1) advice_.plans.resize(kAlternatives + 1);
    const AdvisedPlan best = advice_.plans.front();
    if (needs_no_plan()) advice_.plans.front().why = "nothing has to leave";
    for (AdvisedPlan& plan : advice_.plans) {
      const bool first = &plan == &advice_.plans.front();
      if (first && needs_no_plan()) continue;
      const std::string what = plan.why.empty() ? what_own_does(plan) : plan.why;
      plan.why = what + "; " + (first ? reason_for(plan) : reason_against(plan, best));
    }
  }

  // `plan` takes the plan of another planner, or of itself with other settings, where that is the best that it finds.
  // The other planner asked alone may find a better one, or none: it is asked for other budgets then.
  static std::string what_own_does(const AdvisedPlan& own) {
    const std::string jointly = "keeps, moves and computes again, jointly";
    if (own.made_by.empty()) return jointly;
    if (own.made_by.starts_with("plan:")) return jointly + ", as " + own.made_by;
    return "the plan of " + own.made_by + ", the best of those that plan tried";
  }

  std::string reason_for(const AdvisedPlan& plan) const {
    if (!plan.fits)
      return "no plan that was tried fits; this one comes nearest, " + human_bytes(plan.missing) + " are missing";
    const Duration longer = plan.step_time - advice_.unlimited;
    return fmt::format("{} longer than with unlimited memory, of it {} of re-runs{}; {} leave by copies",
                       human_time(std::max(Duration{}, longer)), human_time(plan.rerun_time),
                       allocator_text(plan, longer), human_bytes(plan.bytes_out));
  }

  // Nothing where it is too little to matter.
  static std::string allocator_text(const AdvisedPlan& plan, Duration longer) {
    if (plan.allocator_time < longer / 20 || plan.allocator_time == Duration{}) return "";
    return fmt::format(" and up to {} of the allocator's calls to the device, whose cache does not fit",
                       human_time(std::min(plan.allocator_time, std::max(Duration{}, longer))));
  }

  static bool is_same(const AdvisedPlan& a, const AdvisedPlan& b) {
    return std::tuple(a.step_time, a.rerun_time, a.bytes_out, a.bytes_in) ==
           std::tuple(b.step_time, b.rerun_time, b.bytes_out, b.bytes_in);
  }

  std::string reason_against(const AdvisedPlan& plan, const AdvisedPlan& best) const {
    if (!plan.fits) return "does not fit, " + human_bytes(plan.missing) + " are missing";
    if (is_same(plan, best)) return "as fast as the first, with the same copies and re-runs";
    const double slower = 100 * (to_seconds(plan.step_time) / to_seconds(best.step_time) - 1);
    const Duration longer = plan.step_time - advice_.unlimited;
    const char* cause = plan.rerun_time > longer / 2 ? "for re-runs"
                        : plan.allocator_time > longer / 2
                            ? "waiting, for the allocator's calls to the device above all"
                        : plan.bytes_out + plan.bytes_in > 0 ? "waiting, for copies above all"
                                                             : "waiting, for other streams, the host and the allocator";
    return fmt::format("{:.1f} % slower: {} longer than unlimited, {}", slower,
                       human_time(std::max(Duration{}, longer)), cause);
  }

  void certify() {
    const StepProfile profile(*step_.trace, *step_.machine);
    advice_.certificate =
        plan_certificate(profile, advice_.budget, links_of_machine(*step_.machine, tiers_of(request_)));
    const auto text = [&](const PeakInstant& peak) {
      return peak.op == kNoOp ? "-" : described_op(*step_.trace, peak.op);
    };
    // A step of several is the mean of windows, which may be shorter than its share of all work.
    const double all = advice_.certificate.ideal_seconds;
    per_step(advice_.certificate,
             std::max(static_cast<double>(step_count(*step_.trace)), all / to_seconds(advice_.unlimited)));
    advice_.peak_op = text(advice_.certificate.peak);
    if (const OpId largest = advice_.certificate.least_at; largest != kNoOp) {
      advice_.largest_op = described_op(*step_.trace, largest);
      advice_.largest_updates = step_.trace->ops[largest].phase == Phase::optimizer;
    }
    for (const PeakLever& lever : advice_.certificate.levers) advice_.lever_ops.push_back(text(lever.peak));
  }

  Study& study_;
  const AdviceRequest& request_;
  Watch* watch_;
  PreparedStep step_;
  StepAdvice advice_;
};

}  // namespace

StepAdvice advise(Study& study, const AdviceRequest& request, Watch* watch) {
  return Advising(study, request, watch).run();
}

}  // namespace memwall
