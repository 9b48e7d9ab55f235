// Is the closed form the optimum of the recurrence, does a schedule run as many steps, and does the plan carry it out?
#include "policies/planners/revolve.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/gpt_trace.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kState = 4096;

// The recurrence: advance by m, reverse what is behind with one checkpoint less, then what is before.
class FewestSteps {
 public:
  std::uint64_t of(std::uint64_t n, std::uint64_t s) {
    if (n < 2) return 0;
    if (s == 0) return 1'000'000'000;
    if (const auto known = known_.find({n, s}); known != known_.end()) return known->second;
    std::uint64_t best = n * (n - 1) / 2;
    for (std::uint64_t m = 1; m < n && s > 1; ++m) best = std::min(best, m + of(n - m, s - 1) + of(m, s));
    return known_[{n, s}] = best;
  }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> known_;
};

TEST(Revolve, ClosedFormIsTheOptimumOfTheRecurrence) {
  FewestSteps fewest;
  for (std::uint64_t s = 1; s <= 9; ++s)
    for (std::uint64_t n = 0; n <= 70; ++n) EXPECT_EQ(revolve_reruns(n, s), fewest.of(n, s)) << n << " with " << s;
  EXPECT_EQ(revolve_reruns(10, 3), 15u) << "beta(3, 2) = 10: each step twice, less beta(4, 1) = 5";
}

// Walks a schedule: a forward step needs its state, which a slot holds or the step before has just made.
struct Walk {
  std::size_t advances = 0, most_slots = 0, turned = 0, most_repeats = 0;
  bool is_sound = true;
};

Walk walked(std::size_t n, std::size_t s) {
  Walk walk;
  const std::vector<RotorStep> steps = revolve_steps(0, n, s);
  std::map<std::size_t, std::size_t> repeats;
  std::set<std::size_t> held = {0};
  std::size_t newest = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t stage = steps[i].stage;
    if (steps[i].kind == RotorStep::Kind::backward) {
      walk.is_sound = walk.is_sound && stage + 1 + walk.turned++ == n;
      continue;
    }
    if (stage != newest) walk.is_sound = walk.is_sound && held.contains(stage);
    newest = stage + 1;
    if (steps[i].kind == RotorStep::Kind::forward_saving) continue;
    ++walk.advances;
    walk.most_repeats = std::max(walk.most_repeats, ++repeats[stage]);
    // Is it started from again, before it is made again? Then a slot holds it.
    held.erase(newest);
    for (std::size_t j = i + 2; j < steps.size(); ++j) {
      if (steps[j].kind == RotorStep::Kind::backward) continue;
      if (steps[j].stage == newest) held.insert(newest);
      if (steps[j].stage <= newest) break;
    }
    std::erase_if(held, [&](std::size_t k) { return k + walk.turned >= n; });
    walk.most_slots = std::max(walk.most_slots, held.size());
  }
  walk.is_sound = walk.is_sound && walk.turned == n;
  return walk;
}

TEST(Revolve, SchedulesKeepToTheirSlotsAndTakeTheFewestSteps) {
  for (std::size_t s = 1; s <= 7; ++s)
    for (std::size_t n = 1; n <= 60; ++n) {
      const Walk walk = walked(n, s);
      EXPECT_TRUE(walk.is_sound) << n << " with " << s;
      EXPECT_EQ(walk.advances, revolve_reruns(n, s)) << n << " with " << s;
      EXPECT_LE(walk.most_slots, s) << n << " with " << s;
    }
  // 35 = beta(3, 4) steps: none runs a fifth time.
  EXPECT_EQ(walked(35, 3).most_repeats, 4u);
}

// Equal layers, that make their output and two states more; backward of one reads these and what it started from.
Trace equal_layers(std::size_t n, std::size_t communicates = 1000) {
  StepProgram p;
  StorageId x = p.preexisting(kState, StorageKind::input, "x");
  std::vector<StorageId> inner, inputs;
  for (std::size_t k = 0; k < n; ++k) {
    p.module("layers." + std::to_string(k));
    inputs.push_back(x);
    inner.push_back(p.make(2 * kState, "inner"));
    const StorageId y = p.make(kState, "y");
    Op change;
    if (k == communicates) change.kind = OpKind::collective;
    p.op("layer", {x}, {inner[k], y}, change);
    x = y;
  }
  p.module("");
  p.op("loss", {x}, {});
  p.backward();
  p.drop(x);
  for (std::size_t k = n; k-- > 0;) {
    p.module("layers." + std::to_string(k));
    p.op("layer_backward", {inner[k], inputs[k]}, {});
    p.drop(inner[k]);
    if (k > 0) p.drop(inputs[k]);
  }
  p.module("");
  p.optimizer();
  p.op("update", {}, {});
  return std::move(p).finish();
}

TEST(Revolve, ThePlanRunsAsManyOpsAgainAndHoldsAsManyStates) {
  for (const std::size_t slots : {1u, 2u, 3u, 5u, 12u}) {
    const Trace step = equal_layers(12);
    const Trace after = rewritten(step, "revolve:slots=" + std::to_string(slots));
    EXPECT_EQ(count(after, Phase::recompute), revolve_reruns(12, slots)) << slots;
    expect_same_contents(step, after);
    EXPECT_EQ(races(after), std::vector<std::string>{});
    // x takes one slot. Beside the others lives one layer, with what it makes (3), and its input where no slot has it.
    EXPECT_LE(activation_peak(after), static_cast<Bytes>(slots - 1 + 3 + 1) * kState) << slots;
    EXPECT_GE(activation_peak(after), static_cast<Bytes>(slots - 1 + 3) * kState) << slots;
  }
}

TEST(Revolve, TakesTheMostCheckpointsWithinItsBudget) {
  const Machine machine = test_machine();
  const Trace step =
      gpt_step({.layers = 12, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096});
  const Bytes all = simulate(step, machine, {}).tiers.front().peak_reserved;
  Duration before{};
  for (const int percent : {100, 75, 60, 50}) {
    const Trace after = rewritten(step, "revolve:budget=" + std::to_string(all * percent / 100));
    ASSERT_FALSE(has_note(after, "no plan was found")) << percent;
    Machine smaller = machine;
    smaller.tiers.front().capacity = all * percent / 100;
    EXPECT_TRUE(simulate(after, smaller, {}).fits) << percent;
    EXPECT_GE(device_time(after, Phase::recompute), before) << percent;
    before = device_time(after, Phase::recompute);
    const Trace rotor = rewritten(step, "rotor:budget=" + std::to_string(all * percent / 100));
    EXPECT_LE(device_time(rotor, Phase::recompute), before) << percent;
  }
  EXPECT_GT(before, Duration{});
}

TEST(Revolve, LeavesAStepThatFitsAndSaysWhereNoPlanDoes) {
  const Trace step = equal_layers(600);  // 7.4 MB
  EXPECT_EQ(count(rewritten(step, "revolve"), Phase::recompute), 0u);
  EXPECT_TRUE(has_note(rewritten(step, "revolve:budget=3MB"), "ops of"));
  EXPECT_FALSE(has_note(rewritten(step, "revolve:budget=3MB"), "no plan was found"));
  const Trace large =
      gpt_step({.layers = 4, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 4096});
  EXPECT_TRUE(has_note(rewritten(large, "revolve:budget=2MiB"), "no plan was found"));
}

// The fourth of eight communicates: it is kept, the three before it and the four behind it are reversed by themselves.
TEST(Revolve, KeepsUnitsThatMayNotRunAgain) {
  const Trace step = equal_layers(8, 3);
  const Trace after = rewritten(step, "revolve:slots=1");
  std::size_t again = 0;
  for (const Op& op : after.ops) again += op.phase == Phase::recompute && op.kind == OpKind::collective ? 1 : 0;
  EXPECT_EQ(again, 0u);
  // Of four with one slot 6; of three 3, and the last of them, whose backward is not next behind the program's forward.
  EXPECT_EQ(count(after, Phase::recompute), 6u + 3u + 1u);
  EXPECT_EQ(count(rewritten(equal_layers(1), "revolve:slots=1"), Phase::recompute), 0u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
