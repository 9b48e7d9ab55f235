// Where does the memory of a recording go: who lives at an instant, what is a hole, what grows, what is held too long?
#include "models/workload/memory/memory_report.h"

#include <gtest/gtest.h>

#include "tests/support/resident_memory.h"
#include "tests/support/training_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

AllocationTable table_of(RecordingBuilder& b, const StartState& start = {}) {
  return tabulate_allocations(b.recording(), b.device(), start);
}

const LiveGroup* group(const std::vector<LiveGroup>& groups, const std::string& name) {
  for (const LiveGroup& g : groups)
    if (g.name == name) return &g;
  return nullptr;
}

const LateFree* held(const std::vector<LateFree>& rules, const std::string& beginning) {
  for (const LateFree& h : rules)
    if (h.rule.starts_with(beginning)) return &h;
  return nullptr;
}

TEST(LiveSet, GroupsByKindPhaseAndLine) {
  TrainingScene s;
  s.b.alloc(1000, s.construction);
  s.b.alloc(5000, s.forward);
  s.b.alloc(6000, s.forward);
  s.b.alloc(300, s.loss);
  const Address gone = s.b.alloc(9999, s.forward);
  s.b.free(gone, s.forward);
  s.b.alloc(10, s.backward);
  StartState start;
  start.segments.push_back({0, 4096, 0, false, false, 0, {{512, 1024, 700, BlockState::Use::in_use}}});
  const AllocationTable table = table_of(s.b, start);
  const LiveSet set = live_set_at(s.b.recording(), table, s.b.now() - 2);
  EXPECT_EQ(set.requested, 700 + 1000 + 5000 + 6000 + 300);
  ASSERT_EQ(set.by_kind.size(), 3u);
  EXPECT_EQ(set.by_kind[0].name, "activation");
  EXPECT_EQ(set.by_kind[0].requested, 11'300);
  EXPECT_EQ(set.by_kind[0].blocks, 3u);
  EXPECT_EQ(set.by_kind[1].name, "parameter");
  ASSERT_NE(group(set.by_phase, "before the recording"), nullptr);
  EXPECT_EQ(group(set.by_phase, "before the recording")->requested, 700);
  EXPECT_EQ(group(set.by_phase, "forward")->requested, 11'300);
  EXPECT_EQ(set.by_line[0].name, "model.py:12 forward");
  EXPECT_EQ(set.by_line[0].requested, 11'000);
  EXPECT_EQ(group(set.by_line, "before the recording")->blocks, 1u);
  ASSERT_GE(set.largest.size(), 2u);
  EXPECT_EQ(table.allocations[set.largest[0]].requested, 6000);
  EXPECT_EQ(table.allocations[set.largest[1]].requested, 5000);
  const LiveSet before = live_set_at(s.b.recording(), table, Allocation::kBefore);
  EXPECT_EQ(before.requested, 700);
}

TEST(LiveSet, LinesBeyondTheLimitAreOneGroup) {
  TrainingScene s;
  for (int line = 1; line <= 9; ++line) s.b.alloc(100 * line, s.forward_at(line));
  const LiveSet set = live_set_at(s.b.recording(), table_of(s.b), 8, 3);
  ASSERT_EQ(set.by_line.size(), 4u);
  EXPECT_EQ(set.by_line[0].name, "model.py:9 forward");
  EXPECT_EQ(set.by_line[3].name, "6 other lines");
  EXPECT_EQ(set.by_line[3].requested, 100 * (1 + 2 + 3 + 4 + 5 + 6));
  EXPECT_EQ(set.by_line[3].blocks, 6u);
  EXPECT_EQ(set.largest.size(), 3u);
}

using Use = BlockState::Use;

// Without activations another instant is the highest.
TEST(LiveSet, WhatIsLeftWithoutAKind) {
  TrainingScene s;
  s.b.alloc(1000, s.construction);
  const Address saved = s.b.alloc(5000, s.forward);
  s.b.alloc(1000, s.accumulate);
  s.b.free(saved, s.backward);
  s.b.alloc(2000, s.optimizer);
  StartState start;
  start.segments.push_back({0, 4096, 0, false, false, 0, {{512, 1024, 700, BlockState::Use::in_use}}});
  const AllocationTable table = table_of(s.b, start);
  EXPECT_EQ(highest_without(table, {}), 700 + 1000 + 5000 + 1000);
  EXPECT_EQ(highest_without(table, {StorageKind::activation}), 700 + 1000 + 1000 + 2000);
  EXPECT_EQ(highest_without(table, {StorageKind::gradient}), 700 + 1000 + 5000);
}

TEST(Fragmentation, InternalExternalAndHoles) {
  const SegmentState split{MiB(100),
                           MiB(20),
                           0,
                           false,
                           false,
                           0,
                           {{MiB(100), MiB(6), MiB(5), Use::in_use},
                            {MiB(106), MiB(4), 777, Use::free},
                            {MiB(110), MiB(2), MiB(1), Use::pending},
                            {MiB(112), MiB(8), 0, Use::free}}};
  const SegmentState whole{MiB(200), MiB(2), 7, true, false, 0, {{MiB(200), MiB(2), 0, Use::free}}};
  const SegmentState graph{MiB(300), MiB(2), 0, true, false, 3, {{MiB(300), MiB(2), 0, Use::free}}};
  const Fragmentation f = fragmentation_of({split, whole, graph}, 2);
  EXPECT_EQ(f.internal, MiB(1)) << "of blocks in use; a pending one is not allocated";
  EXPECT_EQ(f.external, MiB(4 + 8 + 2 + 2));
  EXPECT_EQ(f.whole_segments, MiB(2)) << "a private pool keeps its segments";
  EXPECT_EQ(f.in_split, MiB(14));
  ASSERT_EQ(f.largest_holes.size(), 2u);
  EXPECT_EQ(f.largest_holes[0].address, static_cast<Address>(MiB(112)));
  EXPECT_EQ(f.largest_holes[0].segment, static_cast<Address>(MiB(100)));
  EXPECT_EQ(f.largest_holes[0].size, MiB(8));
  EXPECT_EQ(f.largest_holes[1].size, MiB(4));
  EXPECT_EQ(fragmentation_of({whole}).largest_holes[0].stream, 7);
  EXPECT_TRUE(fragmentation_of({whole}).largest_holes[0].small_pool);
}

TEST(Fragmentation, OfAnExpandableSegmentWholePagesCanGoBack) {
  // Pages of 20 MiB: 0-20 in use up to 15, 20-40 and 40-60 free, 60-80 in use from 65 on; the rest is not mapped.
  const SegmentState segment{GiB(1),
                             MiB(200),
                             0,
                             false,
                             true,
                             0,
                             {{GiB(1), MiB(15), MiB(15), Use::in_use},
                              {GiB(1) + MiB(15), MiB(50), 0, Use::free},
                              {GiB(1) + MiB(65), MiB(15), MiB(15), Use::in_use},
                              {GiB(1) + MiB(80), MiB(120), 0, Use::unmapped}}};
  const Fragmentation f = fragmentation_of({segment});
  EXPECT_EQ(f.external, MiB(50));
  EXPECT_EQ(f.whole_segments, MiB(40));
  EXPECT_EQ(f.in_split, MiB(10));
  EXPECT_EQ(f.largest_holes.size(), 1u);
  AllocatorSettings settings;
  settings.large_segment_size = MiB(10);
  EXPECT_EQ(fragmentation_of({segment}, 10, settings).whole_segments, MiB(40));
  settings.large_segment_size = MiB(64);
  EXPECT_EQ(fragmentation_of({segment}, 10, settings).whole_segments, 0);
}

// Steps that each leave their gradient to the next zero_grad, and whatever `extra` adds in the forward pass.
template <class Extra>
LeakReport leaks_of(int steps, Extra extra) {
  TrainingScene s;
  s.b.alloc(1000, s.construction);
  std::vector<Address> gradients;
  for (int step = 0; step < steps; ++step) {
    for (const Address gradient : gradients) s.b.free(gradient, s.zero_grad);
    const Address saved = s.b.alloc(5000, s.forward);
    extra(s, step);
    gradients = {s.b.alloc(1000, s.accumulate)};
    s.b.free(saved, s.backward);
    if (step == 0) s.b.alloc(2000, s.optimizer);  // states, made once
    const Address square = s.b.alloc(1000, s.optimizer);
    s.b.free(square, s.optimizer);
  }
  return find_leaks(s.b.recording(), table_of(s.b));
}

TEST(Leaks, ACleanTrainingLoopHasNone) {
  for (const int steps : {3, 4, 6}) {
    const LeakReport report = leaks_of(steps, [](TrainingScene&, int) {});
    EXPECT_TRUE(report.leaks.empty()) << report.leaks[0].line;
    EXPECT_TRUE(report.why_not.empty());
    ASSERT_EQ(report.at_step_end.size(), static_cast<std::size_t>(steps));
    for (const Bytes bytes : report.at_step_end) EXPECT_EQ(bytes, 1000 + 1000 + 2000);
  }
}

TEST(Leaks, AListThatKeepsEveryLossWithItsGraph) {
  for (const int steps : {3, 5}) {
    std::vector<StackId> lines;
    const LeakReport report = leaks_of(steps, [&](TrainingScene& s, int step) {
      if (step == 0) lines = {s.forward_at(77), s.forward_at(78)};
      s.b.alloc(4, lines[0]);
      s.b.alloc(700, lines[1]);
      s.b.alloc(300, lines[1]);
    });
    ASSERT_EQ(report.leaks.size(), 2u);
    EXPECT_EQ(report.leaks[0].line, "model.py:78 forward");
    EXPECT_EQ(report.leaks[0].per_step, 1000);
    EXPECT_EQ(report.leaks[0].steps, static_cast<std::uint32_t>(steps - 1)) << "of the last one nobody knows yet";
    EXPECT_EQ(report.leaks[0].blocks, 2u * static_cast<std::uint64_t>(steps - 1));
    EXPECT_EQ(report.leaks[0].kind, StorageKind::activation);
    EXPECT_EQ(report.leaks[1].line, "model.py:77 forward");
    EXPECT_EQ(report.leaks[1].per_step, 4);
    EXPECT_EQ(report.at_step_end[1] - report.at_step_end[0], 1004);
  }
}

TEST(Leaks, WhatTheNextStepReplacesIsNone) {
  Address last = 0;
  StackId line = 0;
  const LeakReport report = leaks_of(5, [&](TrainingScene& s, int step) {
    if (step == 0) line = s.forward_at(77);
    const Address next = s.b.alloc(700, line);
    if (last != 0) s.b.free(last, line);
    last = next;
  });
  EXPECT_TRUE(report.leaks.empty());
}

TEST(Leaks, AQueueOfTheLastFewIsNone) {
  for (const int steps : {3, 4, 6}) {
    std::vector<Address> queue;
    StackId line = 0;
    const LeakReport report = leaks_of(steps, [&](TrainingScene& s, int step) {
      if (step == 0) line = s.forward_at(77);
      queue.push_back(s.b.alloc(700, line));
      if (queue.size() < 3) return;
      s.b.free(queue.front(), line);
      queue.erase(queue.begin());
    });
    EXPECT_TRUE(report.leaks.empty()) << steps;
  }
}

TEST(Leaks, AQueueThatStandsStillInTheLastStepIsNone) {
  std::vector<Address> queue;
  StackId line = 0;
  const LeakReport report = leaks_of(6, [&](TrainingScene& s, int step) {
    if (step == 0) line = s.forward_at(77);
    if (step == 5) return;
    queue.push_back(s.b.alloc(700, line));
    if (queue.size() < 3) return;
    s.b.free(queue.front(), line);
    queue.erase(queue.begin());
  });
  EXPECT_TRUE(report.leaks.empty());
}

TEST(Leaks, WhatIsReplacedByALargerOneIsNone) {
  Address last = 0;
  StackId line = 0;
  const LeakReport report = leaks_of(5, [&](TrainingScene& s, int step) {
    if (step == 0) line = s.forward_at(77);
    if (step == 4) return;
    const Address next = s.b.alloc(700 * (step + 1), line);
    if (last != 0) s.b.free(last, line);
    last = next;
  });
  EXPECT_TRUE(report.leaks.empty());
  EXPECT_GT(report.at_step_end[3], report.at_step_end[0]);
}

TEST(Leaks, OneThatBeginsInTheSecondStepIsSeenInFourAndOneThatPausesIsNot) {
  StackId line = 0;
  const auto from_second = [&](TrainingScene& s, int step) {
    if (step == 0) line = s.forward_at(77);
    if (step > 0) s.b.alloc(700, line);
  };
  EXPECT_TRUE(leaks_of(3, from_second).leaks.empty()) << "one step is no pattern";
  const LeakReport report = leaks_of(4, from_second);
  ASSERT_EQ(report.leaks.size(), 1u);
  EXPECT_EQ(report.leaks[0].steps, 2u);
  const auto pausing = [&](TrainingScene& s, int step) {
    if (step == 0) line = s.forward_at(77);
    if (step != 2) s.b.alloc(700, line);
  };
  EXPECT_TRUE(leaks_of(5, pausing).leaks.empty());
}

TEST(Leaks, TwoStepsAreTooFew) {
  const LeakReport report = leaks_of(2, [](TrainingScene& s, int) { s.b.alloc(10, s.forward); });
  EXPECT_TRUE(report.leaks.empty());
  EXPECT_NE(report.why_not.find("2 whole training steps;"), std::string::npos);
  EXPECT_EQ(report.at_step_end.size(), 2u);
  RecordingBuilder b;
  EXPECT_NE(find_leaks(b.recording(), table_of(b)).why_not, "");
}

TEST(LateFree, NothingInAStepThatFreesWhatItCan) {
  TrainingScene s;
  s.b.alloc(1000, s.construction);
  auto left = s.step();
  for (int step = 0; step < 3; ++step) left = s.step({left.gradient});
  // The scene frees batch and loss after the optimizer: that is reported, and nothing else.
  const auto rules = find_late_frees(table_of(s.b), 5);
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_NE(held(rules, "Results of a forward pass"), nullptr);
  EXPECT_NE(held(rules, "Inputs are kept"), nullptr);
}

TEST(LateFree, GradientsDuringTheNextForward) {
  TrainingScene s;
  std::vector<Address> gradients;
  std::uint32_t forward_peak = 0, backward_peak = 0;
  for (int step = 0; step < 3; ++step) {
    const Address saved = s.b.alloc(5000, s.forward);
    forward_peak = s.b.now() - 1;
    for (const Address gradient : gradients) s.b.free(gradient, s.zero_grad);  // too late
    s.touch(s.backward);
    gradients = {s.b.alloc(1000, s.accumulate), s.b.alloc(400, s.accumulate)};
    if (step == 0) backward_peak = s.b.now() - 1;
    s.b.free(saved, s.backward);
    s.touch(s.optimizer);
  }
  const AllocationTable table = table_of(s.b);
  const LateFree* late = nullptr;
  const auto at_forward = find_late_frees(table, forward_peak);
  ASSERT_NE(late = held(at_forward, "Gradients are kept"), nullptr);
  EXPECT_EQ(late->at_peak, 1400);
  EXPECT_EQ(late->most, 1400);
  EXPECT_EQ(late->blocks, 4u) << "those of the last step are not in anyone's way";
  EXPECT_EQ(held(find_late_frees(table, backward_peak), "Gradients are kept")->at_peak, 0);
  EXPECT_EQ(held(find_late_frees(table, Allocation::kBefore), "Gradients are kept")->at_peak, 0);
}

TEST(LateFree, GradientsThatMicroBatchesAddUpAreNeeded) {
  TrainingScene s;
  Address gradient = 0;
  for (int step = 0; step < 2; ++step) {
    if (gradient != 0) s.b.free(gradient, s.zero_grad);
    s.touch(s.forward);
    gradient = s.b.alloc(1000, s.accumulate);
    const Address saved = s.b.alloc(5000, s.forward);
    s.touch(s.backward);
    s.b.free(saved, s.backward);
    s.touch(s.optimizer);
  }
  EXPECT_EQ(held(find_late_frees(table_of(s.b), 2), "Gradients"), nullptr);
}

TEST(LateFree, GradientsKeptForGoodAreInTheWayOfEveryForward) {
  TrainingScene s;
  for (int step = 0; step < 3; ++step) {
    const Address saved = s.b.alloc(5000, s.forward);
    if (step == 0) s.b.alloc(1000, s.accumulate);
    s.touch(s.backward);
    s.b.free(saved, s.backward);
    s.touch(s.optimizer);
  }
  const auto rules = find_late_frees(table_of(s.b), 0);
  ASSERT_NE(held(rules, "Gradients"), nullptr);
  EXPECT_EQ(held(rules, "Gradients")->most, 1000);
  EXPECT_GE(held(rules, "Gradients")->blocks, 1u);
}

TEST(LateFree, ALossKeptByItsVariableUntilTheNextOne) {
  TrainingScene s;
  Address loss = 0, cache = 0;
  std::uint32_t second_forward = 0, optimizer = 0;
  for (int step = 0; step < 3; ++step) {
    const Address saved = s.b.alloc(5000, s.forward);
    if (step == 0) cache = s.b.alloc(64, s.forward_at(90));
    const Address next = s.b.alloc(800, s.loss);
    if (step == 1) second_forward = s.b.now() - 1;
    if (loss != 0) s.b.free(loss, s.loss);
    loss = next;
    s.b.alloc(1000, s.accumulate);
    s.b.free(saved, s.backward);
    s.touch(s.optimizer);
    if (step == 0) optimizer = s.b.now() - 1;
  }
  const AllocationTable table = table_of(s.b);
  const auto rules = find_late_frees(table, second_forward);
  const LateFree* results = held(rules, "Results of a forward pass");
  ASSERT_NE(results, nullptr);
  EXPECT_EQ(results->at_peak, 800) << "the cache of " << cache << " is used again in every step";
  EXPECT_EQ(results->most, 800);
  EXPECT_EQ(results->blocks, 3u);
  EXPECT_EQ(held(find_late_frees(table, optimizer), "Results")->at_peak, 800);
  EXPECT_EQ(held(find_late_frees(table, 2), "Results")->at_peak, 0) << "its own backward pass needs it";
}

TEST(LateFree, AnActivationThatALaterBackwardPassFreesWasNeeded) {
  TrainingScene s;  // two micro-batches in flight, as pipelines have them
  const Address first = s.b.alloc(5000, s.forward), second = s.b.alloc(5000, s.forward);
  s.touch(s.backward);
  s.b.free(first, s.backward);
  const Address third = s.b.alloc(5000, s.forward);
  s.touch(s.backward);
  s.b.free(second, s.backward);
  s.b.free(third, s.backward);
  s.touch(s.optimizer);
  EXPECT_EQ(held(find_late_frees(table_of(s.b), 2), "Results"), nullptr);
}

TEST(LateFree, ResultsOfTheStepBeforeTheRecording) {
  TrainingScene s;
  s.b.alloc(10, s.forward);
  s.b.free(512, s.forward);
  s.b.alloc(10, s.backward);
  StartState start;
  start.segments.push_back({0, 4096, 0, false, false, 0, {{512, 1024, 700, Use::in_use}}});
  const auto rules = find_late_frees(table_of(s.b, start), 0);
  ASSERT_NE(held(rules, "Results"), nullptr);
  EXPECT_EQ(held(rules, "Results")->at_peak, 700);
}

TEST(LateFree, ABatchDuringTheOptimizer) {
  TrainingScene s;
  const Address early = s.b.alloc(300, s.batch), late = s.b.alloc(200, s.batch), fixed = s.b.alloc(50, s.batch);
  std::uint32_t optimizer = 0;
  for (int step = 0; step < 2; ++step) {
    const Address saved = s.b.alloc(5000, s.forward);
    s.touch(s.backward);
    s.b.free(saved, s.backward);
    if (step == 0) s.b.free(early, s.script_line);
    s.touch(s.optimizer);
    if (step == 0) optimizer = s.b.now() - 1;
    if (step == 0) s.b.free(late, s.script_line);
  }
  const AllocationTable table = table_of(s.b);
  const auto rules = find_late_frees(table, optimizer);
  const LateFree* inputs = held(rules, "Inputs are kept");
  ASSERT_NE(inputs, nullptr);
  EXPECT_EQ(inputs->most, 200) << "not the one at " << fixed << ", which every step uses";
  EXPECT_EQ(inputs->blocks, 1u);
  EXPECT_EQ(inputs->at_peak, 200);
}

TEST(LateFree, TemporariesOfTheOptimizer) {
  TrainingScene s;
  std::uint32_t forward = 0;
  for (int step = 0; step < 2; ++step) {
    s.touch(s.forward);
    s.touch(s.backward);
    const Address update = s.b.alloc(900, s.optimizer), square = s.b.alloc(100, s.optimizer);
    s.b.free(square, s.optimizer);
    s.touch(s.forward);
    forward = s.b.now() - 1;
    s.b.free(update, s.script_line);
  }
  s.touch(s.backward);
  s.touch(s.optimizer);
  const auto rules = find_late_frees(table_of(s.b), forward);
  const LateFree* temporaries = held(rules, "Temporaries of the optimizer");
  ASSERT_NE(temporaries, nullptr);
  EXPECT_EQ(temporaries->most, 900);
  EXPECT_EQ(temporaries->at_peak, 900);
  EXPECT_EQ(temporaries->blocks, 2u);
}

TEST(LateFree, WhatWasMadeWithoutGradientsAndLivesThroughBackward) {
  using S = TrainingScene;
  TrainingScene s;
  const StackId reference = s.b.stack({S::model("forward", 3), S::torch("_call_impl", "nn/modules/module.py"),
                                       S::torch("decorate_context", "utils/_contextlib.py"), S::script(4)});
  const Address log_probabilities = s.b.alloc(600, reference), saved = s.b.alloc(5000, s.forward);
  s.touch(s.backward);
  const std::uint32_t peak = s.b.now() - 1;
  s.b.free(saved, s.backward);
  s.touch(s.optimizer);
  s.b.free(log_probabilities, s.script_line);
  s.touch(s.forward);
  const auto rules = find_late_frees(table_of(s.b), peak);
  ASSERT_EQ(rules.size(), 1u) << "counted by one rule only";
  EXPECT_TRUE(rules[0].rule.starts_with("Results made without gradients"));
  EXPECT_EQ(rules[0].at_peak, 600);
}

TEST(LateFree, LargestAtThePeakFirst) {
  TrainingScene s;
  auto left = s.step();
  s.step({left.gradient});
  const AllocationTable table = table_of(s.b);
  for (std::uint32_t peak = 0; peak < s.b.now(); ++peak) {
    const auto rules = find_late_frees(table, peak);
    for (std::size_t i = 1; i < rules.size(); ++i) EXPECT_GE(rules[i - 1].at_peak, rules[i].at_peak);
  }
  RecordingBuilder empty;
  EXPECT_TRUE(find_late_frees(table_of(empty), Allocation::kBefore).empty());
}

// A rule has a number for every event, and a second one while it looks at windows.
TEST(LateFree, RulesAreLookedAtOneByOne) {
  if (!kFreedMemoryIsReused) GTEST_SKIP() << "a sanitizer keeps what was freed";
  constexpr std::size_t kEvents = 4'000'000;
  AllocationTable table;
  table.phases.assign(kEvents, Phase::forward);
  const Bytes before = most_resident();
  EXPECT_TRUE(find_late_frees(table, 0).empty());
  EXPECT_LT(most_resident() - before, static_cast<Bytes>(kEvents * sizeof(Bytes) * 3));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
