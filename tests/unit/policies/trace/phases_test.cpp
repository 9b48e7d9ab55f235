// Where do passes begin and end? Steps written by hand.
#include "policies/trace/phases.h"

#include <gtest/gtest.h>

#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Ops {
  OpId forward, backward;
};

// The op that comes next: of a phase that begins, where the host's thread is handed over, too.
OpId next_op(StepProgram& p) { return static_cast<OpId>(p.builder().trace().ops.size()); }

Ops forward_and_backward(StepProgram& p) {
  Ops ops{};
  ops.forward = next_op(p);
  p.forward();
  p.op("linear", {}, {});
  ops.backward = next_op(p);
  p.backward();
  p.op("linear_backward", {}, {});
  return ops;
}

void expect_passes(const Trace& trace, const std::vector<Ops>& ops) {
  const std::vector<Pass> found = passes(trace);
  ASSERT_EQ(found.size(), ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(found[i].begin, ops[i].forward) << i;
    EXPECT_EQ(found[i].backward, ops[i].backward) << i;
    EXPECT_GT(found[i].end, ops[i].backward) << i;
    if (i + 1 == ops.size()) continue;
    EXPECT_EQ(found[i].end, found[i + 1].begin) << i;
  }
}

TEST(Passes, OfAccumulationEndWhereTheNextBegins) {
  StepProgram p;
  const Ops first = forward_and_backward(p), second = forward_and_backward(p);
  p.optimizer();
  const OpId update = p.op("adam", {}, {});
  const Trace trace = std::move(p).finish();
  expect_passes(trace, {first, second});
  EXPECT_GT(passes(trace).back().end, update);
}

// A GradScaler computes the inverse of its scale behind backward, for its check of the gradients in the optimizer's
// step; captures call that forward, as nothing names it.
TEST(Passes, HoldWhatComesBetweenBackwardAndTheOptimizer) {
  StepProgram p;
  std::vector<Ops> ops;
  std::vector<OpId> updates;
  for (int step = 0; step < 2; ++step) {
    if (step > 0) p.begin_step();
    ops.push_back(forward_and_backward(p));
    p.forward();
    p.op("reciprocal", {}, {});
    p.optimizer();
    updates.push_back(p.op("adam", {}, {}));
  }
  const Trace trace = std::move(p).finish();
  expect_passes(trace, ops);
  for (std::size_t i = 0; i < ops.size(); ++i) EXPECT_GT(passes(trace)[i].end, updates[i]) << i;
}

// The update of a step that is carried out within the next one's forward does not take that forward's beginning.
TEST(Passes, BeginWhereTheStepDoesThoughTheUpdateComesLater) {
  StepProgram p;
  std::vector<Ops> ops{forward_and_backward(p)};
  p.begin_step();
  const OpId first = next_op(p);
  p.forward();
  p.op("linear", {}, {});
  p.optimizer();
  p.op("adam", {}, {});
  ops.push_back({first, forward_and_backward(p).backward});
  expect_passes(std::move(p).finish(), ops);
}

// What follows the last optimizer step without a backward is no pass, nor part of one.
TEST(Passes, AForwardWithoutBackwardIsNone) {
  StepProgram p;
  const Ops ops = forward_and_backward(p);
  const OpId alone = next_op(p);
  p.forward();
  p.op("linear", {}, {});
  const Trace trace = std::move(p).finish();
  expect_passes(trace, {ops});
  EXPECT_EQ(passes(trace).front().end, alone);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
