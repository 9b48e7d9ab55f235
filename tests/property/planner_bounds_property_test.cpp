// Do the bounds of policies/cycle hold against the plans of every registered policy that makes memory plans? Each makes
// its plan for the same random small steps, at a budget of its own. The plan is carried out by the simulation of one
// step, and by a checker written apart turn after turn (tests/support/turn_replay.h); both are held against the bound
// for the memory that the plan really takes, which is the sharpest that has to hold.
//
// Of each step half of the planners are asked, drawn anew, in every run of the tests an eighth
// (tests/support/long_run.h): all of them would take two minutes. (.ci/long soak asks for 2,000 steps.)
//
// Why the simulated step, too, may not be faster than a bound for steps that repeat: a plan begins and ends with the
// same storages on the device, copies are all done at its end, and one such step after the other is a row of steps.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/moves_bound.h"
#include "policies/cycle/rerun_prices.h"
#include "policies/cycle/whole_moves.h"
#include "policies/plan/plan_writer.h"
#include "policies/solver/linear_program.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/long_run.h"
#include "tests/support/random_step.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Calls beside the plain one, or in its place where that needs arguments. What is not named here is called plainly.
const std::map<std::string, std::vector<std::string>> kPlannerCalls = {
    {"capuchin", {"", "use=swaps"}},
    {"checkmate", {"mode=rounding,nodes=4"}},
    {"checkpoint", {"mode=full", "mode=sqrt"}},
    {"chen", {"", "mode=sqrt"}},
    {"g10", {"", "delta=0"}},
    {"mincut", {"", "aggressive=1"}},
    {"offload", {"what=activations,to=host", "what=parameters,to=host", "what=gradients,to=host"}},
    {"plan",
     {"search=0", "recompute=0", "recompute=0,search=0", "reruns=units,search=0", "executable=torch,search=0",
      "tiers=host+nvme,search=0", "tiers=nvme,recompute=0,search=0", "tiers=nvme,search=0"}},
    {"revolve", {"slots=2", "slots=4"}},
    {"rotor", {"slots=100"}},
    {"save_on_cpu", {"", "pin_memory=1"}},
    {"selective", {"save=op1"}},
    {"ssdtrain", {"", "to=host,amount=all"}},
    {"superneurons", {"offload=dense,recompute=memory", "offload=none,recompute=speed"}},
    {"torch_budget", {"memory_budget=0.5"}},
    {"torch_sac", {"memory_budget=0.5"}},
};

// exec runs a program that is not here. reversible computes inputs from outputs, which no op of the step does: a joint
// bound that prices the step's own ops does not speak of it. The same goes for offload:what=optimizer, whose update
// leaves the device.
const std::vector<std::string> kNotBounded = {"exec", "reversible"};

bool has_parameter(const PolicyInfo& info, const std::string& name) {
  return std::any_of(info.parameters.begin(), info.parameters.end(),
                     [&](const ParameterInfo& parameter) { return parameter.name == name; });
}

struct PlannerCall {
  std::string text;  // but for its budget
  bool has_budget = false;
};

std::vector<PlannerCall> planner_calls() {
  std::vector<PlannerCall> all;
  for (const auto& [name, info] : policies()) {
    if (info.kind != PolicyKind::memory_plan) continue;
    if (std::find(kNotBounded.begin(), kNotBounded.end(), name) != kNotBounded.end()) continue;
    if (name == "checkmate" && !LinearProgram::is_available()) continue;
    const auto named = kPlannerCalls.find(name);
    for (std::string arguments : named == kPlannerCalls.end() ? std::vector<std::string>{""} : named->second) {
      if (has_parameter(info, "min_bytes")) arguments += arguments.empty() ? "min_bytes=0" : ",min_bytes=0";
      all.push_back({arguments.empty() ? name : name + ":" + arguments, has_parameter(info, "budget")});
    }
  }
  return all;
}

// A random step, or one of a GPT, whose copies to the host take as long as its kernels, or longer, or less.
Trace step_of_planners() {
  Trace step;
  int times = 10'000, slower = 1;
  if (*rc::gen::inRange(0, 3) == 0) {
    GptShape shape;
    shape.layers = *rc::gen::inRange(1, 4);
    shape.hidden = 256, shape.sequence = 128;
    shape.preexisting_gradients = *rc::gen::arbitrary<bool>();
    shape.bytes_per_second = shape.flops_per_second = *rc::gen::inRange(10, 400) * 1e9;
    step = gpt_step(shape);
    times = 1;
  } else {
    step = random_step(*rc::gen::inRange<std::size_t>(1, 3));
    slower = *rc::gen::element(500, 3000, 10'000);
  }
  for (Storage& storage : step.storages) storage.bytes *= times;
  for (Op& op : step.ops) op.duration *= slower;
  return step;
}

// Of the calls of one policy.
struct BoundChecks {
  int plans = 0, takes_less = 0, binds = 0, reruns_bind = 0, steady = 0, near = 0;
  int whole = 0, whole_near = 0;  // the bound of whole storages says more
};

class PlansAgainstBounds {
  // Of a plan. It may be both: the step as it is.
  struct Kind {
    bool only_moves = false, only_reruns = false;
  };

 public:
  explicit PlansAgainstBounds(const Trace& step)
      : step_(step),
        machine_(test_machine()),
        pricer_(test_pricer(machine_)),
        profile_(step, machine_),
        cycled_(cycle_of_step(profile_)),
        cycle_(cycled_.program),
        prices_(least_rerun_prices(profile_, cycled_, cycle_)) {
    const std::vector<Bytes> least = cycle_.least();
    lowest_ = *std::max_element(least.begin(), least.end());
  }

  void check(const PlannerCall& call, BoundChecks& counts) const {
    std::string text = call.text;
    if (call.has_budget) {
      const Bytes budget =
          std::max(MiB(1), lowest_ + (cycle_.peak() - lowest_) / 100 * *rc::gen::inRange<Bytes>(0, 101));
      text += (text.find(':') == text.npos ? ":" : ",") + ("budget=" + std::to_string(budget));
    }
    RC_LOG() << text << '\n';
    std::optional<MemoryPlan> plan;
    Trace after;
    try {
      const PolicySpec spec = parse_policy(text);
      const auto rewriter = spec.info->make_rewriter(spec.arguments);
      plan = rewriter->memory_plan(step_, machine_, *pricer_);
      after = plan ? written(*plan) : rewriter->rewrite(step_, machine_, *pricer_);
    } catch (const UsageError&) {
      return;  // it has no meaning for this step
    }
    ++counts.plans;
    const SimulationResult result = simulated(after);
    const Kind kind{count(after, Phase::recompute) == 0, copies_nothing(after)};
    const CycleLinks links = links_of(plan);
    expect_above(result.tiers[0].peak_allocated, to_seconds(result.end), kind, links, counts);
    if (!plan || links.paths.size() > 1) return;
    const ReplayedTurns turns = replay_turns(turn_of(profile_, *plan), links);
    if (!turns.faults.empty()) return;  // fits into one step, and not into a row of steps
    ++counts.steady;
    expect_above(turns.highest, turns.seconds, kind, links, counts);
  }

 private:
  Trace written(const MemoryPlan& plan) const {
    TraceEdit edit(step_, machine_.host);
    write_plan(plan, profile_.flow(), *pricer_, edit);
    return std::move(edit).apply();
  }

  CycleLinks links_of(const std::optional<MemoryPlan>& plan) const {
    std::vector<std::string> tiers;
    if (!plan) tiers = {"host", "nvme"};
    for (std::size_t i = 0; plan && i < plan->tiers.size(); ++i) tiers.push_back(plan->tiers[i].tier);
    return links_of_machine(machine_, tiers.empty() ? std::vector<std::string>{"host"} : tiers);
  }

  static bool copies_nothing(const Trace& after) {
    return std::ranges::none_of(after.ops, [](const Op& op) { return op.kind == OpKind::copy && op.added; });
  }

  void expect_above(Bytes taken, double seconds, const Kind& kind, const CycleLinks& links, BoundChecks& counts) const {
    double bound = joint_bound_seconds(cycle_, links, taken, prices_);
    if (kind.only_moves) {
      bound = std::max(bound, moves_bound(cycle_, links, taken).seconds);
      const double whole = whole_moves_bound_seconds(cycle_, links, taken);
      counts.whole += whole > std::max(bound, to_seconds(cycle_.turn())) * 1.001 ? 1 : 0;
      counts.whole_near += whole > std::max(bound, to_seconds(cycle_.turn())) * 1.001 && seconds < whole * 1.05 ? 1 : 0;
      bound = std::max(bound, whole);
    }
    if (kind.only_reruns) {
      const double reruns = reruns_bound_seconds(cycle_, taken, prices_);
      RC_ASSERT(reruns >= bound * (1 - 1e-9) || kind.only_moves);
      counts.reruns_bind += reruns > std::max(bound, to_seconds(cycle_.turn())) * 1.001 ? 1 : 0;
      bound = std::max(bound, reruns);
    }
    counts.takes_less += taken < cycle_.peak() ? 1 : 0;
    counts.binds += bound > to_seconds(cycle_.turn()) * 1.001 ? 1 : 0;
    counts.near += bound > to_seconds(cycle_.turn()) * 1.001 && seconds < bound * 1.05 ? 1 : 0;
    RC_ASSERT(seconds >= bound * (1 - 1e-9));
  }

  const Trace& step_;
  const Machine machine_;
  const std::unique_ptr<Pricer> pricer_;
  const StepProfile profile_;
  const CycledStep cycled_;
  const StepCycle cycle_;
  const RerunPrices prices_;
  Bytes lowest_ = 0;
};

TEST(PlannerBoundsProperty, NoPlanOfAnyPlannerIsFasterThanTheBound) {
  const std::vector<PlannerCall> calls = planner_calls();
  std::map<std::string, BoundChecks> counts;
  const int one_in = static_cast<int>(cases(8, 2));
  EXPECT_TRUE(rc::check("no plan of any planner is faster than the bound", [&] {
    const Trace step = step_of_planners();
    const PlansAgainstBounds plans(step);
    for (const PlannerCall& call : calls)
      if (*rc::gen::inRange(0, one_in) == 0) plans.check(call, counts[call.text]);
  }));
  BoundChecks all;
  for (const auto& [text, of_one] : counts) {
    std::printf("%-60s %5d plans, %5d take less, %5d in a row of steps; the bound binds %5d, within 5 %% %4d\n",
                text.c_str(), of_one.plans, of_one.takes_less, of_one.steady, of_one.binds, of_one.near);
    all.plans += of_one.plans, all.binds += of_one.binds, all.near += of_one.near;
    all.reruns_bind += of_one.reruns_bind;
    all.whole += of_one.whole, all.whole_near += of_one.whole_near;
    EXPECT_GT(of_one.plans, 0) << text << " is refused by every step";
  }
  std::printf("the bound of whole storages says more for %d plans, within 5 %% of %d\n", all.whole, all.whole_near);
  EXPECT_GE(all.plans, 2000 / one_in);
  EXPECT_GE(all.binds, 600 / one_in) << "the bound says nothing";
  EXPECT_GE(all.reruns_bind, 60 / one_in) << "that of re-runs alone says no more than that of all plans";
  EXPECT_GE(all.near, 200 / one_in) << "no plan is so near that a wrong bound would be noticed";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
