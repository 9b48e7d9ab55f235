// Are storages numbered as saved-tensor hooks are shown them, and does a plan whose points are where hooks run become
// the moves that make these points? Steps written by hand; kernels of 1 us.
#include "policies/plan/hook_moves.h"

#include <gtest/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_realization.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Linear layers "a", "b", "c", "d", each of which saves its input, for a product in backward. What "b" reads is half as
// large as the others.
struct FourLayers {
  StepProgram p;
  std::vector<StorageId> x;
  std::vector<OpId> linear, product;
  OpId drop = kNoOp;
  FourLayers() {
    const StorageId w = p.preexisting(4096, StorageKind::parameter, "w.weight");
    x.push_back(p.make(4000, "x0"));
    p.op("load", {}, {x.back()});
    for (const char* module : {"a", "b", "c", "d"}) {
      p.module(module);
      const StorageId out = p.make(module[0] == 'a' ? 2000 : 4000, std::string("of ") + module);
      linear.push_back(p.op("linear", {x.back(), w}, {out}));
      p.saves({x.back(), w});
      x.push_back(out);
    }
    drop = p.drop(x.back());
    x.pop_back();
    p.backward();
    for (std::size_t i = x.size(); i-- > 0;) {
      p.module(std::string(1, static_cast<char>('a' + i)));
      const StorageId grad = p.make(10, "grad", StorageKind::workspace);
      product.push_back(p.op("mm", {x[i], w}, {grad}));
      p.drop(grad);
      p.drop(x[i]);
    }
    std::reverse(product.begin(), product.end());
  }
};

MemoryPlan to_host() {
  MemoryPlan plan;
  plan.tiers.push_back({"host", "", true, true, 2, TierClass::host});
  return plan;
}

StorageDecision sent(StorageId storage, PlanPoint copied, PlanPoint dropped, PlanPoint fetched) {
  StorageDecision d;
  d.storage = storage;
  d.copies.push_back({copied, 0});
  d.drops.push_back({dropped});
  d.fetches.push_back({fetched, 0});
  return d;
}

PlanRealization named(const MemoryPlan& plan, const Trace& trace) {
  const Dataflow flow(trace);
  EXPECT_EQ(check_plan(plan, trace, flow), std::vector<std::string>{});
  return realization_of(plan, trace, flow);
}

TEST(HookMoves, AreNumberedInTheOrderOfSavesAndSayWhenMemoryGoesAndComesBack) {
  FourLayers step;
  const auto& [p, x, linear, product, drop] = step;
  const Trace trace = std::move(step.p).finish();
  MemoryPlan plan = to_host();
  // x0 leaves as "a" saves it, goes as "c" saves its input, and comes back with the node of "b"; the input of "b" goes
  // at the end of forward and comes back on demand; that of "c" goes with its last use, as backward begins it comes
  // back.
  plan.storages.push_back(sent(x[0], {linear[0], false}, {linear[2], false}, {product[1], false}));
  plan.storages.push_back(sent(x[1], {linear[1], false}, {linear[3], true}, {product[1], false}));
  plan.storages.push_back(sent(x[2], {linear[2], false}, {linear[2], true}, {product[3], false}));
  const PlanRealization all = named(plan, trace);
  EXPECT_TRUE(all.unnamed.empty()) << all.unnamed.front().reason;
  ASSERT_EQ(all.offload.size(), 1u);
  const NamedOffload& offload = all.offload.front();
  EXPECT_EQ(offload.count_min_bytes, 2000);
  const std::vector<HookMove> moves = {{0, 4000, {"", "aten::load", {0}}, 2, 1},
                                       {1, 2000, {"a", "aten::linear", {0}}, HookMove::kEnd, 1},
                                       {2, 4000, {"b", "aten::linear", {0}}, 3, HookMove::kEnd}};
  EXPECT_EQ(offload.moves, moves);
  EXPECT_EQ(offload.fetch_order, (std::vector<std::uint64_t>{2, 0, 1}));
  EXPECT_EQ(all.parameters, (std::vector<NamedParameter>{{"w.weight", 4096}}));
}

// What is too small for any of the moves is not counted, so that hooks need not look at it.
TEST(HookMoves, CountNoMoreThanTheyNeed) {
  FourLayers step;
  const auto& [p, x, linear, product, drop] = step;
  const Trace trace = std::move(step.p).finish();
  MemoryPlan plan = to_host();
  plan.storages.push_back(sent(x[2], {linear[2], false}, {linear[3], false}, {product[2], false}));
  const PlanRealization large = named(plan, trace);
  EXPECT_EQ(large.offload.front().count_min_bytes, 4000);
  EXPECT_EQ(large.offload.front().moves.front().number, 1u) << "the input of b is not counted";
  EXPECT_EQ(large.offload.front().moves.front().give_back, 2);
  // Its node is the only one that tells when the other comes back.
  plan.storages.front() = sent(x[0], {linear[0], false}, {linear[0], true}, {product[1], false});
  const PlanRealization small = named(plan, trace);
  EXPECT_EQ(small.offload.front().count_min_bytes, 2000);
  EXPECT_EQ(small.offload.front().moves.front().fetch, 1);
}

TEST(HookMoves, OfWhatMovesElsewhereHaveNoNumberAndSayWhy) {
  FourLayers step;
  const auto& [p, x, linear, product, drop] = step;
  const Trace trace = std::move(step.p).finish();
  const auto reason = [&](const StorageDecision& d) -> std::string {
    MemoryPlan plan = to_host();
    plan.storages.push_back(d);
    const PlanRealization all = named(plan, trace);
    EXPECT_TRUE(all.offload.front().moves.empty());
    return all.unnamed.size() == 1 ? all.unnamed.front().reason : "";
  };
  const std::string elsewhere =
      "It is copied, given up or fetched where no hook runs; memwall run --executable=torch "
      "moves that.";
  EXPECT_EQ(reason(sent(x[0], {linear[0], true}, {linear[2], false}, {product[1], false})), elsewhere) << "copied late";
  EXPECT_EQ(reason(sent(x[0], {linear[0], false}, {product[3], true}, {product[1], false})), elsewhere)
      << "dropped in backward";
  StorageDecision late = sent(x[0], {linear[0], false}, {linear[0], true}, {product[0], false});
  late.fetches.front().latest_safe = true;
  EXPECT_EQ(reason(late), elsewhere);
  StorageDecision twice = sent(x[0], {linear[0], false}, {linear[0], true}, {product[3], false});
  twice.drops.push_back({{product[2], true}});
  twice.fetches.push_back({{product[0], false}, 0});
  EXPECT_EQ(reason(twice), "It travels more than once.");
}

// The operator of "b" is run again for "c": what it makes is not counted, and what it starts from is asked for then.
TEST(HookMoves, OfAnOperatorThatIsRunAgainAreWhatItStartsFrom) {
  FourLayers step;
  const auto& [p, x, linear, product, drop] = step;
  const Trace trace = std::move(step.p).finish();
  MemoryPlan plan = to_host();
  StorageDecision again;
  again.storage = x[2];
  again.drops.push_back({{linear[2], true}});
  plan.storages.push_back(again);
  plan.reruns.push_back({{product[2], false}, {linear[1]}});
  plan.storages.push_back(sent(x[3], {linear[3], false}, {linear[3], true}, {product[3], false}));
  plan.storages.push_back(sent(x[1], {linear[1], false}, {linear[1], true}, {product[2], false}));
  const PlanRealization all = named(plan, trace);
  EXPECT_TRUE(all.unnamed.empty()) << all.unnamed.front().reason;
  ASSERT_EQ(all.runs_again.size(), 1u);
  EXPECT_EQ(all.runs_again.front().lazy, 0u);
  EXPECT_EQ(all.runs_again.front().unit, std::nullopt);
  EXPECT_EQ(all.runs_again.front().operators, (std::vector<NamedOperator>{{"b", "aten::linear"}}));
  ASSERT_EQ(all.offload.size(), 1u);
  ASSERT_EQ(all.offload.front().moves.size(), 2u);
  EXPECT_EQ(all.offload.front().moves[0].number, 1u) << "x0 is the first";
  EXPECT_EQ(all.offload.front().moves[0].fetch, 1) << "on demand";
  EXPECT_EQ(all.offload.front().moves[1].number, 2u) << "what is made again has none";
}

// "m" is run again as a whole: hooks around it are shown its input as it begins, and nothing of its inside; nor its
// result, which its last operator saves for itself, before "d" does.
TEST(HookMoves, OfAUnitThatIsRunAgainAreItsInputs) {
  StepProgram p;
  const StorageId w = p.preexisting(4096, StorageKind::parameter, "w.weight"), x = p.make(4000, "x");
  p.op("load", {}, {x});
  p.module("m.one");
  const StorageId h = p.make(4000, "h"), y = p.make(4000, "y"), z = p.make(4000, "z");
  const OpId one = p.op("linear", {x, w}, {h});
  p.saves({x, w});
  p.module("m.two");
  const OpId two = p.op("softmax", {h}, {y});
  p.saves({h});
  p.module("d");
  const OpId d = p.op("linear", {y, w}, {z});
  p.saves({y, w});
  p.drop(z);
  p.backward();
  const StorageId grad = p.make(10, "grad", StorageKind::workspace);
  p.module("d");
  const OpId back_d = p.op("mm", {y, w}, {grad});
  p.module("m.two");
  const OpId back_two = p.op("softmax_backward", {h}, {grad});
  p.module("m.one");
  p.op("mm", {x, w}, {grad});
  for (const StorageId s : {grad, h, y, x}) p.drop(s);
  const Trace trace = std::move(p).finish();
  MemoryPlan plan = to_host();
  StorageDecision again;
  again.storage = h;
  again.drops.push_back({{two, true}});
  plan.storages.push_back(again);
  plan.reruns.push_back({{back_two, false}, {one}});
  plan.storages.push_back(sent(x, {one, false}, {d, false}, {back_two, false}));
  plan.storages.push_back(sent(y, {d, false}, {d, true}, {back_d, false}));
  const PlanRealization all = named(plan, trace);
  EXPECT_TRUE(all.unnamed.empty()) << all.unnamed.front().reason;
  ASSERT_EQ(all.recompute.size(), 1u);
  EXPECT_EQ(all.recompute.front().units, (std::vector<std::vector<std::string>>{{"m"}}));
  EXPECT_EQ(all.runs_again.front().unit, 0u);
  const std::vector<HookMove> moves = {{0, 4000, {"", "aten::load", {0}}, 1, 0},
                                       {1, 4000, {"m.two", "aten::softmax", {0}}, HookMove::kEnd, 1}};
  EXPECT_EQ(all.offload.front().moves, moves);
}

// A gated unit "m" between "load" and "d", whose products stay while what is computed of them is run again.
struct GatedUnit {
  StepProgram p;
  StorageId x, g, y;
  OpId gate, silu, d, back_down, back_silu, back_d;
  MemoryPlan plan = to_host();
  GatedUnit() {
    const StorageId w = p.preexisting(4096, StorageKind::parameter, "w.weight");
    x = p.make(4000, "x"), g = p.make(4000, "g"), y = p.make(4000, "y");
    const StorageId s = p.make(4000, "s"), u = p.make(4000, "u"), h = p.make(4000, "h"), z = p.make(4000, "z");
    const auto product = [&](const char* module, StorageId in, StorageId out) {
      p.module(module);
      const OpId op = p.op("mm", {in, w}, {out});
      p.saves({in, w});
      return op;
    };
    p.op("load", {}, {x});
    gate = product("m.gate", x, g);
    p.module("m");
    silu = p.op("silu", {g}, {s});
    p.saves({g});
    product("m.up", x, u);
    p.module("m");
    const OpId mul = p.op("mul", {s, u}, {h});
    p.saves({s, u});
    const OpId down = product("m.down", h, y);
    d = product("d", y, z);
    p.drop(z);
    p.backward();
    const StorageId grad = p.make(10, "grad", StorageKind::workspace);
    const auto back = [&](const char* module, const char* name, const std::vector<StorageId>& read) {
      p.module(module);
      return p.op(name, read, {grad});
    };
    back_d = back("d", "mm", {y, w});
    back_down = back("m.down", "mm", {h, w});
    back("m", "mul_backward", {s, u});
    back("m.up", "mm", {x, w});
    back_silu = back("m", "silu_backward", {g});
    back("m.gate", "mm", {x, w});
    for (const StorageId made : {grad, x, g, s, u, h, y}) p.drop(made);
    for (const auto& [storage, last] : {std::pair(s, mul), std::pair(h, down)}) {
      StorageDecision again;
      again.storage = storage;
      again.drops.push_back({{last, true}});
      plan.storages.push_back(again);
    }
    plan.reruns.push_back({{back_down, false}, {silu, mul}});
    plan.storages.push_back(sent(y, {d, false}, {d, true}, {back_d, false}));
  }
};

// Selective checkpointing keeps what products make in a cache of its own: hooks around the unit are shown its input
// where the module begins, with the product that is not run again, and no result of the products.
TEST(HookMoves, OfAUnitThatKeepsResultsAreItsInputsAlone) {
  GatedUnit step;
  const PlanRealization all = named(step.plan, std::move(step.p).finish());
  EXPECT_TRUE(all.unnamed.empty()) << all.unnamed.front().reason;
  ASSERT_EQ(all.recompute.size(), 1u);
  EXPECT_EQ(all.recompute.front().units, (std::vector<std::vector<std::string>>{{"m"}}));
  EXPECT_EQ(all.recompute.front().save_operators, std::vector<std::string>{"aten::mm"});
  ASSERT_EQ(all.offload.size(), 1u);
  const std::vector<HookMove> moves = {{1, 4000, {"m.down", "aten::mm", {0}}, HookMove::kEnd, 1}};
  EXPECT_EQ(all.offload.front().moves, moves) << "x is number 0";
}

// What is in that cache cannot travel: where the plan sends a product's result, its readers are run again one by one.
TEST(HookMoves, OfAProductsResultAreNoneOfAUnit) {
  GatedUnit step;
  step.plan.storages.push_back(sent(step.g, {step.silu, false}, {step.silu, true}, {step.back_down, false}));
  const PlanRealization all = named(step.plan, std::move(step.p).finish());
  EXPECT_TRUE(all.unnamed.empty()) << all.unnamed.front().reason;
  EXPECT_TRUE(all.recompute.empty()) << "as a unit";
  ASSERT_EQ(all.lazy_operators.size(), 1u);
  EXPECT_EQ(all.lazy_operators.front().operators,
            (std::vector<NamedOperator>{{"m", "aten::silu"}, {"m", "aten::mul"}}));
  ASSERT_EQ(all.offload.size(), 1u);
  ASSERT_EQ(all.offload.front().moves.size(), 2u);
  EXPECT_EQ(all.offload.front().moves[0].made_by, (NamedOperator{"m.gate", "aten::mm", {0}}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
