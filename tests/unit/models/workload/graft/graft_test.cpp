// Does a step that is taken apart, into what a profiler sees and what a capture without times sees, come together
// again; and is what has no partner told, kept or priced, and nothing else moved?
#include "models/workload/graft/graft.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/repeat.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/profile_of.h"
#include "tests/support/same_program.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class GraftTest : public ::testing::Test {
 protected:
  static GptShape shape(int steps = 1) {
    GptShape gpt;
    gpt.layers = 3;
    gpt.hidden = 64;
    gpt.sequence = 32;
    gpt.steps = steps;
    gpt.host_gap = microseconds(3);
    gpt.launch_cost = microseconds(4);
    gpt.allocator_cost = nanoseconds(700);
    return gpt;
  }

  GraftedTrace grafted(const Trace& measured, const Trace& complete, const OperatorCalls& calls = {}) const {
    GraftedTrace result = graft(measured, complete, calls);
    EXPECT_EQ(check(result.trace), std::vector<std::string>{});
    return result;
  }

  const Machine machine_ = test_machine();
};

TEST_F(GraftTest, AStepOntoItselfIsItself) {
  for (const int steps : {1, 2}) {
    const Trace step = gpt_step(shape(steps));
    const GraftedTrace result = grafted(step, step);
    EXPECT_EQ(program_difference(result.trace, step), "");
    EXPECT_EQ(result.report.unpaired_share(), 0);
    EXPECT_EQ(result.report.sure_share(), 1);
    EXPECT_EQ(result.report.by_name.lines, result.report.measured.lines);
  }
}

TEST_F(GraftTest, AProfileOfAStepOntoTheStepIsTheStep) {
  for (const int steps : {1, 3}) {
    const Trace step = with_end_marks(gpt_step(shape(steps)));
    const Trace profile = profile_of(step);
    ASSERT_EQ(check(profile), std::vector<std::string>{});
    ASSERT_LT(profile.ops.size(), step.ops.size());
    EXPECT_EQ(program_difference(grafted(profile, step).trace, step), "");
  }
}

// Times of the profile, whatever those of the complete step: of each line, and of each thread's host in all.
TEST_F(GraftTest, TimesAreTheProfiles) {
  const Trace step = with_end_marks(gpt_step(shape()));
  Trace profile = profile_of(step), slow = step;
  for (Op& op : profile.ops) op.duration *= 3, op.host_gap *= 2, op.host_cost += nanoseconds(5);
  const Trace result = grafted(profile, step).trace;
  std::vector<Duration> durations, expected;
  Duration host{}, expected_host{};
  for (const Op& op : result.ops) {
    if (is_device_line(op.kind)) durations.push_back(op.duration);
    host += op.host_gap + op.host_cost;
  }
  for (const Op& op : profile.ops) {
    if (is_device_line(op.kind)) expected.push_back(op.duration);
    expected_host += op.host_gap + op.host_cost;
  }
  EXPECT_EQ(durations, expected);
  EXPECT_EQ(host, expected_host);
  // Of the host time before a line allocations have the share that they have in the complete step, twice their time.
  const auto first_alloc = std::ranges::find(result.ops, OpKind::alloc, &Op::kind);
  const auto alloc_of_step = std::ranges::find(step.ops, OpKind::alloc, &Op::kind);
  EXPECT_EQ(first_alloc->host_cost, 2 * alloc_of_step->host_cost);
}

TEST_F(GraftTest, OneCompleteStepStandsForEachOfTheProfiles) {
  const Trace step = with_end_marks(gpt_step(shape()));
  const Trace three = repeated(step, 3);
  const GraftedTrace result = grafted(profile_of(three), step);
  EXPECT_EQ(result.report.repeats, 3u);
  EXPECT_EQ(program_difference(result.trace, three), "");
  const Trace two = repeated(step, 2);
  EXPECT_THROW(graft(profile_of(three), two), UsageError);
}

// A window whose steps nobody marked, and a step that leaves its gradients behind.
TEST_F(GraftTest, OneCompleteStepStandsInAWindowAsOftenAsItsOperatorsOccur) {
  const Trace step = with_end_marks(gpt_step(shape()));
  Trace profile = profile_of(repeated(step, 5));
  profile.steps = {{"window", profile.steps.front().first, profile.steps.back().last}};
  const GraftedTrace result = grafted(profile, step);
  EXPECT_EQ(result.report.repeats, 5u);
  EXPECT_EQ(result.report.unpaired_share(), 0);
  EXPECT_EQ(result.trace.steps.size(), 1u);
  StepProgram p;
  const StorageId gradient = p.make(1000, "gradient", StorageKind::gradient);
  p.op("aten::mm", {}, {gradient});
  const Trace leaves = with_end_marks(std::move(p).finish());
  Trace twice = profile_of(repeated(leaves, 3));
  const Trace together = grafted(twice, leaves).trace;
  std::size_t frees = 0;
  for (const Op& op : together.ops) frees += op.kind == OpKind::free ? 1 : 0;
  EXPECT_EQ(frees, 3u) << "each round's ends with it";
}

// A call of two kernels: the second reads what the first wrote, and both read what the call reads.
TEST_F(GraftTest, SeveralKernelsOfACallAreOneOperator) {
  Trace step = with_end_marks(gpt_step(shape()));
  Trace profile = profile_of(step);
  const auto line =
      static_cast<OpId>(std::ranges::find_if(profile.ops, [](const Op& op) { return is_device_line(op.kind); }) -
                        profile.ops.begin()) +
      5;
  const OpId of = [&] {  // the line in the complete step
    OpId lines = 0;
    for (OpId id = 0; id < step.ops.size(); ++id)
      if (is_line(step.ops[id].kind) && lines++ == line) return id;
    return kNoOp;
  }();
  Op second = profile.ops[line];
  ASSERT_TRUE(is_device_line(second.kind));
  second.name = profile.strings.intern("second kernel");
  second.duration = microseconds(77);
  second.host_gap = Duration{};
  profile.ops.insert(profile.ops.begin() + line + 1, second);
  for (Step& s : profile.steps) s.last += 1;
  for (Op& op : profile.ops)
    if (op.kind == OpKind::hand_over && op.target > line) ++op.target;
  OperatorCalls calls{std::vector<std::uint32_t>(profile.ops.size(), kNoOp), {}};
  calls.outermost = calls.innermost;
  calls.outermost[line] = calls.outermost[line + 1] = 7;
  for (std::uint32_t use = 0; use < step.ops[of].use_count; ++use) step.uses[step.ops[of].first_use + use].saved = true;
  const GraftedTrace result = grafted(profile, step, calls);
  EXPECT_EQ(result.report.alone.lines, 0u);
  EXPECT_EQ(result.report.priced.lines, 0u);
  const Trace& t = result.trace;
  const auto behind = std::ranges::find_if(t.ops, [&](const Op& op) { return t.strings[op.name] == "second kernel"; });
  ASSERT_NE(behind, t.ops.end());
  const Op& first = *(behind - 1);
  std::size_t reads = 0, writes = 0;
  for (const Use& use : t.uses_of(*behind)) (use.access == Access::write ? writes : reads)++;
  EXPECT_EQ(t.uses_of(first).size(), step.uses_of(step.ops[of]).size());
  EXPECT_GE(writes, 1u);
  EXPECT_GT(reads, t.uses_of(first).size() - writes) << "what the first wrote, too";
  for (const Use& use : t.uses_of(first)) EXPECT_EQ(use.saved, use.access == Access::read) << "before it runs";
  for (const Use& use : t.uses_of(*behind)) EXPECT_EQ(use.saved, use.access == Access::write) << "behind it";
}

// A generated step does not say what autograd keeps; the profile's sequence numbers do.
TEST_F(GraftTest, SequenceNumbersOfTheProfileTellWhatAutogradKeeps) {
  const Trace step = gpt_step(shape());
  Trace profile = step;
  OperatorCalls calls{std::vector<std::uint32_t>(step.ops.size(), kNoOp), {}};
  calls.outermost = calls.innermost;
  calls.nodes.resize(step.ops.size());
  const auto first_read_in_backward = [&](const Use& made) {
    for (OpId id = 0; id < step.ops.size(); ++id)
      for (const Use& use : step.uses_of(step.ops[id]))
        if (step.ops[id].phase == Phase::backward && use.access == Access::read && use.storage == made.storage &&
            use.version == made.version)
          return id;
    return kNoOp;
  };
  OpId maker = kNoOp, reader = kNoOp;
  for (OpId id = 0; id < step.ops.size() && reader == kNoOp; ++id)
    for (const Use& use : step.uses_of(step.ops[id]))
      if (step.ops[id].phase == Phase::forward && use.access == Access::write)
        maker = id, reader = first_read_in_backward(use);
  ASSERT_NE(reader, kNoOp);
  EXPECT_EQ(std::ranges::count_if(grafted(profile, step, calls).trace.uses, &Use::saved), 0) << "none has a number";
  calls.nodes[maker] = {12, false};
  calls.nodes[reader] = {12, true};
  const Trace result = grafted(profile, step, calls).trace;
  EXPECT_EQ(result.ops[reader].source, maker);
  EXPECT_EQ(std::ranges::count_if(result.uses, &Use::saved),
            std::ranges::count_if(result.uses_of(result.ops[maker]), &Use::saved));
  EXPECT_TRUE(std::ranges::any_of(result.uses_of(result.ops[maker]),
                                  [](const Use& use) { return use.saved && use.access == Access::write; }));
}

TEST_F(GraftTest, WhatWasMeasuredAloneStaysAndIsTold) {
  const Trace step = with_end_marks(gpt_step(shape()));
  Trace profile = profile_of(step);
  Op more = profile.ops[20];
  ASSERT_TRUE(is_device_line(more.kind));
  more.name = profile.strings.intern("logging kernel");
  more.operator_name = profile.strings.intern("aten::histc");
  more.duration = microseconds(9);
  profile.ops.insert(profile.ops.begin() + 20, more);
  for (Step& s : profile.steps) s.last += 1;
  for (Op& op : profile.ops)
    if (op.kind == OpKind::hand_over && op.target >= 20) ++op.target;
  const GraftedTrace result = grafted(profile, step);
  ASSERT_EQ(result.report.left_alone.size(), 1u);
  EXPECT_EQ(result.report.left_alone[0].what, "aten::histc");
  EXPECT_EQ(result.report.left_alone[0].work.time, microseconds(9));
  EXPECT_EQ(result.report.priced.lines, 0u);
  EXPECT_EQ(result.trace.ops.size(), step.ops.size() + 1);
}

TEST_F(GraftTest, ALineOfTheProfileIsSplitByTheTimesOfWhatItIsTakenFor) {
  // Two elementwise operators in the complete step, one fused kernel in the profile.
  StepProgram p;
  const StorageId a = p.make(1000, "a"), b = p.make(1000, "b"), c = p.make(1000, "c");
  p.op("aten::mm", {}, {a});
  p.op("aten::mul", {a}, {b});
  p.op("aten::exp", {b}, {c});
  p.op("aten::mm", {c}, {});
  for (const StorageId s : {a, b, c}) p.drop(s);
  Trace step = with_end_marks(std::move(p).finish());
  std::vector<OpId> lines;
  for (OpId id = 0; id < step.ops.size(); ++id)
    if (is_device_line(step.ops[id].kind)) lines.push_back(id);
  ASSERT_EQ(lines.size(), 4u);
  step.ops[lines[1]].duration = microseconds(10);
  step.ops[lines[2]].duration = microseconds(30);
  Trace profile = profile_of(step);
  std::vector<OpId> measured;
  for (OpId id = 0; id < profile.ops.size(); ++id)
    if (is_device_line(profile.ops[id].kind)) measured.push_back(id);
  std::vector<bool> gone(profile.ops.size(), false);
  gone[measured[2]] = true;
  Op& fused = profile.ops[measured[1]];
  fused.operator_name = profile.strings.intern("triton_poi_fused_mul_exp");
  fused.name = fused.operator_name;
  fused.duration = microseconds(20);
  const GraftedTrace result = grafted(without_lines(profile, gone), step);
  EXPECT_EQ(result.report.by_place.lines, 1u);
  EXPECT_EQ(result.report.unpaired_share(), 0);
  std::vector<Duration> durations;
  for (const Op& op : result.trace.ops)
    if (is_device_line(op.kind)) durations.push_back(op.duration);
  ASSERT_EQ(durations.size(), 4u);
  EXPECT_EQ(durations[1], microseconds(5));
  EXPECT_EQ(durations[2], microseconds(15));
}

// By how much, is told; times stay as they were measured.
TEST_F(GraftTest, AnotherSizeIsTold) {
  Trace step = with_end_marks(gpt_step(shape()));
  Trace profile = profile_of(step);
  // Everything elementwise, of a size that both know; the profile's is a quarter.
  const auto with_size = [](Trace& trace, std::int64_t elements) {
    for (Op& op : trace.ops)
      if (op.kind == OpKind::kernel) {
        op.operator_class = OperatorClass::elementwise;
        op.shape = trace.shapes.intern({elements});
      }
  };
  with_size(step, 4'000'000);
  with_size(profile, 1'000'000);
  std::size_t kernels = 0;
  for (const Op& op : profile.ops) kernels += op.kind == OpKind::kernel ? 1 : 0;
  const GraftedTrace result = grafted(profile, step);
  EXPECT_TRUE(result.report.is_of_other_size);
  EXPECT_EQ(result.report.batch_ratio, 0.25);
  EXPECT_EQ(result.report.differing, kernels);
  EXPECT_EQ(result.report.of_that_ratio, kernels);
  Duration measured{}, kept{};
  for (const Op& op : profile.ops) measured += op.duration;
  for (const Op& op : result.trace.ops) kept += op.duration;
  EXPECT_EQ(kept, measured);
  with_size(step, 1'000'000);
  EXPECT_FALSE(grafted(profile, step).report.is_of_other_size);
}

// Memory that one call took and gave back: of the profile's memory events, as the complete step does not know it.
TEST_F(GraftTest, WorkspacesOfTheProfileStay) {
  const Trace step = with_end_marks(gpt_step(shape()));
  Trace profile = profile_of(step);
  const OpId line = 20;
  ASSERT_TRUE(is_device_line(profile.ops[line].kind));
  Op alloc;
  alloc.kind = OpKind::alloc, alloc.thread = profile.ops[line].thread, alloc.target = 0;
  Op free = alloc;
  free.kind = OpKind::free;
  const auto place = static_cast<std::uint8_t>(profile.places.size());  // of another number there
  profile.places.push_back("hbm");
  profile.storages.push_back({.bytes = 123'456'789, .place = place});
  profile.ops.insert(profile.ops.begin() + line + 1, free);
  profile.ops.insert(profile.ops.begin() + line, alloc);
  for (Step& s : profile.steps) s.last += 2;
  for (Op& op : profile.ops)
    if (op.kind == OpKind::hand_over && op.target >= line) op.target += 2;
  OperatorCalls calls{std::vector<std::uint32_t>(profile.ops.size(), kNoOp), {}};
  for (OpId id = line; id < line + 3; ++id) calls.innermost[id] = 4;
  calls.outermost = calls.innermost;
  const GraftedTrace result = grafted(profile, step, calls);
  EXPECT_EQ(result.report.workspaces, 1u);
  EXPECT_EQ(result.report.largest_workspace, 123'456'789);
  ASSERT_EQ(result.trace.storages.size(), step.storages.size() + 1);
  EXPECT_EQ(result.trace.storages.back().kind, StorageKind::workspace);
  EXPECT_EQ(result.trace.places[result.trace.storages.back().place], "hbm");
  const auto user = std::ranges::find_if(result.trace.ops, [&](const Op& op) {
    return is_device_line(op.kind) && std::ranges::any_of(result.trace.uses_of(op), [&](const Use& use) {
             return use.storage == result.trace.storages.size() - 1;
           });
  });
  ASSERT_NE(user, result.trace.ops.end());
  EXPECT_EQ(grafted(profile, step).report.workspaces, 0u) << "which call it was is not known";
}

// A profile of one operator over and over is no row of steps of a large network.
TEST_F(GraftTest, RoundsThatWouldFillTheMemoryAreRefused) {
  GptShape large = shape();
  large.layers = 40;
  const Trace step = gpt_step(large);
  Trace profile = profile_of(with_end_marks(gpt_step(shape())));
  const auto line = std::ranges::find_if(profile.ops, [](const Op& op) { return is_device_line(op.kind); });
  Op only = *line;
  profile.ops.resize(1);
  profile.ops.resize(20'000, only);
  profile.steps = {{"window", 0, 20'000}};
  EXPECT_THROW(graft(profile, step), UsageError);
}

// A gradient's all-reduce on a stream of its own, which the profile of one GPU does not have.
TEST_F(GraftTest, WorkThatTheProfileLacksStandsBehindItsInputs) {
  StepProgram p;
  const std::uint16_t communication = p.builder().add_stream("communication", StreamRole::communication);
  const StorageId gradient = p.preexisting(4'096, StorageKind::gradient, "gradient");
  const StorageId parameter = p.preexisting(4'096, StorageKind::parameter, "parameter");
  p.backward();
  Op slow;
  slow.kind = OpKind::kernel, slow.duration = microseconds(500);
  p.op("mm", {parameter}, {gradient}, slow);
  p.on_stream(communication);
  Op reduce;
  reduce.kind = OpKind::collective, reduce.collective = CollectiveKind::all_reduce, reduce.duration = microseconds(70);
  const OpId all_reduce = p.op("all_reduce", {gradient}, {gradient}, reduce);
  p.on_stream(0);
  p.op("adam", {gradient}, {parameter});
  p.op("add", {parameter}, {parameter});
  p.builder().trace().groups = {{"data", 2, {0, 1}}};
  const Trace step = with_end_marks(std::move(p).finish());
  std::vector<bool> leaves_out(step.ops.size(), false);
  leaves_out[all_reduce] = true;
  Trace profile = profile_of(without_lines(step, leaves_out));
  profile.groups = {{"other", 1, {0}}};
  const Trace result = grafted(profile, step).trace;
  const auto find = [&](std::string_view name) {
    return static_cast<OpId>(std::ranges::find_if(result.ops,
                                                  [&](const Op& op) {
                                                    return is_device_line(op.kind) &&
                                                           result.strings[op.operator_name] == name;
                                                  }) -
                             result.ops.begin());
  };
  const SimulationResult run = simulate(result, machine_, {});
  const OpId product = find("aten::mm"), reduced = find("aten::all_reduce"), adam = find("aten::adam");
  ASSERT_LT(std::max({product, reduced, adam}), result.ops.size());
  EXPECT_GE(run.records[reduced].start, run.records[product].end);
  EXPECT_GE(run.records[adam].start, run.records[reduced].end);
  EXPECT_EQ(result.groups.at(result.ops[reduced].group).name, "data");
  std::size_t edges = 0;
  for (const Op& op : result.ops) edges += op.kind == OpKind::event_wait ? 1 : 0;
  EXPECT_EQ(edges, 2u) << "one before the collective, one behind it";
}

// When work of before the window began is no host's time, and is not shared with what stands beside it.
TEST_F(GraftTest, WhatWasPlacedKeepsItsPlace) {
  const Trace step = with_end_marks(gpt_step(shape()));
  Trace profile = profile_of(step);
  const OpId line = 0;
  Op placed;
  placed.kind = OpKind::kernel, placed.placed = true, placed.host_gap = microseconds(77);
  placed.duration = microseconds(5), placed.name = profile.strings.intern("of before");
  profile.ops.insert(profile.ops.begin() + line + 1, placed);
  for (Step& s : profile.steps) {
    if (s.first > line) ++s.first;
    ++s.last;
  }
  for (Op& op : profile.ops)
    if (op.kind == OpKind::hand_over && op.target > line) ++op.target;
  const Trace result = grafted(profile, step).trace;
  const auto kept = std::ranges::find_if(result.ops, &Op::placed);
  ASSERT_NE(kept, result.ops.end());
  EXPECT_EQ(kept->host_gap, microseconds(77));
  Duration host{}, expected{};
  for (const Op& op : result.ops) host += op.placed ? Duration{} : op.host_gap + op.host_cost;
  for (const Op& op : step.ops) expected += op.host_gap + op.host_cost;
  EXPECT_EQ(host, expected);
}

TEST_F(GraftTest, WhatCannotBeGraftedIsRefusedByASentence) {
  const Trace step = gpt_step(shape());
  Trace without_dataflow = step;
  without_dataflow.knowledge.dataflow = false;
  EXPECT_THROW(graft(step, without_dataflow), UsageError);
  Trace untimed = step;
  untimed.knowledge.timing = false;
  EXPECT_THROW(graft(untimed, step), UsageError);
  Trace ranks = step;
  ranks.rank_table.resize(2);
  EXPECT_THROW(graft(ranks, step), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
