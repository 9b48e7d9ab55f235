// Are as many units taken as hide, and not one more? By hand: kernels of 1 us beside a collective, copies of 100 ms.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/offload_chain.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/same_program.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Four blocks of two kernels, whose first result backward reads: 8 us, then 4 us, beside a collective of `collective`
// that begins with the step. The optimizer waits for both.
Trace beside_a_collective(Duration collective) {
  StepProgram p;
  TraceBuilder& b = p.builder();
  b.trace().constants.event_latency = {};
  const std::uint16_t side = b.add_stream("nccl", StreamRole::communication);
  p.on_stream(side);
  p.op("all_reduce", {}, {}, [&] {
    Op op;
    op.kind = OpKind::collective;
    op.collective = CollectiveKind::all_reduce;
    op.duration = collective;
    return op;
  }());
  const std::uint32_t done = b.add_event();
  b.record(done, side, 0);
  p.on_stream(0);
  StorageId x = p.preexisting(1000, StorageKind::input, "x");
  std::vector<StorageId> all;
  for (int i = 0; i < 4; ++i) {
    p.module("blocks." + std::to_string(i));
    const StorageId a = p.make(1000, "a"), y = p.make(1000, "y");
    p.op("conv" + std::to_string(i), {x}, {a});
    p.op("gelu", {a}, {y});
    all.push_back(a);
    if (i > 0) p.drop(x);
    x = y;
  }
  p.module("");
  p.backward();
  p.drop(x);
  for (std::size_t i = all.size(); i-- > 0;) {
    p.op("back", {all[i]}, {});
    p.drop(all[i]);
  }
  p.optimizer();
  b.wait(done, 0, 0);
  p.op("update", {}, {});
  return std::move(p).finish();
}

// But for what the policy says.
std::string difference(Trace after, const Trace& before) {
  after.notes = before.notes;
  return program_difference(after, before);
}

std::string first_note(const Trace& trace) { return trace.notes.empty() ? "" : trace.notes.front(); }

TEST(HiddenUnits, TwoOfFourReRunsFitBesideTheCollective) {
  const Trace before = beside_a_collective(microseconds(14));
  ASSERT_EQ(simulated(before).end, microseconds(15));
  const Trace after = rewritten(before, "checkpoint:hides=1");
  EXPECT_EQ(rerun_operators(after), (std::vector<std::string>{"aten::conv1", "aten::conv0"}));
  EXPECT_EQ(simulated(after).end, microseconds(15));
  EXPECT_EQ(simulated(rewritten(before, "checkpoint:layers=3")).end, microseconds(16)) << "the third does not fit";
  EXPECT_EQ(first_note(after),
            "checkpoint: 2 of 4 units hide: the step takes 15.00 us with them, 15.00 us without (+0.00 %), 16.00 us "
            "with one more (+6.67 %).");
  expect_same_contents(before, after);
}

TEST(HiddenUnits, TheyAreTheOnesThatSpreadSays) {
  const Trace after = rewritten(beside_a_collective(microseconds(14)), "checkpoint:hides=1,spread=even");
  EXPECT_EQ(rerun_operators(after), (std::vector<std::string>{"aten::conv3", "aten::conv1"}));
}

TEST(HiddenUnits, AllOfThemOrNone) {
  const Trace all = rewritten(beside_a_collective(microseconds(16)), "checkpoint:hides=1");
  EXPECT_EQ(count(all, Phase::recompute), 4u);
  EXPECT_EQ(first_note(all),
            "checkpoint: all of 4 units hide: the step takes 17.00 us with them, 17.00 us without (+0.00 %).");
  const Trace before = beside_a_collective(microseconds(12));
  const Trace none = rewritten(before, "checkpoint:hides=1");
  EXPECT_EQ(difference(none, before), "");
  EXPECT_EQ(first_note(none),
            "checkpoint: none of 4 units hides: the step takes 13.00 us without, 14.00 us with one (+7.69 %).");
  EXPECT_EQ(none.notes.size(), before.notes.size() + 1);
}

// A step of 2 ms may take 2 us more: the tolerance is of its time.
TEST(HiddenUnits, WithinATenthOfAPercent) {
  Trace before = beside_a_collective(microseconds(12));
  for (Op& op : before.ops)
    if (before.strings[op.operator_name] == "aten::update") op.duration = microseconds(1988);
  EXPECT_EQ(simulated(before).end, microseconds(2000));
  const Trace after = rewritten(before, "checkpoint:hides=1");
  EXPECT_EQ(simulated(after).end, microseconds(2002));
  EXPECT_EQ(count(after, Phase::recompute), 2u);
}

TEST(HiddenUnits, SelectiveTakesAsManyToo) {
  const Trace before = beside_a_collective(microseconds(14));
  const Trace after = rewritten(before, "selective:save=gelu,hides=1");
  EXPECT_EQ(count(after, Phase::recompute), 2u);
  EXPECT_EQ(simulated(after).end, simulated(before).end);
  EXPECT_TRUE(has_note(after, "selective: 2 of 4 units hide"));
}

// The sixth is made last: it would leave while nothing is computed. Five go, of which the fifth stays as the last.
TEST(HiddenUnits, FiveOfSixActivationsHide) {
  const Trace before = activation_chain(6);
  const Trace after = offloaded(before, "offload:what=activations,buffers=1,prefetch=1,hides=1");
  EXPECT_EQ(run(after).end, milliseconds(1200));
  EXPECT_EQ(link_bytes(run(after), test_machine(), "pcie_d2h"), 4 * kGB);
  EXPECT_EQ(first_note(after),
            "offload: 5 of 6 activations hide: the step takes 1.200 s with them, 1.200 s without (+0.00 %), 1.300 s "
            "with one more (+8.33 %).");
}

TEST(HiddenUnits, NoActivationHidesWhereCopiesAreWaitedFor) {
  const Trace before = activation_chain(6);
  for (const auto& [policy, note] :
       {std::pair("offload:what=activations,buffers=0,prefetch=0,hides=1", "1.400 s with one (+16.67 %)."),
        std::pair("offload:what=activations,buffers=5,prefetch=0,hides=1", "1.300 s with the first 6 (+8.33 %).")}) {
    const Trace after = offloaded(before, policy);
    EXPECT_EQ(difference(after, before), "");
    EXPECT_EQ(first_note(after),
              std::string("offload: none of 6 activations hides: the step takes 1.200 s without, ") + note);
    EXPECT_EQ(after.notes.size(), before.notes.size() + 1);
  }
}

TEST(HiddenUnits, ContradictOtherNumbers) {
  const Trace step = beside_a_collective(microseconds(14)), chain = activation_chain(3);
  const Machine machine = test_machine();
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(refusal(step, "checkpoint:hides=1,layers=2", machine), "layers and hides both say how many units"));
  EXPECT_TRUE(has(refusal(step, "selective:save=gelu,hides=1,fraction=0.5", machine), "fraction and hides both say"));
  EXPECT_TRUE(
      has(refusal(chain, "offload:what=activations,hides=1,fraction=0.5", machine), "hides and fraction both say"));
  EXPECT_TRUE(has(refusal(chain, "offload:what=gradients,hides=1", machine),
                  "hides=1 has a meaning with what=activations alone"));
  EXPECT_TRUE(has(refusal(chain, "offload:what=activations+optimizer,hides=1", machine), "what=activations alone"));
  Trace untimed = chain;
  untimed.knowledge.timing = false;
  EXPECT_TRUE(has(refusal(untimed, "offload:what=activations,hides=1", machine), "needs timing"));
  EXPECT_EQ(refusal(untimed, "offload:what=activations", machine), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
