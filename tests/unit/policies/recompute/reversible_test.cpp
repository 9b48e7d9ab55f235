// Does memory of reversible blocks not grow with their number, for one more forward and one kernel each?
#include <gtest/gtest.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kStream = 1 << 20;

// Residual blocks: h = f(x), three times as large, and y = x + g(h). Backward of a block reads h and x. `narrowed`: the
// block that hands on half of it.
Trace residual_blocks(std::size_t n, std::size_t narrowed = 1000) {
  StepProgram p;
  const StorageId tokens = p.preexisting(kStream, StorageKind::input, "tokens");
  Bytes bytes = kStream;
  StorageId x = p.make(bytes, "x");
  p.op("embedding", {tokens}, {x});
  std::vector<StorageId> inner, stream = {x};
  for (std::size_t k = 0; k < n; ++k) {
    p.module("layers." + std::to_string(k));
    if (k == narrowed) bytes /= 2;
    inner.push_back(p.make(3 * bytes, "h"));
    p.op("f", {x}, {inner[k]});
    const StorageId y = p.make(bytes, "y");
    p.op("g_and_add", {x, inner[k]}, {y});
    stream.push_back(x = y);
  }
  p.module("head");
  p.op("loss", {x}, {});
  p.backward();
  p.op("loss_backward", {x}, {});
  p.drop(stream[n]);
  for (std::size_t k = n; k-- > 0;) {
    p.module("layers." + std::to_string(k));
    p.op("g_backward", {inner[k]}, {});
    p.op("f_backward", {inner[k], stream[k]}, {});
    p.drop(inner[k]);
    p.drop(stream[k]);
  }
  p.module("");
  p.optimizer();
  p.op("update", {}, {});
  return std::move(p).finish();
}

std::size_t inverses(const Trace& t) {
  return static_cast<std::size_t>(
      std::ranges::count_if(t.ops, [&](const Op& op) { return t.strings[op.name] == "reversible.inverse"; }));
}

TEST(Reversible, OneBlockAtATimeIsThereHoweverManyThereAre) {
  for (const std::size_t n : {2u, 4u, 16u}) {
    const Trace step = residual_blocks(n);
    EXPECT_EQ(activation_peak(step), static_cast<Bytes>(4 * n + 1) * kStream);
    const Trace after = rewritten(step, "reversible");
    // In forward x, h and y; in backward the input that was made from the output, and h.
    EXPECT_EQ(activation_peak(after), 5 * kStream) << n;
    EXPECT_EQ(inverses(after), n);
    EXPECT_EQ(check(after), std::vector<std::string>{});
    EXPECT_EQ(races(after), std::vector<std::string>{});
  }
}

TEST(Reversible, CostsOneMoreForwardOfTheBlocksAndTheInverses) {
  const Trace step = residual_blocks(6), after = rewritten(step, "reversible");
  const Trace checkpointed = rewritten(step, "checkpoint:mode=full");
  // An inverse reads output and update and writes the input, at 1 TB/s.
  const Duration inverse(3 * kStream);
  EXPECT_EQ(simulated(after).end, simulated(checkpointed).end + 6 * inverse);
  EXPECT_EQ(activation_peak(checkpointed), (6 + 1 + 3) * kStream) << "checkpoints stay, one for each block";
}

TEST(Reversible, ABlockThatChangesTheSizeKeepsItsInput) {
  const Trace after = rewritten(residual_blocks(8, 4), "reversible");
  EXPECT_EQ(inverses(after), 7u);
  EXPECT_TRUE(has_note(after, "7 of 8 blocks"));
  EXPECT_TRUE(has_note(after, "no plan executes this training"));
}

TEST(Reversible, RefusesStepsWithoutBlocks) {
  StepProgram p;
  const StorageId x = p.preexisting(kStream, StorageKind::input, "x");
  const StorageId y = p.make(kStream, "y");
  p.op("layer", {x}, {y});
  p.backward();
  p.op("back", {y}, {});
  p.drop(y);
  const Trace step = std::move(p).finish();
  EXPECT_NE(refusal(step, "reversible").find("no forward of it has repeated modules"), std::string::npos);
}

TEST(Reversible, TakesLessThanCheckpointsOnAGpt) {
  const Trace step =
      gpt_step({.layers = 12, .hidden = 512, .heads = 8, .sequence = 512, .batch = 4, .vocabulary = 1024});
  const Trace after = rewritten(step, "reversible"), checkpointed = rewritten(step, "checkpoint:mode=full");
  EXPECT_EQ(inverses(after), 12u);
  EXPECT_LT(activation_peak(after), activation_peak(checkpointed));
  EXPECT_EQ(races(after), std::vector<std::string>{});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
