// Two stages worked out by hand: where each one's time goes, who is slowest and what that costs, when passes run, and
// what training takes.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "tests/support/rank_program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/pipeline_passes.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

void mark(RankAuthor& author, std::string_view name) {
  const OpId id = author.mark();
  author.trace().ops[id].name = author.trace().strings.intern(name);
}

// What the compute stream issues and waits for at once.
void communicate(RankAuthor& author, std::uint32_t rendezvous, Duration time, std::uint16_t group) {
  author.order(0, 1);
  author.meet(rendezvous, time, 1, group);
  author.order(1, 0);
}

// Rank 0 (for 0 and 1) has layers 0 and 1, rank 2 (for 2 and 3) layer 2 and the loss. One micro-batch: forward 100 us,
// message 10 us, forward 200 us with 20 us of a tensor-parallel collective behind it, backward 130 us, message 10 us,
// backward 150 us.
Trace two_stages(Duration second = us(200)) {
  RankAuthor a(0), b(2);
  for (RankAuthor* author : {&a, &b}) {
    author->trace().groups = {{"pipeline", 2, {0, 2}}, {"tensor parallel", 2, {}}};
    author->trace().job_ranks = 4;
  }
  a.trace().tokens_per_step = 1000;
  a.trace().samples_per_step = 1;
  mark(a, "forward pass of stage 0");
  a.kernel(us(100));
  communicate(a, 0, us(10), 0);
  communicate(a, 1, us(10), 0);
  mark(a, "backward pass of stage 0");
  a.kernel(us(150));
  mark(a, "optimizer step");
  communicate(b, 0, us(10), 0);
  mark(b, "forward pass of stage 1");
  b.kernel(second);
  communicate(b, kNoRendezvous, us(20), 1);
  mark(b, "backward pass of stage 1");
  b.kernel(us(130));
  communicate(b, 1, us(10), 0);
  mark(b, "optimizer step");
  std::vector<RankProgram> ranks;
  ranks.push_back(std::move(a).finish());
  ranks.push_back(std::move(b).finish());
  ranks[0].stands_for = {1};
  ranks[0].chunks = {{0, 0, 2, true, false}};
  ranks[1].stands_for = {3};
  ranks[1].chunks = {{1, 2, 1, false, true}};
  return joined_ranks(std::move(ranks));
}

Run run_of(const Trace& trace) { return simulate_and_record(trace, test_machine(), {}); }

TEST(PipelineSummary, PartsOfAStageAddUpToItsStep) {
  const RunSummary summary = summarize(run_of(two_stages()));
  ASSERT_TRUE(summary.pipeline);
  const PipelineSummary& pipeline = *summary.pipeline;
  ASSERT_EQ(pipeline.stages.size(), 2u);
  EXPECT_EQ(pipeline.groups, (std::vector<std::string>{"pipeline", "tensor parallel"}));
  const StageSummary &first = pipeline.stages[0], &last = pipeline.stages[1];
  // 100, 10, wait for 350, 10, 150.
  EXPECT_EQ(first.compute, us(250));
  EXPECT_EQ(first.bubble, us(350));
  EXPECT_EQ(first.exposed, (std::vector<Duration>{us(20), us(0)}));
  EXPECT_EQ(first.other, us(0));
  EXPECT_EQ(first.step_time, us(620));
  // Wait for 100, 10, 200, 20, 130, 10.
  EXPECT_EQ(last.compute, us(330));
  EXPECT_EQ(last.bubble, us(100));
  EXPECT_EQ(last.exposed, (std::vector<Duration>{us(20), us(20)}));
  EXPECT_EQ(last.step_time, us(470));
  for (const StageSummary& stage : pipeline.stages) {
    EXPECT_EQ(stage.compute + stage.bubble + stage.equals + stage.exposed_in_all() + stage.other, stage.step_time);
    EXPECT_EQ(stage.ranks, 2u);
  }
  EXPECT_EQ(pipeline.stage_count, 2u);
  EXPECT_EQ(pipeline.microbatches, 1u);
  EXPECT_NEAR(pipeline.bubble_share, 450.0 / 1090.0, 1e-12);
  EXPECT_NEAR(pipeline.ideal_bubble_share, 0.5, 1e-12);  // (2 - 1) / (1 + 2 - 1)
  EXPECT_EQ(summary.ranks, 4u);
}

TEST(PipelineSummary, NamesTheSlowestStageAndWhatItCosts) {
  const RunSummary summary = summarize(run_of(two_stages()));
  const PipelineSummary& pipeline = *summary.pipeline;
  ASSERT_TRUE(pipeline.slowest);
  EXPECT_EQ(*pipeline.slowest, 1u);  // works 370 us, the other one 270
  EXPECT_EQ(pipeline.slowest_cost, us(50));
  const auto says = [&](const std::string& words) {
    return std::any_of(summary.verdict.sentences.begin(), summary.verdict.sentences.end(),
                       [&](const std::string& sentence) { return sentence.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(says("Stage 1 (rank 2) is the slowest, it works 370.0 us of a step, 50.00 us"));
  EXPECT_TRUE(says("The pipeline's bubble takes 41 % of the GPUs' time"));
  EXPECT_TRUE(says("for other stages in 41 %"));
  // With an equally slow second stage the first works as long: the message of the gain is gone.
  const RunSummary even = summarize(run_of(two_stages(us(100))));
  EXPECT_FALSE(even.pipeline->slowest);
}

TEST(PipelineSummary, AStageIsNamedWhereItPeaks) {
  Trace trace = two_stages();
  trace.rank_table[1].untracked_bytes = 2'000'000'000;
  trace.untracked_bytes = 2'000'000'000;
  trace.knowledge.allocations = true;
  const RunSummary summary = summarize(run_of(trace));
  EXPECT_NE(summary.verdict.sentences.front().find("It fits: rank 2 (stage 1 of 2, layer 2, loss) peaks: at most 2.000 "
                                                   "GB of 80.00 GB in hbm"),
            std::string::npos)
      << summary.verdict.sentences.front();
  trace.rank_table[1].untracked_bytes = trace.untracked_bytes = 90'000'000'000;
  const RunSummary full = summarize(run_of(trace));
  EXPECT_NE(full.verdict.sentences.front().find("are missing in hbm of rank 2 (stage 1 of 2, layer 2, loss)"),
            std::string::npos)
      << full.verdict.sentences.front();
}

TEST(PipelineSummary, StandsInTheJsonAndComesBackFromAFile) {
  const ScratchFolder folder;
  const memwall::Run run = run_of(two_stages());
  write_run(run, folder / "run.h5");
  const memwall::Run read = read_run(folder / "run.h5");
  EXPECT_EQ(read.trace->rank_table[0].chunks, (std::vector<PipelineChunk>{{0, 0, 2, true, false}}));
  EXPECT_EQ(read.trace->rank_table[1].chunks, (std::vector<PipelineChunk>{{1, 2, 1, false, true}}));
  const std::string json = to_json(summarize(read));
  EXPECT_EQ(json, to_json(summarize(run)));
  EXPECT_NE(json.find("\"bubble_s\": 0.0001"), std::string::npos) << json;
}

TEST(PipelineSummary, AFileOfRanksThatShareAStatedHostIsRead) {
  Machine machine = test_machine();
  for (Tier& tier : machine.tiers)
    if (tier.name == "host") tier.sharers = 2;
  for (Link& link : machine.links)
    if (link.name == "host_dram") link.sharers = 1;
  const ScratchFolder folder;
  Trace trace = two_stages();
  for (Rank& rank : trace.rank_table) rank.stands_for.clear();
  trace.rank_table[1].number = 1;
  const memwall::Run run = simulate_and_record(trace, machine, {});
  ASSERT_EQ(run.machine.tier("host rank 1"), -1) << "they share it";
  write_run(run, folder / "run.h5");
  EXPECT_EQ(read_run(folder / "run.h5").machine.views.size(), 2u);
}

TEST(PipelineSummary, AbsentWhereNobodySaidWhatARankHolds) {
  Trace trace = two_stages();
  for (Rank& rank : trace.rank_table) rank.chunks.clear();
  const RunSummary summary = summarize(run_of(trace));
  EXPECT_FALSE(summary.pipeline);
}

TEST(PipelinePasses, BeginAndEndWithTheirKernels) {
  const std::vector<RankPasses> ranks = pipeline_passes(run_of(two_stages()));
  ASSERT_EQ(ranks.size(), 2u);
  const auto expect = [](const PassSpan& pass, PassSpan::Work work, std::uint32_t stage, Duration begin, Duration end) {
    EXPECT_EQ(pass.work, work);
    EXPECT_EQ(pass.stage, stage);
    EXPECT_EQ(pass.microbatch, 0u);
    EXPECT_EQ(pass.begin, Time{} + begin);
    EXPECT_EQ(pass.end, Time{} + end);
  };
  ASSERT_EQ(ranks[0].passes.size(), 2u);
  expect(ranks[0].passes[0], PassSpan::Work::forward, 0, us(0), us(100));
  expect(ranks[0].passes[1], PassSpan::Work::backward, 0, us(470), us(620));
  ASSERT_EQ(ranks[1].passes.size(), 2u);
  expect(ranks[1].passes[0], PassSpan::Work::forward, 1, us(110), us(310));
  expect(ranks[1].passes[1], PassSpan::Work::backward, 1, us(330), us(460));
  ASSERT_EQ(ranks[1].messages.size(), 2u);
  EXPECT_EQ(ranks[1].messages[0].begin, Time{} + us(100));  // not where its receiver began to wait
  EXPECT_EQ(ranks[1].messages[0].end, Time{} + us(110));
}

TEST(TrainingCost, IsTheStepOverAndOver) {
  const RunSummary summary = summarize(run_of(two_stages()));
  // 1000 tokens per step; a step is here the mean of both ranks', 545 us.
  const auto cost = training_cost(summary, 1e9, 2.5);
  ASSERT_TRUE(cost);
  EXPECT_NEAR(cost->steps, 1e6, 1e-3);
  EXPECT_NEAR(cost->seconds, 545, 1e-6);
  EXPECT_NEAR(cost->gpu_hours, 545.0 / 3600 * 4, 1e-9);
  EXPECT_NEAR(*cost->dollars, 2.5 * cost->gpu_hours, 1e-9);
  EXPECT_FALSE(training_cost(summary, 1e9, {})->dollars) << "the machine has no price";
  RunSummary unknown = summary;
  unknown.tokens_per_second = 0;
  EXPECT_FALSE(training_cost(unknown, 1e9, {}));
}

TEST(TrainingCost, ReadsTokens) {
  EXPECT_EQ(parse_tokens("15T", "--train-tokens"), 15e12);
  EXPECT_EQ(parse_tokens("0.3B", "--train-tokens"), 0.3e9);
  EXPECT_EQ(parse_tokens("1e9", "--train-tokens"), 1e9);
  for (const char* wrong : {"", "T", "15X", "-1T", "0", "15TT", "1e400", "nan"})
    EXPECT_THROW(parse_tokens(wrong, "--train-tokens"), UsageError) << wrong;
}

TEST(EnergyPrice, CountsTheRanksThatAProgramStandsFor) {
  Machine machine = test_machine();
  machine.watts = 400;
  machine.idle_watts = 100;
  machine.dollars_per_hour = 3.6;
  Trace alone = two_stages();
  for (Rank& rank : alone.rank_table) rank.stands_for.clear();
  const StepEnergyPrice one = summarize(simulate_and_record(alone, machine, {})).energy_price;
  const StepEnergyPrice all = summarize(simulate_and_record(two_stages(), machine, {})).energy_price;
  EXPECT_EQ(one.gpus, 2u);
  EXPECT_EQ(all.gpus, 4u);
  EXPECT_NEAR(*all.energy, 2 * *one.energy, 1e-9);
  EXPECT_NEAR(*all.price, 0.001 * 620e-6 * 4, 1e-12);
  EXPECT_NEAR(all.busy_share, one.busy_share, 1e-12);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
