// Does the sketch of a plan's memory say what would live? By hand, in blocks of 512 bytes.
#include "policies/profile/planned_memory.h"

#include <gtest/gtest.h>

#include <random>

#include "policies/recompute/recompute.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kBlock = 512;

// a and b of one block each live from forward to backward; c beside them for a while.
struct ThreeStorages {
  ThreeStorages() {
    StepProgram p;
    a = p.make(kBlock, "a");
    make_a = p.op("make_a", {}, {a});
    b = p.make(kBlock, "b");
    p.op("make_b", {a}, {b});
    c = p.make(4 * kBlock, "c");
    p.op("make_c", {}, {c});
    p.drop(c);
    p.backward();
    back_b = p.op("back_b", {b}, {});
    p.drop(b);
    back_a = p.op("back_a", {a}, {});
    p.drop(a);
    trace = std::move(p).finish();
    profile.emplace(trace, machine);
  }
  StorageId a = 0, b = 0, c = 0;
  OpId make_a = 0, back_a = 0, back_b = 0;
  Trace trace;
  Machine machine = test_machine();
  std::optional<StepProfile> profile;
};

TEST(PlannedMemory, WhatIsAwayDoesNotCount) {
  const ThreeStorages step;
  MemoryPlan plan;
  EXPECT_EQ(planned_peak(*step.profile, plan), 6 * kBlock);
  const Gap& gap = step.profile->gaps(step.a).back();
  StorageDecision d;
  d.storage = step.a;
  d.copies.push_back({{gap.after, true, 0}, 0});
  d.drops.push_back({{gap.after, true, 1}});
  d.fetches.push_back({{step.back_a, false, 0}, 0});
  plan.storages.push_back(d);
  EXPECT_EQ(planned_peak(*step.profile, plan), 5 * kBlock);
  plan.storages.front().fetches.front().at.op = step.back_b;
  EXPECT_EQ(planned_peak(*step.profile, plan), 5 * kBlock) << "earlier, but behind c";
}

TEST(PlannedMemory, WhatARerunStartsFromLivesUntilThen) {
  StepProgram p;
  const StorageId a = p.make(2 * kBlock, "a");
  p.op("make_a", {}, {a});
  const StorageId b = p.make(kBlock, "b");
  const OpId make_b = p.op("make_b", {a}, {b});
  p.drop(a);
  const StorageId c = p.make(4 * kBlock, "c");
  p.op("make_c", {}, {c});
  p.drop(c);
  p.backward();
  const OpId back = p.op("back", {b}, {});
  p.drop(b);
  const Trace trace = std::move(p).finish();
  const Machine machine = test_machine();
  const StepProfile profile(trace, machine);
  MemoryPlan plan;
  StorageDecision d;
  d.storage = b;
  d.drops.push_back({{make_b, true, 0}});
  plan.storages.push_back(d);
  plan.reruns.push_back({{back, false, 0}, {make_b}});
  EXPECT_EQ(planned_peak(profile, {}), 5 * kBlock);
  EXPECT_EQ(planned_peak(profile, plan), 6 * kBlock) << "a stays instead of b";
}

TEST(PlannedMemory, PeaksOfRangesAreWhatEachOpSays) {
  const Trace trace = gpt_step({.layers = 2});
  const Machine machine = test_machine();
  const StepProfile profile(trace, machine);
  PlannedMemory memory(profile);
  const auto ops = static_cast<OpId>(trace.ops.size());
  std::mt19937 random(1);
  for (int change = 0; change < 50; ++change) {
    const StorageId s = random() % trace.storages.size();
    const OpId first = random() % ops, last = first + random() % (ops - first);
    change % 3 == 0 ? memory.restore(s, first, last) : memory.remove(s, first, last);
    std::vector<Bytes> each;
    for (OpId id = 0; id < ops; ++id) each.push_back(memory.peak(id, id));
    const OpId begin = random() % ops, end = begin + random() % (ops - begin);
    EXPECT_EQ(memory.peak(begin, end), *std::max_element(each.begin() + begin, each.begin() + end + 1));
    const auto highest = std::max_element(each.begin(), each.end());
    if (memory.peak_op() != kNoOp) {
      EXPECT_EQ(memory.peak_op(), highest - each.begin());
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
