#include "study/step_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "policies/cycle/cycle_of_step.h"
#include "policies/trace/described.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

// What people and frameworks would do else, one planner of each kind.
struct Asked {
  const char* policy;
  bool takes_budget;
  const char* what;
};
constexpr Asked kOthers[] = {{"plan:recompute=0", true, "moves alone"},
                             {"rotor", true, "computes again alone, optimal for a chain of units"},
                             {"capuchin", true, "swaps and re-runs as Capuchin chooses them"},
                             {"checkpoint:mode=full", false, "computes every block again"}};
constexpr std::size_t kAlternatives = 3;

std::string with(const std::string& policy, const std::string& parameters) {
  if (parameters.empty()) return policy;
  return policy + (policy.find(':') == std::string::npos ? ":" : ",") + parameters;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, '+');) parts.push_back(part);
  return parts;
}

class Advising {
 public:
  Advising(Study& study, const AdviceRequest& request, const std::function<void(double)>& progress)
      : study_(study), request_(request), progress_(progress) {}

  StepAdvice run() {
    budget_ = request_.budget.empty() ? "" : "budget=" + request_.budget;
    prepare();
    advice_.untouched = simulated({}, "the step as it is");
    advice_.unlimited = unlimited_;
    done(0.1);
    std::string own = with("plan", budget_);
    if (request_.tiers != "host") own = with(own, "tiers=" + request_.tiers);
    own = with(own, request_.settings);
    add(own, "");
    done(0.4);
    for (const Asked& other : kOthers) {
      std::string policy = other.takes_budget ? with(other.policy, budget_) : other.policy;
      if (std::string(other.policy).rfind("plan", 0) == 0 && request_.tiers != "host")
        policy = with(policy, "tiers=" + request_.tiers);
      add(policy, other.what);
      done(0.4 + 0.12 * static_cast<double>(&other - kOthers + 1));
    }
    order();
    certify();
    done(1);
    return std::move(advice_);
  }

 private:
  void done(double share) const {
    if (progress_) progress_(share);
  }

  void add(const std::string& policy, const std::string& what) {
    try {
      AdvisedPlan plan = simulated({policy}, what);
      if (policy == "checkpoint:mode=full") advice_.full_checkpointing = plan;
      advice_.plans.push_back(std::move(plan));
    } catch (const UsageError& error) {
      if (what.empty()) throw;
      advice_.refused.push_back(policy + ": " + error.what());
    }
  }

  AdvisedPlan simulated(const std::vector<std::string>& policies, const std::string& what) {
    Scenario scenario = request_.scenario;
    scenario.policies.insert(scenario.policies.end(), policies.begin(), policies.end());
    const memwall::Run run = study_.run(scenario, {.record = false}).run;
    AdvisedPlan plan{policies, what};
    const TierResult& device = run.result.tiers[static_cast<std::size_t>(run.machine.tier("hbm"))];
    plan.step_time = run.result.end;
    plan.peak_reserved = device.peak_reserved;
    plan.missing = device.missing;
    for (const MemoryBudget& budget : run.trace->budgets) plan.missing = std::max(plan.missing, budget.over);
    // What knows no budget is held against it by the blocks that it uses.
    if (run.trace->budgets.empty()) plan.missing = std::max(plan.missing, device.peak_allocated - advice_.budget);
    plan.missing = std::max<Bytes>(0, plan.missing);
    plan.fits = run.result.fits && plan.missing == 0;
    if (policies.empty()) unlimited_ = run.result.end;
    for (const Op& op : run.trace->ops) {
      if (op.phase == Phase::recompute && op.kind != OpKind::mark) plan.rerun_time += op.duration;
      if (op.kind != OpKind::copy || !op.added) continue;
      const std::string &from = run.trace->places[op.from], &to = run.trace->places[op.to];
      if (from == "hbm" && to != "hbm") plan.bytes_out += op.bytes;
      if (to == "hbm" && from != "hbm") plan.bytes_in += op.bytes;
    }
    return plan;
  }

  // What fits first, the fastest of it first; what does not fit by what is missing. Then why.
  void order() {
    std::stable_sort(advice_.plans.begin(), advice_.plans.end(), [](const AdvisedPlan& a, const AdvisedPlan& b) {
      if (a.fits != b.fits) return a.fits;
      return a.fits ? a.step_time < b.step_time : a.missing < b.missing;
    });
    if (advice_.plans.size() > kAlternatives + 1) advice_.plans.resize(kAlternatives + 1);
    const AdvisedPlan best = advice_.plans.front();
    for (AdvisedPlan& plan : advice_.plans) {
      const bool first = &plan == &advice_.plans.front();
      const std::string what = plan.why.empty() ? "keeps, moves and computes again, jointly" : plan.why;
      plan.why = what + "; " + (first ? reason_for(plan) : reason_against(plan, best));
    }
  }

  std::string reason_for(const AdvisedPlan& plan) const {
    if (!plan.fits) return "no plan that was tried fits; this one comes nearest, " + human_bytes(plan.missing) + " are missing";
    const Duration longer = plan.step_time - advice_.unlimited;
    return fmt::format("{} longer than with unlimited memory, of it {} of re-runs; {} leave by copies",
                       human_time(std::max(Duration{}, longer)), human_time(plan.rerun_time),
                       human_bytes(plan.bytes_out));
  }

  std::string reason_against(const AdvisedPlan& plan, const AdvisedPlan& best) const {
    if (!plan.fits) return "does not fit, " + human_bytes(plan.missing) + " are missing";
    const double slower = 100 * (to_seconds(plan.step_time) / to_seconds(best.step_time) - 1);
    const Duration longer = plan.step_time - advice_.unlimited;
    const char* cause = plan.rerun_time > longer / 2 ? "for re-runs" : "waiting, for copies above all";
    return fmt::format("{:.1f} % slower: {} longer than unlimited, {}", slower,
                       human_time(std::max(Duration{}, longer)), cause);
  }

  void certify() {
    const StepProfile profile(*step_.trace, *step_.machine);
    advice_.certificate =
        plan_certificate(profile, advice_.budget, links_of_machine(*step_.machine, split(request_.tiers)));
    const auto text = [&](const PeakInstant& peak) {
      return peak.op == kNoOp ? "-" : described_op(*step_.trace, peak.op);
    };
    advice_.peak_op = text(advice_.certificate.peak);
    for (const PeakLever& lever : advice_.certificate.levers) advice_.lever_ops.push_back(text(lever.peak));
  }

  // What the budget is in bytes.
  void prepare() {
    step_ = study_.prepare(request_.scenario);
    const Machine& machine = *step_.machine;
    const Bytes whole = machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].holds() - step_.trace->untracked_bytes;
    advice_.budget = whole;
    if (!request_.budget.empty()) {
      const PolicySpec spec = parse_policy(with("plan", budget_));
      const double share = spec.arguments.share("budget");
      advice_.budget = share > 0 ? static_cast<Bytes>(share * static_cast<double>(whole)) : spec.arguments.bytes("budget");
    }
  }

  Study& study_;
  const AdviceRequest& request_;
  const std::function<void(double)>& progress_;
  std::string budget_;
  Duration unlimited_{};
  PreparedStep step_;
  StepAdvice advice_;
};

}  // namespace

StepAdvice advise(Study& study, const AdviceRequest& request, const std::function<void(double)>& progress) {
  return Advising(study, request, progress).run();
}

}  // namespace memwall
