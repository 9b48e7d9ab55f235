// Which ops become one kernel, what that kernel reads and writes, and what must stay apart.
#include "policies/fusion/fusion_plan.h"

#include <gtest/gtest.h>

#include "policies/fusion/fused_trace.h"
#include "policies/fusion/fusion_space.h"
#include "policies/trace/live_profile.h"
#include "tests/support/fusion_program.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kN = FusionProgram::kElements;
constexpr Bytes kMegabytes = 4 * kN;

std::vector<const Op*> kernels(const Trace& t) {
  std::vector<const Op*> found;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::kernel) found.push_back(&op);
  return found;
}

std::string names(const Trace& t) {
  std::string all;
  for (const Op* op : kernels(t)) all += (all.empty() ? "" : " ") + t.strings[op->operator_name];
  return all;
}

// "r0 w3": the uses of an op.
std::string uses(const Trace& t, const Op& op) {
  std::string text;
  for (const Use& use : t.uses_of(op))
    text +=
        (text.empty() ? "" : " ") + std::string(use.access == Access::read ? "r" : "w") + std::to_string(use.storage);
  return text;
}

// x, y -> mul -> a -> add(y) -> b -> relu -> c; a and b are temporaries, c stays.
struct Chain {
  FusionProgram p;
  StorageId x = p.input("x"), y = p.input("y"), a = 0, b = 0, c = 0;

  void mul() {
    a = p.tensor("a");
    p.elementwise("mul", {x, y}, {a});
  }
  void add() {
    b = p.tensor("b");
    p.elementwise("add", {a, y}, {b});
    p.drop(a);
  }
  void relu() {
    c = p.tensor("c");
    p.elementwise("relu", {b}, {c});
    p.drop(b);
  }
};

TEST(Fusion, AChainReadsItsOuterInputsAndWritesItsOuterOutputs) {
  Chain chain;
  chain.mul(), chain.add(), chain.relu();
  const Trace before = std::move(chain.p).finish(), after = rewritten(before, "fusion");
  ASSERT_EQ(names(after), "fused(mul,add,relu)");
  const Op& op = *kernels(after)[0];
  EXPECT_EQ(uses(after, op), "r0 r1 w4");
  EXPECT_EQ(op.bytes, 3 * kMegabytes);  // x, y, c, of 3 + 3 + 2 tensors before
  EXPECT_EQ(op.flops, 3e6);
  EXPECT_EQ(op.kernels, 1);
  EXPECT_EQ(op.framework_calls, 0);
  EXPECT_EQ(op.dispatch, Dispatch::compiled);
  EXPECT_EQ(op.origin, Origin::modelled);
  EXPECT_FALSE(op.added);
  EXPECT_EQ(op.operator_class, OperatorClass::elementwise);
  EXPECT_EQ(op.duration, microseconds(12));  // 12 MB at 1 TB/s
  EXPECT_EQ(after.shapes[op.shape], Shape{kN});
  // a and b are neither allocated nor freed any more: one alloc, of c, is left.
  EXPECT_EQ(std::count_if(after.ops.begin(), after.ops.end(), [](const Op& o) { return o.kind == OpKind::alloc; }), 1);
  EXPECT_EQ(std::count_if(after.ops.begin(), after.ops.end(), [](const Op& o) { return o.kind == OpKind::free; }), 0);
  EXPECT_EQ(activation_peak(before), 2 * kMegabytes);
  EXPECT_EQ(activation_peak(after), kMegabytes);
  EXPECT_TRUE(has_note(after, "3 ops became 1; 2 intermediates of 8.000 MB never reach memory"));
}

// What scales a tensor by its largest element casts it up by itself: the narrow tensor is what lies in memory.
TEST(Fusion, ACastToAWiderTypeIsTheReadersWhereThatWaitsForTheWhole) {
  for (const bool waits : {true, false}) {
    FusionProgram p;
    const StorageId x = p.input("x"), narrow = p.tensor("narrow", kN, 2), most = p.tensor("most", 1);
    p.elementwise("relu", {x}, {narrow});
    p.work("max", OperatorClass::reduction, {1, kN}, {narrow}, {most});
    const StorageId wide = p.tensor("wide"), scaled = p.tensor("scaled", kN, 1);
    p.elementwise("_to_copy", {narrow}, {wide});
    p.elementwise("mul", waits ? std::vector<StorageId>{wide, most} : std::vector<StorageId>{wide}, {scaled});
    for (const StorageId s : {narrow, most, wide}) p.drop(s);
    const std::string found = names(rewritten(std::move(p).finish(), "fusion"));
    EXPECT_EQ(found, waits ? "fused(relu,max) fused(to_copy,mul)" : "fused(relu,max,to_copy,mul)");
  }
}

TEST(Fusion, OperatorsOfOtherLibrariesStayApart) {
  Chain chain;
  chain.mul(), chain.add(), chain.relu();
  Trace before = std::move(chain.p).finish();
  for (Op& op : before.ops)
    if (op.kind == OpKind::kernel && before.strings[op.operator_name] == "aten::relu")
      op.operator_name = before.strings.intern("symm_mem::fused_matmul_reduce_scatter");
  EXPECT_EQ(names(rewritten(before, "fusion")), "fused(mul,add) symm_mem::fused_matmul_reduce_scatter");
}

TEST(Fusion, MeasuredTimesAreScaledByWhatTheModelSaysOfBoth) {
  Chain chain;
  chain.mul(), chain.add(), chain.relu();
  Trace before = std::move(chain.p).finish();
  for (Op& op : before.ops)
    if (op.kind == OpKind::kernel) op.origin = Origin::measured, op.duration *= 2;
  const Trace after = rewritten(before, "fusion");
  EXPECT_EQ(kernels(after)[0]->duration, microseconds(24));
  EXPECT_EQ(kernels(after)[0]->origin, Origin::transferred);
}

TEST(Fusion, TheHostPaysForOneCompiledCall) {
  Chain chain;
  chain.mul(), chain.add(), chain.relu();
  Trace before = std::move(chain.p).finish();
  for (Op& op : before.ops)
    if (op.kind == OpKind::kernel) op.host_gap = microseconds(50), op.host_cost = microseconds(9);
  Machine machine = test_machine();
  machine.host.compiled_call = microseconds(3);
  machine.host.launch = microseconds(2);
  const auto pricer = test_pricer(machine);
  const auto call = [&] {
    const Trace after = with_fusion(before, plan_fusion(before, {}), machine.host, *pricer);
    return kernels(after).at(0)->host_gap + kernels(after).at(0)->host_cost;
  };
  EXPECT_EQ(call(), microseconds(5));
  for (Op& op : before.ops) op.origin = Origin::measured;
  EXPECT_EQ(call(), microseconds(59)) << "as the last member was measured";
}

TEST(Fusion, WhatBackwardNeedsStays) {
  Chain chain;
  FusionProgram& p = chain.p;
  chain.mul(), chain.add();
  chain.c = p.tensor("c");
  p.elementwise("relu", {chain.b}, {chain.c});
  p.backward();
  const StorageId gradient = p.tensor("gradient");
  p.elementwise("relu_backward", {chain.c, chain.b}, {gradient});
  p.drop(chain.b);
  const Trace after = rewritten(std::move(p).finish(), "fusion");
  ASSERT_EQ(names(after), "fused(mul,add,relu) aten::relu_backward");
  EXPECT_EQ(uses(after, *kernels(after)[0]), "r0 r1 w3 w4");
  EXPECT_EQ(kernels(after)[0]->bytes, 4 * kMegabytes);
}

TEST(Fusion, AnInPlaceOpWritesWhatItOverwrites) {
  FusionProgram p;
  const StorageId x = p.input("x"), a = p.tensor("a");
  p.elementwise("mul", {x}, {a});
  p.elementwise("add_", {a, x}, {a});
  p.elementwise("add_", {a, x}, {x});
  const Trace after = rewritten(std::move(p).finish(), "fusion");
  ASSERT_EQ(names(after), "fused(mul,add,add)");
  EXPECT_EQ(uses(after, *kernels(after)[0]), "r0 w0 w1");
  EXPECT_EQ(kernels(after)[0]->bytes, 3 * kMegabytes);
}

TEST(Fusion, WhatAnotherOpNeedsInBetweenEndsTheChain) {
  Chain chain;
  chain.mul();
  const StorageId product = chain.p.tensor("product");
  chain.p.work("mm", OperatorClass::gemm, {1, 1000, 1000, 1000}, {chain.a, chain.y}, {product});
  chain.add(), chain.relu();
  const Trace after = rewritten(std::move(chain.p).finish(), "fusion");
  EXPECT_EQ(names(after), "aten::mul aten::mm fused(add,relu)");
}

TEST(Fusion, WhatIsIndependentInBetweenIsMovedPast) {
  Chain chain;
  chain.mul();
  const StorageId product = chain.p.tensor("product");
  chain.p.work("mm", OperatorClass::gemm, {1, 1000, 1000, 1000}, {chain.x, chain.y}, {product});
  chain.add(), chain.relu();
  const Trace after = rewritten(std::move(chain.p).finish(), "fusion");
  EXPECT_EQ(names(after), "aten::mm fused(mul,add,relu)");
}

TEST(Fusion, AnOpThatOverwritesAnOperandEndsTheChain) {
  Chain chain;
  chain.mul();
  chain.p.work("mm", OperatorClass::gemm, {1, 1000, 1000, 1000}, {chain.y}, {chain.x});
  chain.add();
  const Trace after = rewritten(std::move(chain.p).finish(), "fusion");
  EXPECT_EQ(names(after), "aten::mul aten::mm aten::add");
}

// What stands between mul and add keeps them apart, or does not.
template <class Between>
std::string with_between(Between between) {
  Chain chain;
  chain.mul();
  between(chain);
  chain.add();
  const Trace before = std::move(chain.p).finish();
  EXPECT_EQ(check(before), std::vector<std::string>{});
  return names(rewritten(before, "fusion"));
}

TEST(Fusion, NothingIsMergedAcrossSynchronizationsEventsMarksAndGraphs) {
  const std::string apart = "aten::mul aten::add", merged = "fused(mul,add)";
  const auto put = [](OpKind kind, WaitFor wait = WaitFor::nothing, std::uint16_t stream = 0) {
    return [=](Chain& chain) {
      if (stream == 1) chain.p.builder().add_stream("side", StreamRole::compute);
      Op op = chain.p.here(kind);
      op.stream = stream;
      op.wait_for = wait;
      if (kind == OpKind::event_record || kind == OpKind::event_wait) op.target = chain.p.builder().add_event();
      if (kind == OpKind::event_wait) {
        Op record = op;
        record.kind = OpKind::event_record;
        record.stream = 1 - stream;
        if (stream == 0) chain.p.builder().add_stream("side", StreamRole::compute);
        chain.p.builder().append(record);
      }
      chain.p.builder().append(op);
    };
  };
  EXPECT_EQ(with_between([](Chain&) {}), merged);
  EXPECT_EQ(with_between(put(OpKind::synchronize, WaitFor::device)), apart);
  EXPECT_EQ(with_between(put(OpKind::synchronize, WaitFor::stream)), apart);
  EXPECT_EQ(with_between(put(OpKind::mark)), apart);
  EXPECT_EQ(with_between(put(OpKind::event_record)), apart);
  EXPECT_EQ(with_between(put(OpKind::event_wait)), apart);
  EXPECT_EQ(with_between(put(OpKind::graph_launch)), apart);
  EXPECT_EQ(with_between(put(OpKind::event_record, WaitFor::nothing, 1)), merged) << "of another stream";
  EXPECT_EQ(with_between([](Chain& chain) { chain.p.backward(); }), apart) << "another phase and thread";
  EXPECT_EQ(with_between([](Chain& chain) {
              chain.p.builder().add_stream("side", StreamRole::compute);
              chain.p.on_stream(1);
            }),
            apart)
      << "another stream";
}

TEST(Fusion, AnotherNumberOfElementsOrNoShapeKeepsApart) {
  const auto with_second = [](std::int64_t elements, std::int64_t of_storage) {
    FusionProgram p;
    const StorageId x = p.input("x"), a = p.tensor("a", of_storage), b = p.tensor("b", elements);
    p.elementwise("mul", {x}, {a});
    if (elements > 0)
      p.elementwise("add", {a}, {b}, elements);
    else
      p.op("add", {a}, {b});
    return names(rewritten(std::move(p).finish(), "fusion"));
  };
  EXPECT_EQ(with_second(kN, kN), "fused(mul,add)");
  EXPECT_EQ(with_second(kN / 2, kN), "aten::mul aten::add") << "it reads but a half";
  EXPECT_EQ(with_second(kN, 2 * kN), "aten::mul aten::add") << "mul writes but a half";
  EXPECT_EQ(with_second(0, kN), "aten::mul aten::add") << "the second has no shape";
}

TEST(Fusion, ABroadcastOperandIsReadOnce) {
  FusionProgram p;
  const StorageId x = p.input("x"), bias = p.input("bias", 1000), a = p.tensor("a"), b = p.tensor("b");
  p.elementwise("add", {x, bias}, {a});
  p.elementwise("mul", {a, bias}, {b});
  p.drop(a);
  const Trace after = rewritten(std::move(p).finish(), "fusion");
  ASSERT_EQ(names(after), "fused(add,mul)");
  EXPECT_EQ(kernels(after)[0]->bytes, 2 * kMegabytes + 4000);
}

// RMSNorm written out, as Hugging Face's Llama has it: rows of `width`, one factor per row.
Trace written_out_norm() {
  FusionProgram p;
  constexpr std::int64_t kRows = 1000, kWidth = 1000;
  const StorageId x = p.input("x"), weight = p.input("weight", kWidth);
  const StorageId square = p.tensor("square");
  p.elementwise("pow", {x}, {square});
  const StorageId mean = p.tensor("mean", kRows);
  p.work("mean", OperatorClass::reduction, {kRows, kWidth}, {square}, {mean});
  p.drop(square);
  const StorageId shifted = p.tensor("shifted", kRows);
  p.elementwise("add", {mean}, {shifted}, kRows);
  p.drop(mean);
  const StorageId root = p.tensor("root", kRows);
  p.elementwise("rsqrt", {shifted}, {root}, kRows);
  p.drop(shifted);
  const StorageId scaled = p.tensor("scaled");
  p.elementwise("mul", {x, root}, {scaled});
  const StorageId result = p.tensor("result");
  p.elementwise("mul", {scaled, weight}, {result});
  p.drop(scaled);
  return std::move(p).finish();
}

TEST(Fusion, ANormWrittenOutBecomesOneKernel) {
  const Trace after = rewritten(written_out_norm(), "fusion");
  ASSERT_EQ(names(after), "fused(pow,mean,add,rsqrt,mul,mul)");
  const Op& op = *kernels(after)[0];
  EXPECT_EQ(op.operator_class, OperatorClass::reduction);
  EXPECT_EQ(after.shapes[op.shape], (Shape{1000, 1000}));
  // x once, the weight, the factors (nothing frees them: they are an output), the result.
  EXPECT_EQ(op.bytes, 2 * kMegabytes + 4000 + 4000);
  EXPECT_EQ(names(rewritten(written_out_norm(), "fusion:what=elementwise")),
            "aten::pow aten::mean fused(add,rsqrt) fused(mul,mul)");
}

// The gradient of a norm's weight sums over tokens, that of its input over features: other loops, even where there are
// as many of the one as of the other.
TEST(Fusion, SumsOverDifferentAxesOfASquareStayApart) {
  const auto program = [](const Shape& first, const Shape& second) {
    FusionProgram p;
    const StorageId x = p.input("x"), a = p.tensor("a"), b = p.tensor("b", 1000), c = p.tensor("c", 1000);
    p.elementwise("mul", {x}, {a});
    p.work("sum", OperatorClass::reduction, {1000, 1000}, {a}, {b});
    p.work("sum", OperatorClass::reduction, {1000, 1000}, {a}, {c});
    Trace t = std::move(p).finish();
    t.storages[a].shape = t.shapes.intern({1, 1000, 1000});
    t.storages[b].shape = t.shapes.intern(first);
    t.storages[c].shape = t.shapes.intern(second);
    return names(rewritten(t, "fusion"));
  };
  const std::string one = "fused(mul,sum,sum)", two = "fused(mul,sum) aten::sum";
  EXPECT_EQ(program({1, 1000, 1}, {1, 1000, 1}), one);
  EXPECT_EQ(program({1, 1, 1000}, {1, 1, 1000}), one);
  EXPECT_EQ(program({1, 1000, 1}, {1, 1, 1000}), two);
  EXPECT_EQ(program({1000}, {1, 1, 1000}), two) << "of the first it cannot be told";
}

TEST(Fusion, OfNormsOnlyLeavesOtherChainsAlone) {
  Chain chain;
  chain.mul(), chain.add(), chain.relu();
  EXPECT_EQ(names(rewritten(std::move(chain.p).finish(), "fusion:what=norms")), "aten::mul aten::add aten::relu");
  EXPECT_EQ(names(rewritten(written_out_norm(), "fusion:what=norms")), "fused(pow,mean,add,rsqrt,mul,mul)");
}

TEST(Fusion, ASumOfEverythingEndsTheKernelForWhatNeedsIt) {
  FusionProgram p;
  const StorageId x = p.input("x"), sum = p.tensor("sum", 1), y = p.tensor("y");
  p.work("sum", OperatorClass::reduction, {1, kN}, {x}, {sum});
  p.elementwise("div", {x, sum}, {y});
  EXPECT_EQ(names(rewritten(std::move(p).finish(), "fusion")), "aten::sum aten::div");
}

TEST(Fusion, AProductTakesInItsEpilogueWhereAsked) {
  const auto program = [] {
    FusionProgram p;
    const StorageId x = p.input("x"), y = p.input("y"), product = p.tensor("product"), z = p.tensor("z");
    p.work("mm", OperatorClass::gemm, {1, 1000, 1000, 500}, {x, y}, {product});
    p.elementwise("relu", {product}, {z});
    p.drop(product);
    return std::move(p).finish();
  };
  EXPECT_EQ(names(rewritten(program(), "fusion")), "aten::mm aten::relu");
  const Trace after = rewritten(program(), "fusion:epilogues=gemm");
  ASSERT_EQ(names(after), "fused(mm,relu)");
  EXPECT_EQ(kernels(after)[0]->operator_class, OperatorClass::gemm);
  EXPECT_EQ(after.shapes[kernels(after)[0]->shape], (Shape{1, 1000, 1000, 500}));
  EXPECT_EQ(kernels(after)[0]->bytes, 3 * kMegabytes);
}

TEST(Fusion, RandomNumbersAreDrawnInTheSameOrder) {
  FusionProgram p;
  const StorageId x = p.input("x"), y = p.input("y");
  const StorageId a = p.tensor("a"), b = p.tensor("b"), c = p.tensor("c");
  p.elementwise("native_dropout", {x}, {a});
  p.elementwise("native_dropout", {y}, {b}, kN);
  p.elementwise("add", {a, x}, {c});
  // The second draw ends the first one's chain: else it would come before it.
  EXPECT_EQ(names(rewritten(std::move(p).finish(), "fusion")), "aten::native_dropout aten::native_dropout aten::add");
}

TEST(Fusion, TheLargestKernelIsASetting) {
  Chain chain;
  chain.mul(), chain.add(), chain.relu();
  EXPECT_EQ(names(rewritten(std::move(chain.p).finish(), "fusion:largest=2")), "fused(mul,add) aten::relu");
}

// Memory: an operand that lives longer must not raise the peak, which stands earlier or just there.
TEST(Fusion, DoesNotJoinWhereTheOperandWouldRaiseThePeak) {
  for (const std::int64_t earlier : {1, 3}) {
    FusionProgram p;
    const StorageId peak = p.tensor("peak", earlier * kN);
    p.op("fill", {}, {peak});
    p.drop(peak);
    const StorageId x = p.tensor("x");
    p.op("fill", {}, {x});
    const StorageId a = p.tensor("a", kN, 1);
    p.elementwise("cast", {x}, {a});
    p.drop(x);
    // Merged, x lives beside what is made and dropped now.
    const StorageId big = p.tensor("big");
    p.op("fill", {}, {big});
    p.drop(big);
    const StorageId b = p.tensor("b", kN, 1);
    p.elementwise("neg", {a}, {b});
    p.drop(a);
    const Trace before = std::move(p).finish(), after = rewritten(before, "fusion");
    EXPECT_LE(activation_peak(after), activation_peak(before));
    EXPECT_EQ(names(after), earlier == 1 ? "aten::fill aten::fill aten::cast aten::fill aten::neg"
                                         : "aten::fill aten::fill aten::fill fused(cast,neg)");
  }
}

TEST(Fusion, AnOperandThatTheProgramFreesEarlierLivesUntilTheKernelRuns) {
  FusionProgram p;
  const StorageId x = p.tensor("x");
  p.op("fill", {}, {x});
  const StorageId a = p.tensor("a");
  p.elementwise("cast", {x}, {a});
  p.drop(x);
  const StorageId b = p.tensor("b");
  p.elementwise("neg", {a}, {b});
  p.drop(a);
  const Trace before = std::move(p).finish(), after = rewritten(before, "fusion");
  EXPECT_EQ(names(after), "aten::fill fused(cast,neg)");
  EXPECT_EQ(activation_peak(after), activation_peak(before));
}

TEST(Fusion, RefusesATraceWithoutShapes) {
  Chain chain;
  chain.mul(), chain.add();
  Trace t = std::move(chain.p).finish();
  for (Op& op : t.ops) op.shape = 0;
  EXPECT_NE(refusal(t, "fusion").find("does not say how many elements"), std::string::npos);
  EXPECT_EQ(refusal(t, "fusion"), policy_named("fusion").answer(t).refusal) << "what inspect says";
  EXPECT_NE(refusal(t, "fusion:what=everything").find("elementwise"), std::string::npos);
  EXPECT_NE(refusal(t, "fusion:largest=1"), "");
}

TEST(Fusion, AHandOverNamesWhatItNamedBefore) {
  Chain chain;
  chain.mul(), chain.add(), chain.relu();
  chain.p.backward();  // it names the free of b, which vanishes
  const StorageId g = chain.p.tensor("g");
  chain.p.elementwise("neg", {chain.c}, {g});
  const Trace after = rewritten(std::move(chain.p).finish(), "fusion");
  const auto found =
      std::find_if(after.ops.begin(), after.ops.end(), [](const Op& op) { return op.kind == OpKind::hand_over; });
  ASSERT_NE(found, after.ops.end());
  const Op& named = after.ops[found->target];
  EXPECT_EQ(named.kind, OpKind::mark);
  EXPECT_EQ(named.thread, 0);
  EXPECT_EQ(after.steps[0].last, after.ops.size());
}

TEST(Fusion, TheModuleIsWhatAllShare) {
  FusionProgram p;
  const StorageId x = p.input("x"), a = p.tensor("a"), b = p.tensor("b");
  p.module("layers.1.mlp");
  p.elementwise("mul", {x}, {a});
  p.module("layers.10");
  p.elementwise("add", {a}, {b});
  const Trace after = rewritten(std::move(p).finish(), "fusion");
  EXPECT_EQ(after.strings[kernels(after)[0]->module], "layers");
}

// --- the spaces that ops run over

TEST(FusionSpace, RowsMeetElementsAndElementsMeetEqualElements) {
  const FusionSpace plain{100, 0, 0, false, {}}, other{50, 0, 0, false, {}}, rows{100, 20, 5, false, {}},
      few{20, 0, 0, false, {}};
  const FusionSpace turned{100, 5, 20, false, {}}, product{100, 0, 0, true, {}};
  EXPECT_EQ(common_space(plain, plain), plain);
  EXPECT_EQ(common_space(plain, other), std::nullopt);
  EXPECT_EQ(common_space(plain, rows), rows);
  EXPECT_EQ(common_space(rows, few), rows);
  EXPECT_EQ(common_space(few, rows), rows);
  EXPECT_EQ(common_space(rows, other), std::nullopt);
  EXPECT_EQ(common_space(rows, turned), std::nullopt) << "rows of other widths";
  EXPECT_EQ(common_space(product, plain), product);
  EXPECT_EQ(common_space(product, rows), std::nullopt);
  EXPECT_EQ(common_space(product, product), std::nullopt);
}

TEST(FusionSpace, HostileShapesAreNoSpace) {
  FusionProgram p;
  const StorageId x = p.input("x");
  const OpId id = p.elementwise("mul", {x}, {x});
  Trace t = std::move(p).finish();
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (const Shape& shape : {Shape{kHuge, kHuge}, Shape{-1}, Shape{0}, Shape{}}) {
    t.ops[id].shape = t.shapes.intern(shape);
    EXPECT_EQ(fusion_space(t, t.ops[id]), std::nullopt);
  }
}

TEST(LiveProfile, FollowsChangesOfRanges) {
  Chain chain;
  chain.mul(), chain.add(), chain.relu();
  const Trace t = std::move(chain.p).finish();
  LiveProfile live(t);
  const Bytes base = 2 * kMegabytes;  // x and y, which are there from the start
  EXPECT_EQ(live.peak(), base + 2 * kMegabytes);
  live.add(0, 0, 100 * kMegabytes);
  EXPECT_EQ(live.peak(), base + 100 * kMegabytes);
  live.add(0, static_cast<OpId>(t.ops.size() - 1), -100 * kMegabytes);
  EXPECT_EQ(live.peak(), base) << "at the start nothing was taken off";
  live.add(5, 4, 1000 * kMegabytes);
  EXPECT_EQ(live.peak(), base);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
