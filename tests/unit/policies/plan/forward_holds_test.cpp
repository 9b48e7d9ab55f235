// Until when does a program in PyTorch hold what forward made? Steps written by hand.
#include "policies/plan/forward_holds.h"

#include <gtest/gtest.h>

#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Module `outer` reads x and h: "OUTER.one" x, "OUTER.two" what that makes, and then itself works on another storage.
struct CalledModule {
  StepProgram p;
  StorageId x = kNoStorage, h = kNoStorage, y = kNoStorage;
  OpId load = kNoOp, one = kNoOp, two = kNoOp, last = kNoOp;
  Trace trace;
  explicit CalledModule(const std::string& outer, bool has_ops_of_its_own) {
    const StorageId w = p.preexisting(64, StorageKind::parameter, "w");
    x = p.make(100, "x");
    h = p.make(100, "h");
    y = p.make(100, "y");
    const StorageId z = p.make(100, "z");
    load = p.op("load", {}, {x});
    p.module(outer + ".1");
    one = p.op("linear", {x, w}, {h});
    p.module(outer + ".2");
    two = p.op("linear", {h, w}, {y});
    p.module(has_ops_of_its_own ? outer : outer + ".3");
    last = p.op("gelu", {y}, {z});
    p.module("loss");
    p.op("sum", {z}, {p.make(4, "loss")});
    p.backward();
    p.module(outer + ".1");
    p.op("mm", {x, h, y, z}, {p.make(64, "grad", StorageKind::gradient)});
    trace = std::move(p).finish();
  }
};

OpId held(const Trace& trace, StorageId storage) {
  const Dataflow flow(trace);
  return ForwardHolds(trace, flow).held_until(storage);
}

TEST(ForwardHolds, WhatAModuleIsCalledWithLivesUntilItReturns) {
  const CalledModule step("block", true);
  EXPECT_EQ(held(step.trace, step.x), step.last) << "read by block.1 alone, an argument of block, too";
  // What block.1 hands to block.2 is an argument of that alone, which is its only op.
  EXPECT_EQ(held(step.trace, step.h), kNoOp);
}

TEST(ForwardHolds, AListOfModulesIsNotCalled) {
  const CalledModule step("layers", false);
  EXPECT_EQ(held(step.trace, step.x), kNoOp);
}

TEST(ForwardHolds, WhatIsMadeInsideIsNoArgument) {
  const CalledModule step("block", true);
  EXPECT_EQ(held(step.trace, step.y), kNoOp);
}

// A cast of a parameter that nobody saves is freed where autocast's context ends; there all of them go.
TEST(ForwardHolds, CastsOfParametersLiveUntilTheContextEnds) {
  StepProgram p;
  const StorageId w = p.preexisting(64, StorageKind::parameter, "w"), b = p.preexisting(8, StorageKind::parameter, "b");
  const StorageId x = p.make(100, "x"), cast_w = p.make(32, "cast of w"), cast_b = p.make(4, "cast of b");
  const StorageId y = p.make(100, "y");
  p.op("load", {}, {x});
  p.module("a");
  p.op("aten::_to_copy", {w}, {cast_w});
  p.op("aten::_to_copy", {b}, {cast_b});
  const OpId product = p.op("aten::addmm", {x, cast_w, cast_b}, {y});
  p.saves({x, cast_w});
  p.module("");
  p.op("sum", {y}, {p.make(4, "loss")});
  const OpId context_ends = p.drop(cast_b);
  p.backward();
  p.op("mm", {x, cast_w}, {p.make(64, "grad", StorageKind::gradient)});
  const Trace trace = std::move(p).finish();
  EXPECT_EQ(held(trace, cast_w), context_ends);
  EXPECT_LT(product, context_ends);
  EXPECT_EQ(held(trace, cast_b), kNoOp) << "the program lets go of it by itself";
}

TEST(ForwardHolds, WhatLivedBeforeOrIsMadeInBackwardIsNotHeld) {
  const CalledModule step("block", true);
  for (StorageId s = 0; s < step.trace.storages.size(); ++s)
    if (step.trace.storages[s].preexisting || step.trace.storages[s].kind == StorageKind::gradient) {
      EXPECT_EQ(held(step.trace, s), kNoOp);
    }
}

// A capture that says it is believed, and no rule is asked: what is an argument may have lost its names before.
TEST(ForwardHolds, WhatTheTraceSaysIsBelieved) {
  CalledModule step("block", true);
  step.trace.storages[step.x].last_referenced = step.two;
  step.trace.storages[step.h].last_referenced = step.last;
  EXPECT_EQ(held(step.trace, step.x), step.two);
  EXPECT_EQ(held(step.trace, step.h), step.last) << "a variable, of which the rules know nothing";
  step.trace.storages[step.h].last_referenced = step.two;
  EXPECT_EQ(held(step.trace, step.h), kNoOp) << "no longer than it is used";
  const OpId in_backward = static_cast<OpId>(step.trace.ops.size() - 1);
  step.trace.storages[step.h].last_referenced = in_backward;
  EXPECT_GT(held(step.trace, step.h), step.last) << "to the end of forward";
  EXPECT_LT(held(step.trace, step.h), in_backward);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
