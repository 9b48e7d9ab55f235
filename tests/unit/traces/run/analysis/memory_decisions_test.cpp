// Is what leaves device memory and comes back found in a run, with when it was there and when it was wanted?
#include "traces/run/analysis/memory_decisions.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "study/study.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::uint8_t kHbm = 0, kHost = 1;

// A storage that "mm" of "layers.0" makes, that leaves, comes back as another, and is used. Microseconds.
class OffloadScene : public HandmadeRun {
 public:
  OffloadScene() { run.trace.edit().knowledge = {true, true, true, true, true}; }

  StorageId storage(Bytes bytes, std::uint8_t place) {
    Storage made;
    made.bytes = bytes;
    made.kind = StorageKind::activation;
    made.place = place;
    run.trace.edit().storages.push_back(made);
    return static_cast<StorageId>(run.trace->storages.size() - 1);
  }
  OpId kernel(const char* module, double start, double end, std::vector<Use> used,
              WaitReason reason = WaitReason::launch, OpId cause = kNoOp) {
    const OpId id = device(OpKind::kernel, "k", 0, start, start, start, end, reason, cause);
    op(id).module = run.trace.edit().strings.intern(module);
    give(id, used);
    return id;
  }
  OpId copy(StorageId from, StorageId to, Bytes bytes, double start, double end) {
    const OpId id = device(OpKind::copy, "c", 1, start, start, start, end);
    op(id).added = true;
    op(id).bytes = bytes;
    op(id).from = run.trace->storages[from].place;
    op(id).to = run.trace->storages[to].place;
    give(id, {{from, 1, Access::read}, {to, 1, Access::write}});
    return id;
  }

 private:
  void give(OpId id, const std::vector<Use>& used) {
    op(id).first_use = static_cast<std::uint32_t>(run.trace->uses.size());
    op(id).use_count = static_cast<std::uint32_t>(used.size());
    for (const Use& use : used) run.trace.edit().uses.push_back(use);
  }
};

TEST(MemoryDecisionsOfARun, SlackIsFromTheEndOfAFetchToItsFirstUse) {
  OffloadScene scene;
  const StorageId made = scene.storage(1000, kHbm), far = scene.storage(1000, kHost), back = scene.storage(1000, kHbm);
  scene.kernel("layers.0", 0, 10, {{made, 1, Access::write}});
  const OpId out = scene.copy(made, far, 1000, 10, 20);
  const OpId in = scene.copy(far, back, 1000, 30, 40);
  scene.kernel("layers.1", 55, 60, {{back, 1, Access::read}});
  scene.kernel("layers.1", 70, 80, {{back, 1, Access::read}});
  const memwall::Run run = scene.finish();
  const MemoryDecisions found = memory_decisions(run);
  ASSERT_EQ(found.departures.size(), 1u);
  EXPECT_EQ(found.departures[0].storage, made);
  EXPECT_EQ(found.departures[0].copy, out);
  ASSERT_EQ(found.returns.size(), 1u);
  EXPECT_EQ(found.returns[0].storage, made) << "not the copy of it in host memory";
  EXPECT_EQ(found.returns[0].replica, back);
  EXPECT_EQ(found.returns[0].by, in);
  EXPECT_EQ(found.returns[0].slack, microseconds(15));
  EXPECT_FALSE(found.returns[0].late);
  ASSERT_EQ(found.modules.size(), 1u);
  EXPECT_EQ(found.modules[0].module, "layers.0") << "of the op that made it";
  EXPECT_EQ(found.modules[0].storages, 1u);
  EXPECT_EQ(found.modules[0].copied_out, 1000);
  EXPECT_EQ(found.modules[0].copied_in, 1000);
  EXPECT_EQ(found.modules[0].fetches, 1u);
  EXPECT_EQ(found.modules[0].late, 0u);
  EXPECT_EQ(found.modules[0].slack, microseconds(15));
}

TEST(MemoryDecisionsOfARun, AUseThatWaitedForItsFetchMakesItLate) {
  OffloadScene scene;
  const StorageId made = scene.storage(1000, kHbm), far = scene.storage(1000, kHost), back = scene.storage(1000, kHbm);
  scene.kernel("layers.0", 0, 10, {{made, 1, Access::write}});
  scene.copy(made, far, 1000, 10, 20);
  const OpId in = scene.copy(far, back, 1000, 30, 40);
  scene.kernel("layers.1", 41.5, 60, {{back, 1, Access::read}}, WaitReason::event, in);
  const MemoryDecisions found = memory_decisions(scene.finish());
  EXPECT_TRUE(found.returns[0].late);
  EXPECT_EQ(found.returns[0].slack, Duration{}) << "what the event itself takes is no slack";
  EXPECT_EQ(found.total().late, 1u);
}

TEST(MemoryDecisionsOfARun, ACopyOfTheProgramItselfIsNoDecision) {
  OffloadScene scene;
  const StorageId made = scene.storage(1000, kHbm), far = scene.storage(1000, kHost);
  scene.kernel("layers.0", 0, 10, {{made, 1, Access::write}});
  scene.op(scene.copy(made, far, 1000, 10, 20)).added = false;
  EXPECT_TRUE(memory_decisions(scene.finish()).empty());
}

TEST(MemoryDecisionsOfARun, WhatARunOnTheSideMakesIsNoReturn) {
  OffloadScene scene;
  const StorageId made = scene.storage(1000, kHbm), passing = scene.storage(10, kHbm);
  const StorageId made_again = scene.storage(1000, kHbm), passing_again = scene.storage(10, kHbm);
  const OpId first = scene.kernel("layers.0", 0, 10, {{passing, 1, Access::write}});
  const OpId second = scene.kernel("layers.0", 10, 20, {{passing, 1, Access::read}, {made, 1, Access::write}});
  const OpId again = scene.kernel("layers.0", 30, 40, {{passing_again, 1, Access::write}});
  const OpId last =
      scene.kernel("layers.0", 40, 55, {{passing_again, 1, Access::read}, {made_again, 1, Access::write}});
  scene.kernel("layers.1", 60, 70, {{made_again, 1, Access::read}});
  for (const auto& [id, source] : {std::pair(again, first), std::pair(last, second)}) {
    scene.op(id).phase = Phase::recompute;
    scene.op(id).source = source;
  }
  const MemoryDecisions found = memory_decisions(scene.finish());
  ASSERT_EQ(found.returns.size(), 1u);
  EXPECT_TRUE(found.returns[0].is_rerun);
  EXPECT_EQ(found.returns[0].storage, made);
  EXPECT_EQ(found.returns[0].by, last);
  EXPECT_EQ(found.modules[0].made_again, 1000);
  EXPECT_EQ(found.modules[0].rerun_ops, 2u);
  EXPECT_EQ(found.modules[0].rerun_time, microseconds(25));
}

// The same totals as the plan that the policy makes.
TEST(MemoryDecisionsOfARun, AreThoseOfThePlanThatWasCarriedOut) {
  Study study;
  Trace step = gpt_step({.layers = 3, .hidden = 64, .sequence = 64, .batch = 8});
  step.machine = "gpu";
  study.add_step("step", step);
  Machine machine = test_machine();
  machine.name = "gpu";
  study.add_machine("gpu", machine);
  for (const std::string policy : {"checkpoint:mode=full", "offload:what=activations,to=host,min_bytes=0",
                                   "offload:what=activations,to=nvme,min_bytes=0"}) {
    Scenario scenario;
    scenario.step = {"step"};
    scenario.machine = "gpu";
    scenario.policies = {policy};
    const PlannedStep planned = study.plan(scenario);
    const ModuleDecisions all = memory_decisions(study.run(scenario, {}).run).total();
    Bytes copied = 0, again = 0;
    for (const StorageDecision& d : planned.plan.storages)
      (d.copies.empty() ? again : copied) += planned.trace.storages[d.storage].bytes;
    std::uint64_t ops = 0;
    for (const PlannedRerun& rerun : planned.plan.reruns) ops += rerun.ops.size();
    EXPECT_EQ(all.copied_out, copied) << policy;
    EXPECT_EQ(all.copied_in, copied) << policy;
    EXPECT_EQ(all.rerun_ops, ops) << policy;
    EXPECT_LE(all.made_again, again) << policy << ": what backward does not read does not come back";
    EXPECT_EQ(all.made_again > 0, again > 0);
    EXPECT_EQ(all.storages > 0, true);
    EXPECT_EQ(all.fetches, copied > 0 ? planned.plan.storages.size() : 0u) << policy;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
