// Do scenarios of jobs over many GPUs say folded what they say written out, and are only those folded that can be?
#include "study/layout/folded_scenarios.h"

#include <gtest/gtest.h>

#include "study/explain/explanation.h"
#include "study/sweep/outcome_fields.h"
#include "study/sweep/sweep.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kSmall = "gpt3-175b:layers=8,width=2048,heads=16,sequence=1024,";

Scenario scenario_of(const std::string& settings) { return {.step = {kSmall + settings}, .machine = "dgx-a100-80gb"}; }

void expect_as_written_out(Study& study, FoldedScenarios& folded, const Scenario& scenario, double tolerance) {
  SCOPED_TRACE(to_text(scenario));
  ASSERT_TRUE(FoldedScenarios::takes(study, scenario));
  const std::optional<FoldedFigures> figures = folded.figures(scenario);
  ASSERT_TRUE(figures);
  const OutcomeFields truth = quick_fields(study.run(scenario, {.record = false}).run);
  const auto field = [&](const char* name) { return truth.find(name).value_or(-1); };
  EXPECT_EQ(static_cast<double>(figures->peak_allocated), field("peak_allocated_bytes"));
  EXPECT_EQ(static_cast<double>(figures->peak_reserved), field("peak_reserved_bytes"));
  EXPECT_EQ(static_cast<double>(figures->missing), field("missing_bytes"));
  EXPECT_EQ(figures->missing == 0, field("fits") == 1);
  EXPECT_NEAR(to_seconds(figures->step_time), field("step_time_s"), tolerance * field("step_time_s"));
  EXPECT_NEAR(to_seconds(figures->total), field("total_s"), tolerance * field("total_s"));
  EXPECT_NEAR(figures->tokens_per_step, field("tokens_per_s") * field("step_time_s"), 1e-6 * figures->tokens_per_step);
  EXPECT_NEAR(figures->samples_per_step, field("samples_per_s") * field("step_time_s"),
              1e-6 * figures->samples_per_step);
}

TEST(FoldedScenarios, SayWhatTheJobWrittenOutSays) {
  Study study;
  FoldedScenarios folded(study);
  for (const char* const settings :
       {"tensor=2,pipeline=4,micro_batch=1,batch=12",
        "tensor=4,pipeline=2,interleave=2,sequence_parallel=1,micro_batch=2,batch=16",
        "pipeline=2,data_parallel=4,distributed_optimizer=1,overlap_grad_reduce=1,micro_batch=1,batch=6",
        "tensor=2,data_parallel=2,micro_batch=1,batch=5",
        "pipeline=4,parallel_framework=deepspeed,micro_batch=1,batch=9",
        "tensor=2,parallel_framework=deepspeed,micro_batch=1,batch=8",
        "tensor=2,parallel_framework=torchtitan,sequence_parallel=1,micro_batch=1,batch=4,tied_embedding=0",
        "tensor=2,pipeline=2,data_parallel=3,micro_batch=1,batch=9"})
    expect_as_written_out(study, folded, scenario_of(settings), 0.015);
}

// Where the host decides (layers of 1,024). Under DeepSpeed passes without messages were written out into a trace in
// which nothing is allocated, so that the host's calls of the allocator were missing, 10 to 13 % of a step.
TEST(FoldedScenarios, CountTheHostsCallsOfTheAllocator) {
  Study study;
  FoldedScenarios folded(study);
  for (const char* const layout :
       {"tensor=2,micro_batch=1,batch=8", "tensor=4,micro_batch=1,batch=4,data_parallel=2,distributed_optimizer=1",
        "tensor=2,pipeline=2,micro_batch=1,batch=8", "tensor=2,pipeline=2,micro_batch=1,batch=8,pipe_partitioned=0"}) {
    Scenario s{.step = {std::string("gpt3-175b:layers=4,width=1024,heads=16,sequence=1024,tied_embedding=0,"
                                    "parallel_framework=deepspeed,") +
                        layout},
               .machine = "dgx-a100-80gb"};
    s.allocator = "ideal";
    expect_as_written_out(study, folded, s, 0.03);
  }
}

// What a scenario says besides its layout: settings of the machine, a budget, factors, the allocator.
TEST(FoldedScenarios, FollowMachineBudgetScaleAndAllocator) {
  Study study;
  FoldedScenarios folded(study);
  const Scenario plain = scenario_of("tensor=2,pipeline=4,micro_batch=1,batch=12");
  Scenario other = plain;
  other.settings = {"gpu.hbm.bandwidth=1TB/s"};
  expect_as_written_out(study, folded, other, 0.015);
  EXPECT_GT(folded.figures(other)->step_time, folded.figures(plain)->step_time);
  other = plain;
  other.scale = {"kernels=1.3", "collectives=2"};
  expect_as_written_out(study, folded, other, 0.015);
  other = plain;
  other.budget = "2GiB";
  expect_as_written_out(study, folded, other, 0.015);
  EXPECT_GT(folded.figures(other)->missing, 0);
  other = plain;
  other.allocator = "ideal";
  expect_as_written_out(study, folded, other, 0.015);
}

TEST(FoldedScenarios, TakeOnlyWhatTheyCanFold) {
  Study study;
  const Scenario plain = scenario_of("tensor=2,pipeline=2,micro_batch=1,batch=8");
  EXPECT_TRUE(FoldedScenarios::takes(study, plain));
  const auto refuses = [&](const auto& change) {
    Scenario other = plain;
    change(other);
    EXPECT_FALSE(FoldedScenarios::takes(study, other)) << to_text(other);
  };
  refuses([](Scenario& s) { s.policies = {"offload:what=optimizer"}; });
  refuses([](Scenario& s) { s.pager = "lru"; });
  refuses([](Scenario& s) { s.repeat = 2; });
  refuses([](Scenario& s) { s.machine.clear(); });
  refuses([](Scenario& s) { s.settings = {"rank[3].gpu.clock=0.9"}; });
  refuses([](Scenario& s) { s.scale = {"kernels=1.1,rank=1"}; });
  refuses([](Scenario& s) { s.allocator_settings = "expandable_segments:True"; });
  refuses([](Scenario& s) { s.step.front() += ",launch_blocking=1"; });
  refuses([](Scenario& s) { s.step = {"gpt3-175b:layers=8"}; });
  refuses([](Scenario& s) { s.step = {"no-such-network:tensor=2"}; });
  refuses([](Scenario& s) { s.step.push_back("gpt3-175b:tensor=2"); });
}

// Settings that are no layout do not share costs: each is as if it stood alone.
TEST(FoldedScenarios, EachIsAsIfItStoodAlone) {
  Study study;
  FoldedScenarios together(study);
  for (const char* const settings :
       {"tensor=2,micro_batch=1,batch=4", "tensor=2,micro_batch=1,batch=4,vocabulary=100000",
        "tensor=2,micro_batch=1,batch=4,precision=fp16",
        "tensor=2,micro_batch=1,batch=4,rank_order=tensor_pipeline_data"}) {
    FoldedScenarios alone(study);
    const FoldedFigures one = *alone.figures(scenario_of(settings)), other = *together.figures(scenario_of(settings));
    EXPECT_EQ(one.step_time, other.step_time) << settings;
    EXPECT_EQ(one.peak_reserved, other.peak_reserved) << settings;
  }
}

// Tensor-parallel groups of six lie within a node of eight or across two: what one layout's messages take says nothing
// of another's, in whatever order and on however many threads they are asked.
TEST(FoldedScenarios, GroupsThatLieElsewhereHavePricesOfTheirOwn) {
  Study study;
  std::vector<Scenario> scenarios;
  for (const char* const layout :
       {"pipeline=1,data_parallel=1", "pipeline=2,data_parallel=1", "pipeline=2,data_parallel=2",
        "pipeline=4,data_parallel=1", "pipeline=4,data_parallel=2"})
    scenarios.push_back(
        {.step = {std::string("gpt3-175b:layers=4,width=1536,heads=12,sequence=512,tensor=6,micro_batch=1,"
                              "global_batch=8,") +
                  layout},
         .machine = "dgx-a100-80gb"});
  std::vector<Duration> steps;
  for (const Scenario& s : scenarios) steps.push_back(FoldedScenarios(study).figures(s)->step_time);
  FoldedScenarios forwards(study), backwards(study);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    EXPECT_EQ(forwards.figures(scenarios[i])->step_time, steps[i]) << scenarios[i].step.front();
    const std::size_t last = scenarios.size() - 1 - i;
    EXPECT_EQ(backwards.figures(scenarios[last])->step_time, steps[last]) << scenarios[last].step.front();
  }
}

SweepRequest layouts() {
  SweepRequest request{.base = scenario_of("micro_batch=1,batch=8,tensor=2"), .space = {}, .jobs = 2};
  request.space.axes = {parse_axis("pipeline=1|2|4")};
  return request;
}

TEST(FoldedScenarios, SweepsFoldUnlessMoreIsAsked) {
  Study study;
  SweepRequest request = layouts();
  const SweepResult folded = sweep(study, request, nullptr);
  for (const SweepPoint& point : folded.points) EXPECT_EQ(point.record.find("folded"), 1) << point.record.error;
  request.fields = {"gpu_span_s"};
  for (const SweepPoint& point : sweep(study, request, nullptr).points) EXPECT_FALSE(point.record.find("folded"));
  request.fields.clear();
  request.written_out = true;
  const SweepResult written = sweep(study, request, nullptr);
  for (std::size_t i = 0; i < written.points.size(); ++i) {
    const PointRecord &one = folded.points[i].record, &other = written.points[i].record;
    EXPECT_FALSE(other.find("folded"));
    EXPECT_EQ(one.find("peak_reserved_bytes"), other.find("peak_reserved_bytes"));
    EXPECT_NEAR(*one.find("step_time_s"), *other.find("step_time_s"), 0.015 * *other.find("step_time_s"));
  }
}

// The elasticity of a folded job is that of the job written out, within what both round off.
TEST(FoldedScenarios, ExplanationsVaryTheJobFolded) {
  Study study;
  const Scenario scenario = scenario_of("tensor=2,pipeline=2,micro_batch=1,batch=8");
  const Explanation explained =
      explain(study, {.scenario = scenario, .only = {"scale.kernels", "gpu.hbm.bandwidth"}, .regret = false}, nullptr);
  EXPECT_NEAR(explained.folded_step_time, explained.here.step_time, 0.015 * explained.here.step_time);
  ASSERT_EQ(explained.sensitivities.size(), 2u);
  for (const Sensitivity& s : explained.sensitivities) {
    const auto step_at = [&](double value) {
      return to_seconds(mean_step(study.run(with_value(scenario, s.number, value), {.record = false}).run));
    };
    const Elasticity truth =
        elasticity(ValueOutcome{s.lower.value, step_at(s.lower.value)}, {s.number.value, explained.here.step_time},
                   ValueOutcome{s.upper.value, step_at(s.upper.value)});
    EXPECT_NEAR(*s.step_time.central, *truth.central, 0.01) << s.number.name;
  }
  EXPECT_FALSE(explained.next.empty());
  for (const NextBound& bound : explained.next) EXPECT_FALSE(bound.reason_now.empty()) << bound.number.name;
}

// A journal keeps both apart.
TEST(FoldedScenarios, AJournalDoesNotTakeOneForTheOther) {
  PointKeys keys;
  const Scenario scenario = scenario_of("tensor=2,micro_batch=1,batch=8");
  EXPECT_NE(keys.key(scenario, false, true), keys.key(scenario, false, false));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
