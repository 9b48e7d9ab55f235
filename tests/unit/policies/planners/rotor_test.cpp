// Does rotor carry out the fastest schedule of a step's units, keep to the budget, and take no longer than Chen's
// segments?
#include <gtest/gtest.h>

#include <map>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_writer.h"
#include "policies/planners/rotor.h"
#include "policies/planners/rotor_stages.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kBlock = 512;

// x -> 0 -> 1 -> ... -> n-1; a layer keeps its output and two blocks more. Backward of a layer reads what it
// keeps and what it started from. `dear`: whose forward takes 10 us instead of 1.
struct Layers {
  explicit Layers(std::size_t n, std::size_t dear = 1000) {
    StepProgram p;
    StorageId input = p.preexisting(kBlock, StorageKind::input, "x");
    for (std::size_t k = 0; k < n; ++k) {
      const std::string name = "layer" + std::to_string(k);
      p.module("layers." + std::to_string(k));
      inner.push_back(p.make(2 * kBlock, "inner"));
      output.push_back(p.make(kBlock, "output"));
      Op cost;
      cost.duration = microseconds(k == dear ? 10 : 1);
      forward.push_back(p.op(name, {input}, {inner[k], output[k]}, cost));
      input = output[k];
    }
    p.module("");
    p.backward();
    for (std::size_t k = n; k-- > 0;) {
      p.drop(output[k]);
      p.module("layers." + std::to_string(k));
      std::vector<StorageId> reads = {inner[k]};
      if (k > 0) reads.push_back(output[k - 1]);
      backward.insert(backward.begin(), p.op("layer_backward" + std::to_string(k), reads, {}));
      p.drop(inner[k]);
    }
    p.optimizer();
    step = std::move(p).finish();
  }
  std::vector<StorageId> inner, output;
  std::vector<OpId> forward, backward;
  Trace step;
};

MemoryPlan planned(const Trace& step, Bytes budget, std::uint32_t slots) {
  const Machine machine = test_machine();
  return rotor_plan(StepProfile(step, machine), budget, slots);
}

Trace carried_out(const Trace& step, const MemoryPlan& plan) {
  const Machine machine = test_machine();
  const Dataflow flow(step);
  EXPECT_EQ(check_plan(plan, step, flow), std::vector<std::string>{});
  TraceEdit edit(step, machine.host);
  write_plan(plan, flow, *test_pricer(machine), edit);
  Trace after = std::move(edit).apply();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(races(after), std::vector<std::string>{});
  return after;
}

// With the ideal allocator, beside what was there at the start.
Bytes live_peak(const Trace& t) {
  Bytes most = 0;
  for (const LiveBytes& live : live_bytes(t)) {
    Bytes sum = 0;
    for (const Bytes bytes : live) sum += bytes;
    most = std::max(most, sum);
  }
  return most;
}

TEST(Rotor, FindsStagesWithTheirBytes) {
  const Layers layers(4, 1);
  const Machine machine = test_machine();
  const StepProfile profile(layers.step, machine);
  const std::vector<ForwardChain> chains = forward_chains_of(profile);
  ASSERT_EQ(chains.size(), 1u);
  const RotorPass pass = rotor_pass(profile, ParameterGathers(layers.step, profile.flow()), chains.front(), 100);
  ASSERT_EQ(pass.units.size(), 4u);
  EXPECT_EQ(pass.beside, kBlock);  // x
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(pass.units[k].ops, std::vector<OpId>{layers.forward[k]});
    EXPECT_EQ(pass.units[k].backward, layers.backward[k]);
    const RotorStage& stage = pass.chain.stages[k];
    EXPECT_EQ(stage.output_saved, k < 3 ? kBlock : 0);  // nobody starts from the last
    EXPECT_EQ(stage.output_passed, 0);
    EXPECT_EQ(stage.saved, (k < 3 ? 3 : 2) * kBlock) << "nobody reads the last output in backward";
    EXPECT_EQ(stage.while_saving, 3 * kBlock);
    EXPECT_EQ(stage.while_backward, 2 * kBlock);  // the output is given back first
    EXPECT_EQ(stage.forward, microseconds(k == 1 ? 10 : 1));
  }
  const RotorPass joined = rotor_pass(profile, ParameterGathers(layers.step, profile.flow()), chains.front(), 2);
  ASSERT_EQ(joined.units.size(), 2u);
  EXPECT_EQ(joined.chain.stages[0].saved, 6 * kBlock);
  EXPECT_EQ(joined.chain.stages[0].output_saved, kBlock);
}

Bytes with_x(std::uint32_t blocks) { return (blocks + 1) * kBlock; }

// Four layers of three blocks each, x aside, of which the second takes ten times as long. All of them: 12 blocks.
//
// In 8 the second must not run again (10 us), so three of its blocks stay. Behind it the last layer needs three while
// it runs: the third passes on its output alone (1), and so does the first (1). 1 + 3 + 1 + 3 = 8, for 2 us more.
TEST(Rotor, RunsTheCheapLayersAgain) {
  const Layers layers(4, 1);
  EXPECT_TRUE(planned(layers.step, with_x(12), 12) == MemoryPlan{});
  const MemoryPlan plan = planned(layers.step, with_x(8), 8);
  std::map<StorageId, std::vector<PlanPoint>> drops;
  for (const StorageDecision& d : plan.storages)
    for (const PlannedDrop& drop : d.drops) drops[d.storage].push_back(drop.at);
  EXPECT_EQ(drops, (std::map<StorageId, std::vector<PlanPoint>>{
                       {layers.inner[0], {{layers.forward[0], true, 0}}},
                       {layers.inner[2], {{layers.forward[2], true, 0}}},
                       {layers.output[3], {{layers.forward[3], true, 0}}},  // nobody reads it
                   }));
  ASSERT_EQ(plan.reruns.size(), 2u);
  EXPECT_TRUE(plan.reruns[0] == (PlannedRerun{{layers.backward[2], false, 0}, {layers.forward[2]}}));
  EXPECT_TRUE(plan.reruns[1] == (PlannedRerun{{layers.backward[0], false, 0}, {layers.forward[0]}}));
}

// Nine layers in all that they can do with: what lives keeps to the budget, and runs again for as long as the schedule
// says. In the least, checkpoints are made again from others, and dropped again.
TEST(Rotor, CarriesOutTheScheduleInAnyBudget) {
  const Layers layers(9, 4);
  const Machine machine = test_machine();
  const StepProfile profile(layers.step, machine);
  const RotorPass pass =
      rotor_pass(profile, ParameterGathers(layers.step, profile.flow()), forward_chains_of(profile).front(), 100);
  const Duration once = device_time(layers.step, Phase::forward) + device_time(layers.step, Phase::backward);
  std::size_t nested = 0, possible = 0;
  for (std::uint32_t blocks = 1; blocks <= 27; ++blocks) {
    SCOPED_TRACE(blocks);
    const auto schedule = RotorTable(pass.chain, blocks * kBlock, blocks).schedule();
    if (!schedule) continue;
    ++possible;
    const MemoryPlan plan = planned(layers.step, with_x(blocks), blocks);
    const Trace after = carried_out(layers.step, plan);
    EXPECT_LE(live_peak(after), with_x(blocks));
    EXPECT_EQ(device_time(after, Phase::recompute), schedule->time - once);
    if (count(after, Phase::recompute) > 0) expect_same_contents(layers.step, after);
    for (const StorageDecision& d : plan.storages) nested += d.drops.size() > 1 ? 1 : 0;
  }
  EXPECT_GE(possible, 20u);
  EXPECT_GT(nested, 0u);
}

// On a GPT the device with no more memory than the budget holds it.
TEST(Rotor, KeepsToItsBudgetOnAGpt) {
  const Trace step =
      gpt_step({.layers = 12, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096});
  Machine machine = test_machine();
  const Bytes all = simulate(step, machine, {}).tiers.front().peak_reserved;
  Duration before{};
  for (const int percent : {100, 80, 65, 50}) {
    const Bytes budget = all * percent / 100;
    const Trace after = rewritten(step, "rotor:budget=" + std::to_string(budget));
    ASSERT_FALSE(has_note(after, "no plan was found")) << percent;
    EXPECT_EQ(races(after), std::vector<std::string>{});
    machine.tiers.front().capacity = budget;
    EXPECT_TRUE(simulate(after, machine, {}).fits) << percent;
    EXPECT_GE(device_time(after, Phase::recompute), before);
    before = device_time(after, Phase::recompute);
  }
  EXPECT_GT(before, Duration{});
}

// Each step by itself: what the other saves is none of its limits. Less than what any plan takes gives the least.
TEST(Rotor, TakesTheLeastWhereTheBudgetIsTooSmallInEveryStep) {
  GptShape shape{.layers = 6, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096};
  const Bytes one =
      simulated(carried_out(gpt_step(shape), planned(gpt_step(shape), 1, 500))).tiers.front().peak_allocated;
  shape.steps = 2;
  const Trace steps = gpt_step(shape);
  EXPECT_EQ(simulated(carried_out(steps, planned(steps, 1, 500))).tiers.front().peak_allocated, one);
  EXPECT_LT(one, simulated(steps).tiers.front().peak_allocated * 7 / 10);
}

// The alloc of what a unit's first op makes stands before the unit: it is no input that a re-run would have to keep.
TEST(Rotor, KeepsNoneOfWhatAUnitMakesForItself) {
  StepProgram p;
  StorageId x = p.preexisting(kBlock, StorageKind::input, "x");
  std::vector<StorageId> saved;
  for (std::size_t k = 0; k < 4; ++k) {
    p.module("layers." + std::to_string(k));
    const StorageId own = p.make(7 * kBlock, "own");
    p.op("norm", {x}, {own});
    const StorageId y = p.make(kBlock, "y");
    p.op("linear", {own}, {y});
    p.drop(own);
    saved.push_back(x = y);
  }
  p.module("");
  p.backward();
  for (std::size_t k = 4; k-- > 0;) {
    p.op("back", {saved[k]}, {});
    p.drop(saved[k]);
  }
  const Trace step = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  const RotorPass pass =
      rotor_pass(profile, ParameterGathers(step, profile.flow()), forward_chains_of(profile).front(), 100);
  ASSERT_FALSE(pass.units.empty());
  EXPECT_EQ(pass.beside, kBlock) << "x";
  for (const RotorStage& stage : pass.chain.stages) EXPECT_EQ(stage.gradient, 0);
}

// Forward has given the parameters back: re-runs read what backward gathers, or gather again.
TEST(Rotor, RunsAgainBehindShardedParameters) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const Trace step =
      gpt_step({.layers = 12, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096});
  const Trace sharded = apply_rewriters(step, {parse_policy("zero:stage=3,ranks=8")}, machine, *pricer);
  const Bytes all = simulated(sharded).tiers.front().peak_allocated;
  for (const int percent : {80, 60, 45}) {
    const Trace after = carried_out(sharded, planned(sharded, all * percent / 100, 500));
    EXPECT_GT(count(after, Phase::recompute), 0u) << percent;
    EXPECT_LE(simulated(after).tiers.front().peak_allocated, all * percent / 100) << percent;
  }
}

// In the memory that Chen's best plan takes, and half a percent that slots are rounded up by.
TEST(Rotor, TakesNoLongerThanChensSegments) {
  for (const bool flash : {false, true}) {
    GptShape shape{.layers = 12, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096};
    shape.flash_attention = flash;
    const Trace step = gpt_step(shape);
    for (const char* mode : {"chen:mode=greedy", "chen:mode=sqrt"}) {
      const SimulationResult chen = simulated(rewritten(step, mode));
      const Bytes peak = chen.tiers.front().peak_allocated * 201 / 200;
      const SimulationResult rotor = simulated(carried_out(step, planned(step, peak, 2000)));
      EXPECT_LE(rotor.tiers.front().peak_allocated, peak) << mode << (flash ? " flash" : "");
      EXPECT_LE(rotor.end, chen.end) << mode << (flash ? " flash" : "");
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
