// Does the cut keep what costs least, and is the rest made again? On steps whose cut is known by hand, and against all
// choices that there are.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "policies/plan/plan_check.h"
#include "policies/planners/minimum_cut.h"
#include "policies/planners/planner.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kBlock = 1024;

// A gated layer as autograd keeps it: a = x w, b = silu(a), c = a b, y = c w2. Backward of the products reads a, b, c.
struct GatedLayer {
  explicit GatedLayer(const std::string& activation = "silu") {
    StepProgram p;
    const StorageId x = p.preexisting(kBlock, StorageKind::input, "x"),
                    w = p.preexisting(kBlock, StorageKind::parameter, "w");
    a = p.make(kBlock, "a");
    p.op("mm", {x, w}, {a});
    b = p.make(kBlock, "b");
    p.op(activation, {a}, {b});
    c = p.make(kBlock, "c");
    p.op("mul", {a, b}, {c});
    const StorageId y = p.make(kBlock, "y");
    p.op("mm", {c, w}, {y});
    p.drop(y);
    p.backward();
    p.op("mm", {c, w}, {});
    p.drop(c);
    p.op("mul", {a, b}, {});
    p.drop(b);
    p.op("silu_backward", {a}, {});
    p.drop(a);
    p.optimizer();
    p.op("update", {w}, {w});
    trace = std::move(p).finish();
  }
  StorageId a = 0, b = 0, c = 0;
  Trace trace;
};

MemoryPlan plan_of(const Trace& step, const std::string& policy) {
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  MemoryPlan plan = planner_named(policy)(profile, {MiB(1)}, machine, *test_pricer(machine)).best;
  EXPECT_EQ(check_plan(plan, step, profile.flow()), std::vector<std::string>{});
  return plan;
}

std::vector<StorageId> dropped(const MemoryPlan& plan) {
  std::vector<StorageId> all;
  for (const StorageDecision& d : plan.storages) all.push_back(d.storage);
  std::sort(all.begin(), all.end());
  return all;
}

using Operators = std::vector<std::string>;

TEST(Mincut, WhatIsMergedWithItsReadersIsMadeAgain) {
  const GatedLayer step;
  EXPECT_EQ(dropped(plan_of(step.trace, "mincut")), std::vector<StorageId>{step.b})
      << "a product of backward reads c, and is not merged with what makes it";
  const Trace after = rewritten(step.trace, "mincut");
  EXPECT_EQ(rerun_operators(after), Operators{"aten::silu"});
  expect_same_contents(step.trace, after);
}

TEST(Mincut, AggressiveKeepsProductsAlone) {
  const GatedLayer step;
  EXPECT_EQ(dropped(plan_of(step.trace, "mincut:aggressive=1")), (std::vector<StorageId>{step.b, step.c}));
  EXPECT_EQ(rerun_operators(rewritten(step.trace, "mincut:aggressive=1")), (Operators{"aten::silu", "aten::mul"}))
      << "c is wanted first, and b, made on the way, stays for its own reader";
}

TEST(Mincut, RandomNumbersAreNotDrawnAgain) {
  const GatedLayer step("native_dropout");
  EXPECT_TRUE(dropped(plan_of(step.trace, "mincut")).empty());
  EXPECT_EQ(dropped(plan_of(step.trace, "mincut:aggressive=1")), std::vector<StorageId>{step.c});
}

TEST(Mincut, AnOpOutsideOfTheListIsMadeAgainByAggressiveAlone) {
  const GatedLayer step("cumsum");
  EXPECT_TRUE(dropped(plan_of(step.trace, "mincut")).empty());
  EXPECT_EQ(dropped(plan_of(step.trace, "mincut:aggressive=1")), (std::vector<StorageId>{step.b, step.c}));
}

TEST(Mincut, KeepsWhatForwardGivesBackWhereThatIsSmaller) {
  StepProgram p;
  const StorageId w = p.preexisting(kBlock, StorageKind::parameter, "w");
  const StorageId small = p.make(kBlock, "small");
  p.op("mm", {w}, {small});
  const StorageId large = p.make(4 * kBlock, "large");
  p.op("_to_copy", {small}, {large});
  p.drop(small);
  p.op("sigmoid", {large}, {});
  p.backward();
  p.op("mul", {large}, {});
  p.drop(large);
  p.optimizer();
  const Trace step = std::move(p).finish();
  const MemoryPlan plan = plan_of(step, "mincut");
  EXPECT_EQ(dropped(plan), std::vector<StorageId>{large});
  ASSERT_EQ(plan.keeps.size(), 1u);
  EXPECT_EQ(plan.keeps.front().storage, small);
  EXPECT_LT(activation_peak(rewritten(step, "mincut")), activation_peak(step) + 1);
}

// t is given back in forward, and two re-runs start from it: the first makes it, and it stays for the second.
TEST(Mincut, WhatTwoRerunsStartFromIsMadeOnce) {
  StepProgram p;
  const StorageId w = p.preexisting(kBlock, StorageKind::parameter, "w");
  const auto next = [&](const std::string& op, StorageId read, Bytes bytes) {
    const StorageId made = p.make(bytes, op);
    p.op(op, {read}, {made});
    return made;
  };
  const StorageId a = next("mm", w, kBlock), t = next("_to_copy", a, 4 * kBlock);
  const StorageId u = next("silu", t, 4 * kBlock), v = next("sigmoid", t, 4 * kBlock);
  p.drop(t);
  p.backward();
  for (const StorageId read : {v, u}) {
    p.op("mul", {read}, {});
    p.drop(read);
  }
  p.op("mm", {a}, {});
  p.drop(a);
  p.optimizer();
  const Trace step = std::move(p).finish(), after = rewritten(step, "mincut");
  EXPECT_EQ(rerun_operators(after), (Operators{"aten::_to_copy", "aten::sigmoid", "aten::silu"}));
  expect_same_contents(step, after);
}

TEST(Mincut, WithoutAnythingToDropTheStepStays) {
  StepProgram p;
  const StorageId w = p.preexisting(kBlock, StorageKind::parameter, "w");
  const StorageId a = p.make(kBlock, "a");
  p.op("mm", {w}, {a});
  p.backward();
  p.op("mm", {a}, {});
  p.drop(a);
  p.optimizer();
  const Trace step = std::move(p).finish(), after = rewritten(step, "mincut:aggressive=1");
  EXPECT_EQ(after.ops.size(), step.ops.size());
  EXPECT_TRUE(has_note(after, "nothing leaves the device"));
}

// A chain of additions behind a product: 0 is the product, 1 to 150 are additions.
TEST(Mincut, LongChainsAreCutAtTheHundredthOp) {
  StepProgram p;
  const StorageId w = p.preexisting(kBlock, StorageKind::parameter, "w");
  std::vector<StorageId> made = {p.make(kBlock, "a")};
  p.op("mm", {w}, {made.back()});
  for (int i = 0; i < 150; ++i) {
    const StorageId next = p.make(kBlock, "a");
    p.op("add", {made.back()}, {next});
    made.push_back(next);
  }
  p.backward();
  for (; !made.empty(); made.pop_back()) {
    p.op("add", {made.back()}, {});
    p.drop(made.back());
  }
  p.optimizer();
  const Trace step = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  const ForwardGraph graph = forward_graph(profile, passes(step).front());
  std::vector<std::size_t> banned;
  const ValueCut cut = minimum_cut(profile, graph, {});
  for (std::size_t i = 0; i < cut.banned.size(); ++i)
    if (cut.banned[i]) banned.push_back(i);
  EXPECT_EQ(banned, (std::vector<std::size_t>{0, 102})) << "the first behind 100 that follow addition 1";
  EXPECT_EQ(dropped(plan_of(step, "mincut")).size(), 149u);
}

// u is read by the addition right behind it, and by one behind a product that is between.
TEST(Mincut, ReadersBehindWhatIsNotMergedAreNotMadeAgain) {
  StepProgram p;
  const StorageId w = p.preexisting(kBlock, StorageKind::parameter, "w");
  const auto next = [&](const std::string& op, const std::vector<StorageId>& reads) {
    const StorageId made = p.make(kBlock, op);
    p.op(op, reads, {made});
    return made;
  };
  const StorageId a = next("mm", {w}), u = next("add", {a}), near = next("add", {u}), m = next("mm", {near, w});
  const StorageId far = next("mul", {u, m});
  p.backward();
  p.op("mul", {far}, {});
  for (const StorageId s : {a, u, near, m, far}) p.drop(s);
  p.optimizer();
  const Trace step = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(step, machine);
  const ForwardGraph graph = forward_graph(profile, passes(step).front());
  EXPECT_EQ(minimum_cut(profile, graph, {}).banned, (std::vector<bool>{true, false, false, true, true}));
  BanRules near_and_far;
  near_and_far.used_far_apart = false;
  EXPECT_EQ(minimum_cut(profile, graph, near_and_far).banned, (std::vector<bool>{true, false, false, true, false}));
}

// --- against all choices

struct RandomGraph {
  RandomGraph(std::mt19937& random, std::size_t ops) {
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const char* names[] = {"add", "mul", "mm", "native_dropout"};
    StepProgram p;
    const StorageId w = p.preexisting(kBlock, StorageKind::parameter, "w");
    std::vector<StorageId> made;
    for (std::size_t i = 0; i < ops; ++i) {
      std::vector<StorageId> reads = {w};
      for (std::size_t r = below(3); r-- > 0 && !made.empty();) reads.push_back(made[below(made.size())]);
      made.push_back(p.make(512 * static_cast<Bytes>(1 + below(9)), "v"));
      p.op(names[below(4)], reads, {made.back()});
    }
    p.backward();
    for (const StorageId s : made) {
      if (below(2) == 0) p.op(names[below(3)], {s}, {});
      p.drop(s);
    }
    p.optimizer();
    trace = std::move(p).finish();
  }
  Trace trace;
};

double weight(const Trace& t, const ForwardGraph& g, std::size_t v) {
  // Ops between it and backward, by trying all ways.
  const std::function<double(std::size_t)> distance = [&](std::size_t value) {
    double least = g.values[value].backward.empty() ? 100 : 1;
    for (const std::size_t reader : g.values[value].readers)
      for (const std::size_t next : g.ops[reader].makes) least = std::min(least, 1 + distance(next));
    return least;
  };
  const auto joins = [&](OpId id) {
    const std::string& name = t.strings[t.ops[id].operator_name];
    return name != "aten::mm";
  };
  bool merged = joins(g.ops[g.values[v].maker].id);
  for (const std::size_t reader : g.values[v].readers) merged = merged && joins(g.ops[reader].id);
  for (const OpId reader : g.values[v].backward) merged = merged && joins(reader);
  if (g.values[v].readers.empty() && g.values[v].backward.empty()) merged = true;
  const bool anyone = !g.values[v].readers.empty() || !g.values[v].backward.empty();
  return std::floor(static_cast<double>(g.values[v].bytes) * std::pow(1.1, distance(v))) * (!anyone || merged ? 2 : 1);
}

// Can backward have all that it reads if `saved` alone is kept?
bool suffices(const ForwardGraph& g, const std::vector<bool>& banned, const std::vector<bool>& saved) {
  std::vector<bool> there(g.values.size());
  for (std::size_t v = 0; v < g.values.size(); ++v) {
    const auto& reads = g.ops[g.values[v].maker].reads;
    there[v] = saved[v] || (!banned[g.values[v].maker] &&
                            std::all_of(reads.begin(), reads.end(), [&](std::size_t r) { return there[r]; }));
    if (!there[v] && !g.values[v].backward.empty()) return false;
  }
  return true;
}

TEST(Mincut, NoOtherChoiceWeighsLess) {
  std::mt19937 random(7);
  const Machine machine = test_machine();
  std::size_t made_again = 0;
  for (int round = 0; round < 60; ++round) {
    const RandomGraph step(random, 4 + random() % 8);
    const StepProfile profile(step.trace, machine);
    const ForwardGraph graph = forward_graph(profile, passes(step.trace).front());
    BanRules rules;
    rules.not_on_list = rules.materialized_backward = rules.used_far_apart = round % 2 == 0;
    const ValueCut cut = minimum_cut(profile, graph, rules);
    ASSERT_TRUE(suffices(graph, cut.banned, cut.saved));
    double found = 0, least = 1e300;
    std::vector<double> weights;
    for (std::size_t v = 0; v < graph.values.size(); ++v) weights.push_back(weight(step.trace, graph, v));
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      if (cut.saved[v]) found += weights[v];
      made_again += !cut.saved[v] && !graph.values[v].backward.empty() ? 1 : 0;
    }
    for (std::size_t choice = 0; choice < std::size_t{1} << graph.values.size(); ++choice) {
      std::vector<bool> saved;
      double sum = 0;
      for (std::size_t v = 0; v < graph.values.size(); ++v) {
        saved.push_back((choice >> v & 1) != 0);
        if (saved.back()) sum += weights[v];
      }
      if (sum < least && suffices(graph, cut.banned, saved)) least = sum;
    }
    EXPECT_EQ(found, least) << "round " << round;
    plan_of(step.trace, round % 2 == 0 ? "mincut" : "mincut:aggressive=1");
  }
  EXPECT_GT(made_again, 20u) << "else nothing was asked";
}

TEST(Mincut, ANetworkNeedsLessMemoryAndComputesTheSame) {
  const Trace step = sample_gpt_124m();
  for (const char* policy : {"mincut", "mincut:aggressive=1"}) expect_same_contents(step, rewritten(step, policy));
  EXPECT_LT(activation_peak(rewritten(step, "mincut:aggressive=1")), activation_peak(step));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
