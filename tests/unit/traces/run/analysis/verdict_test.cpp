// Does the answer name what bounds the step, whether it fits, why, and what follows from the figures?
#include "traces/run/analysis/verdict.h"

#include <gtest/gtest.h>

#include "tests/support/handmade_run.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/missing_beside.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kGB = 1'000'000'000;

// A host call from 0 to `kernel_begin`, then a kernel until 10 us.
memwall::Run host_then_kernel(double kernel_begin) {
  HandmadeRun hand;
  const OpId kernel = hand.device(OpKind::kernel, "gemm", 0, 0, kernel_begin, kernel_begin, 10);
  hand.run.trace.edit().ops[kernel].operator_name = hand.run.trace.edit().strings.intern("aten::mm");
  return hand.finish();
}

bool says(const Verdict& verdict, const std::string& text) {
  for (const std::string& sentence : verdict.sentences)
    if (sentence.find(text) != std::string::npos) return true;
  return false;
}
std::string all(const Verdict& verdict) {
  std::string text;
  for (const std::string& sentence : verdict.sentences) text += sentence + "\n";
  return text;
}

TEST(Verdict, IsBoundByWhatTakesMostOfTheStep) {
  const RunSummary by_kernel = summarize(host_then_kernel(2)), by_host = summarize(host_then_kernel(8));
  EXPECT_EQ(by_kernel.verdict.bound_by, "compute");
  EXPECT_TRUE(says(by_kernel.verdict, "kernels run in 80 % of it, the GPU waits for the host in 20 %"))
      << all(by_kernel.verdict);
  EXPECT_EQ(by_host.verdict.bound_by, "host");
  EXPECT_TRUE(says(by_host.verdict, "kernels run in 20 % of it")) << all(by_host.verdict);
  EXPECT_TRUE(says(by_host.verdict, "aten::mm")) << "whose call the GPU waits for\n" << all(by_host.verdict);
  EXPECT_TRUE(says(by_host.verdict, "Try fewer, larger calls")) << all(by_host.verdict);
}

// What the step does already is not advised.
TEST(Verdict, AdvisesNoCompilerWhereTheStepIsCompiled) {
  memwall::Run run = host_then_kernel(8);
  EXPECT_TRUE(says(summarize(run).verdict, "larger calls: torch.compile, CUDA graphs, a larger batch"));
  for (Op& op : run.trace.edit().ops)
    if (op.kind == OpKind::kernel) op.dispatch = Dispatch::compiled;
  EXPECT_TRUE(says(summarize(run).verdict, "larger calls: CUDA graphs, a larger batch")) << all(summarize(run).verdict);
}

// As policies and programs call it: "CPU Adam", "deepspeed.cpu_adam".
TEST(Verdict, KnowsAnOptimizerOnTheCpuByItsPhase) {
  const auto of_work = [](Phase phase) {
    HandmadeRun hand;
    const OpId work = hand.host(OpKind::host_work, "deepspeed.cpu_adam", 0, 8);
    hand.op(work).phase = phase;
    hand.op(work).duration = microseconds(8);
    hand.device(OpKind::kernel, "gemm", 0, 8, 8, 8, 10);
    return summarize(hand.finish()).verdict;
  };
  EXPECT_TRUE(says(of_work(Phase::optimizer), "The optimizer runs on the CPU")) << all(of_work(Phase::optimizer));
  EXPECT_FALSE(says(of_work(Phase::forward), "The optimizer runs on the CPU")) << all(of_work(Phase::forward));
}

// A search that the step's batch policy refuses is not advised.
TEST(Verdict, AdvisesTheSearchForABatchWhereABatchWasTried) {
  memwall::Run run = host_then_kernel(2);
  run.trace.edit().samples_per_step = 8;
  run.result.fits = false;
  run.tried = {{"--policy checkpoint:mode=full", false, kGB, "hbm", kGB, microseconds(9), 0}};
  EXPECT_TRUE(says(summarize(run).verdict, "Try a smaller batch, or a GPU")) << all(summarize(run).verdict);
  run.tried.push_back({"--policy batch:4", false, kGB, "hbm", kGB, microseconds(9), 0});
  EXPECT_TRUE(says(summarize(run).verdict, "Try a smaller batch (--find-largest-batch says which fits), or a GPU"));
}

// What is named fastest has the least step time of all rows, or of those that keep GPUs and batch.
TEST(Verdict, NamesTheFastestOfWhatWasTried) {
  memwall::Run run = host_then_kernel(2);
  run.result.fits = false;
  run.tried = {{"--policy rotor", true, 0, "", kGB, microseconds(12), 0},
               {"--policy checkpoint:mode=full", true, 0, "", kGB, microseconds(13), 0}};
  EXPECT_TRUE(says(summarize(run).verdict, "; the fastest of what was tried.")) << all(summarize(run).verdict);
  run.tried.push_back({"--policy zero:stage=3,ranks=8", true, 0, "", kGB, microseconds(11), 0});
  EXPECT_TRUE(says(summarize(run).verdict, "; the fastest of what was tried with the same GPUs and the same batch."))
      << all(summarize(run).verdict);
}

TEST(Verdict, SaysWhatTwiceAsFastWouldSaveTheLargestFirst) {
  memwall::Run run = host_then_kernel(8);
  EXPECT_FALSE(says(summarize(run).verdict, "wice as fast")) << "nobody tried";
  run.speedups = {{"kernels", microseconds(9)}, {"host", microseconds(6)}, {"copies", microseconds(10)}};
  EXPECT_TRUE(says(summarize(run).verdict,
                   "Twice as fast, the host would save 40 % and the GPU's kernels would save 10.0 % of the step."))
      << all(summarize(run).verdict);
  run.speedups = {{"copies", microseconds(10)}};
  EXPECT_TRUE(says(summarize(run).verdict, "Nothing that is twice as fast saves 1 %"));
}

// The run takes 10 us.
TEST(Verdict, SaysHowLongEmptyingTheCacheTakesFromOnePercentOn) {
  const memwall::Run run = host_then_kernel(2);
  RunSummary summary = summarize(run);
  const auto waited = [&](Duration time, std::uint64_t given_back, const char* pager = "") {
    summary.waits.lanes = {{"main", true, WaitReason::memory, time, 1}};
    summary.tiers.front().memory.events.device_frees = given_back;
    summary.pager = pager;
    return verdict_of(run, summary);
  };
  EXPECT_TRUE(says(waited(microseconds(2), 3), "gives cached memory back (3 segments)"))
      << all(waited(microseconds(2), 3));
  EXPECT_TRUE(says(waited(microseconds(2), 3), "20 % of the run")) << all(waited(microseconds(2), 3));
  EXPECT_FALSE(says(waited(nanoseconds(90), 3), "cached memory"));
  EXPECT_FALSE(says(waited(microseconds(2), 0), "cached memory"));
  EXPECT_FALSE(says(waited(microseconds(2), 3, "lru"), "cached memory")) << "it waited for the pager";
}

TEST(Verdict, SaysWhatHasNoPlaceBesideTheAllocator) {
  RunSummary summary = summarize(host_then_kernel(2));
  const memwall::Run run = host_then_kernel(2);
  summary.tiers.front().usable = 40 * kGB;
  const auto beside = [&](Bytes reserved, Bytes communication, Bytes workspaces) {
    summary.device_memory =
        DeviceMemory{.reserved = reserved, .workspaces = workspaces, .communication = communication};
    return verdict_of(run, summary);
  };
  const Verdict tight = beside(39 * kGB, kGB, kGB / 2);
  EXPECT_TRUE(
      says(tight, "NCCL's buffers (1.000 GB) and cuBLAS's workspaces (500.0 MB), for which 500.0 MB are missing"))
      << all(tight);
  EXPECT_EQ(missing_beside_allocator(summary), kGB / 2);
  EXPECT_NE(to_json(summary).find("\"fits_device\": false"), std::string::npos);
  EXPECT_FALSE(says(beside(39 * kGB, kGB / 2, kGB / 2), "Only just"));
  EXPECT_EQ(missing_beside_allocator(summary), 0);
  EXPECT_NE(to_json(summary).find("\"fits_device\": true"), std::string::npos);
  EXPECT_TRUE(says(beside(39 * kGB, 0, kGB + 1000), "stand cuBLAS's workspaces")) << "on one GPU";
  summary.fits = false;
  EXPECT_FALSE(says(beside(39 * kGB, kGB, kGB), "Only just")) << "it does not fit";
  EXPECT_NE(to_json(summary).find("\"fits_device\": false"), std::string::npos);
  EXPECT_EQ(missing_beside_allocator(summary), std::nullopt);
}

TEST(Verdict, OfARunWithoutDurationIsBoundByNothing) {
  HandmadeRun hand;
  hand.host(OpKind::mark, "here", 0, 0);
  const RunSummary summary = summarize(hand.finish());
  EXPECT_EQ(summary.verdict.bound_by, "");
  EXPECT_TRUE(says(summary.verdict, "It takes no time")) << all(summary.verdict);
}

TEST(Verdict, SaysThatMemoryIsUnknownInsteadOfThatNothingIsUsed) {
  memwall::Run run = host_then_kernel(2);
  run.trace.edit().knowledge.allocations = false;
  EXPECT_TRUE(says(summarize(run).verdict, "Whether it fits is not known"));
  run.trace.edit().knowledge.allocations = true;
  EXPECT_TRUE(says(summarize(run).verdict, "It fits"));
}

// A step time of what nobody called a step says so, and what is mostly a program's start is said to be that.
TEST(Verdict, OfAWindowThatMarksNoStepsSaysThat) {
  const auto of_window = [](double kernel_begin, const char* name) {
    HandmadeRun hand;
    const OpId mark = hand.host(OpKind::mark, name, 0, 0);
    const OpId kernel = hand.device(OpKind::kernel, "gemm", 0, 0, kernel_begin, kernel_begin, 10);
    hand.step(name, mark, kernel + 1);
    return summarize(hand.finish()).verdict;
  };
  EXPECT_TRUE(says(of_window(2, "window of 3 iterations"),
                   "The capture marks no steps: its whole window of 3 iterations counts as one."))
      << all(of_window(2, "window of 3 iterations"));
  EXPECT_FALSE(says(of_window(2, "window"), "as where a program starts"));
  EXPECT_TRUE(
      says(of_window(8, "window"), "8.000 us of it pass before the GPU's first work, as where a program starts"))
      << all(of_window(8, "window"));
  EXPECT_FALSE(says(of_window(8, "window of one iteration"), "marks no steps"));
  EXPECT_FALSE(says(of_window(8, "ProfilerStep#3"), "marks no steps"));
}

TEST(Verdict, OfLivesThatNobodyRecordedABudgetIsKeptAsFarAsTheyAreSeen) {
  const memwall::Run run = host_then_kernel(2);
  RunSummary summary = summarize(run);
  summary.budgets = {{"plan", kGB, 0}};
  EXPECT_TRUE(says(verdict_of(run, summary), "plan keeps the step's storages to 1.000 GB"));
  summary.lives_recorded = false;
  EXPECT_TRUE(says(verdict_of(run, summary),
                   "plan keeps the step's storages, as far as the capture shows how long they live, to 1.000 GB"))
      << all(verdict_of(run, summary));
}

// A summary whose GPU memory is as described; other figures are those of a run bound by a kernel.
struct Tight {
  memwall::Run run = host_then_kernel(2);
  RunSummary summary = summarize(run);

  Tight() {
    run.trace.edit().knowledge = {true, true, true, true, true};
    TierSummary& hbm = summary.tiers[0];
    hbm.usable = 40 * kGB;
    hbm.peak_allocated = 44 * kGB;
    hbm.peak_reserved = 45 * kGB;
    hbm.missing = 5 * kGB;
    of(StorageKind::activation) = 30 * kGB;
    of(StorageKind::optimizer_state) = 14 * kGB;
    summary.fits = false;
  }
  Bytes& of(StorageKind kind) { return summary.tiers[0].peak.by_kind[static_cast<std::size_t>(kind)]; }
  Verdict verdict() const { return verdict_of(run, summary); }
};

TEST(Verdict, OfAStepThatDoesNotFitNamesWhatIsMissingAndWhatTakesMost) {
  Tight tight;
  EXPECT_TRUE(says(tight.verdict(), "It does not fit: 5.000 GB are missing in hbm, which has 40.00 GB"))
      << all(tight.verdict());
  EXPECT_TRUE(says(tight.verdict(), "activations take 30.00 GB and optimizer states 14.00 GB"));
  EXPECT_TRUE(says(tight.verdict(), "Try --policy checkpoint:mode=full")) << all(tight.verdict());
  tight.summary.policies = {"checkpoint:mode=full"};
  EXPECT_TRUE(says(tight.verdict(), "offload:what=optimizer,to=host")) << "checkpointed already\n"
                                                                       << all(tight.verdict());
  tight.of(StorageKind::optimizer_state) = 0;
  tight.of(StorageKind::parameter) = 14 * kGB;
  EXPECT_TRUE(says(tight.verdict(), "zero:stage=3")) << all(tight.verdict());
}

TEST(Verdict, OfAStepThatDoesNotFitNamesALengthThatNobodyChose) {
  Tight tight;
  tight.summary.recipe = {{"batch", "1 x 131072 tokens, the longest that the model takes", "batch=1,sequence=131072"}};
  EXPECT_TRUE(says(tight.verdict(), "sequence=4096")) << all(tight.verdict());
  tight.summary.recipe = {{"batch", "1 x 131072 tokens", "batch=1,sequence=131072"}};
  EXPECT_FALSE(says(tight.verdict(), "sequence=4096")) << "it was given";
  tight.summary.recipe.front().value += ", the longest that the model takes";
  tight.summary.fits = true;
  EXPECT_FALSE(says(tight.verdict(), "sequence=4096")) << all(tight.verdict());
}

// Of more than 50,000 ops.
TEST(Verdict, OfALongStepThatDoesNotFitSaysThatNothingWasTried) {
  Tight tight;
  tight.run.trace.edit().ops.resize(50'000);
  EXPECT_FALSE(says(tight.verdict(), "Nothing was tried")) << all(tight.verdict());
  tight.run.trace.edit().ops.resize(50'001);
  EXPECT_TRUE(says(tight.verdict(), "Nothing was tried: this step has 50,001 ops")) << all(tight.verdict());
  EXPECT_TRUE(says(tight.verdict(), "Try --policy checkpoint:mode=full")) << all(tight.verdict());
  EXPECT_TRUE(says(tight.verdict(), "--policy plan")) << all(tight.verdict());
  tight.summary.policies = {"plan:budget=8GiB"};
  EXPECT_TRUE(says(tight.verdict(), "Nothing was tried")) << all(tight.verdict());
  EXPECT_FALSE(says(tight.verdict(), "--policy plan plans")) << "it is there already\n" << all(tight.verdict());
  tight.summary.fits = true;
  EXPECT_FALSE(says(tight.verdict(), "Nothing was tried")) << all(tight.verdict());
}

TEST(Verdict, NamesFragmentationOnlyWhereItIsWhatIsMissing) {
  Tight tight;
  EXPECT_FALSE(says(tight.verdict(), "fragmentation"));
  tight.summary.tiers[0].peak_allocated = 35 * kGB;  // 10 GB in no block: more than what is missing
  EXPECT_TRUE(says(tight.verdict(), "10.00 GB of what is reserved are the allocator's cache and fragmentation"))
      << all(tight.verdict());
  EXPECT_TRUE(says(tight.verdict(), "expandable_segments:True"));
  tight.summary.allocator_settings = "expandable_segments:True";
  EXPECT_FALSE(says(tight.verdict(), "Try --alloc-conf")) << "it is set already";
}

TEST(Verdict, AdvisesNoSettingWhereBlocksInUseDoNotFit) {
  Tight tight;  // 44 of 40 GB in use
  tight.summary.tiers[0].peak_reserved = 54 * kGB;
  EXPECT_FALSE(says(tight.verdict(), "--alloc-conf")) << all(tight.verdict());
}

TEST(Verdict, AdvisesZeroWhereOnlyAllStatesTogetherMakeUpForWhatIsMissing) {
  Tight tight;  // a mixture of experts: no kind alone takes the 16 GB that are missing
  tight.summary.tiers[0].missing = 16 * kGB;
  tight.of(StorageKind::activation) = kGB;
  tight.of(StorageKind::parameter) = 7 * kGB;
  tight.of(StorageKind::gradient) = 7 * kGB;
  EXPECT_TRUE(says(tight.verdict(),
                   "Try --policy zero:stage=3,ranks=N over N GPUs: parameters, gradients and optimizer "
                   "states together take 28.00 GB of the peak."))
      << all(tight.verdict());
  tight.summary.tiers[0].missing = 29 * kGB;
  EXPECT_FALSE(says(tight.verdict(), "zero:stage=3")) << "they do not suffice\n" << all(tight.verdict());
  tight.summary.tiers[0].missing = 16 * kGB;
  tight.summary.policies = {"zero:stage=3,ranks=2"};
  EXPECT_FALSE(says(tight.verdict(), "Try --policy zero")) << all(tight.verdict());
}

TEST(Verdict, AdvisesNoPolicyThatCannotMakeUpForWhatIsMissing) {
  Tight tight;
  tight.summary.policies = {"checkpoint:mode=full", "offload:what=optimizer"};
  tight.of(StorageKind::parameter) = kGB;  // of 5 missing
  EXPECT_FALSE(says(tight.verdict(), "zero:stage=3")) << all(tight.verdict());
  EXPECT_TRUE(says(tight.verdict(), "Try a smaller batch")) << all(tight.verdict());
}

TEST(Verdict, NamesEveryTierThatLacksMemory) {
  Tight tight;
  ASSERT_GT(tight.summary.tiers.size(), 1u);
  tight.summary.tiers[1].missing = 2 * kGB;
  EXPECT_TRUE(says(tight.verdict(), "2.000 GB are missing in " + tight.summary.tiers[1].name + ", too"))
      << all(tight.verdict());
}

TEST(Verdict, OfAPagerThatMakesNoRoomNamesNoFigureOfUnlimitedMemory) {
  Tight tight;
  tight.summary.pager = "lru";
  EXPECT_TRUE(says(tight.verdict(), "the pager cannot make room in hbm, which has 40.00 GB")) << all(tight.verdict());
  EXPECT_FALSE(says(tight.verdict(), "missing")) << all(tight.verdict());
}

TEST(Verdict, WithoutDeviceWorkNothingIsKnownOfWhatBounds) {
  HandmadeRun hand;
  hand.host(OpKind::host_work, "python", 0, 10);
  const RunSummary summary = summarize(hand.finish());
  EXPECT_EQ(summary.verdict.bound_by, "");
  EXPECT_TRUE(says(summary.verdict, "what bounds the step is not known")) << all(summary.verdict);
}

// Kernels run in most of the step and decide nothing: the path is the host's.
TEST(Verdict, KernelsThatHideBehindTheHostDoNotBindTheStep) {
  memwall::Run run = host_then_kernel(2);
  RunSummary summary = summarize(run);
  const auto of = [](ClassTimes& times, TimeClass c) -> Duration& { return times.by_class[static_cast<int>(c)]; };
  summary.times = summary.path = {};
  of(summary.times, TimeClass::compute) = microseconds(60);
  of(summary.times, TimeClass::host) = microseconds(40);
  of(summary.path, TimeClass::compute) = microseconds(5);
  of(summary.path, TimeClass::host) = microseconds(95);
  const Verdict hidden = verdict_of(run, summary);
  EXPECT_EQ(hidden.bound_by, "host");
  EXPECT_TRUE(says(hidden, "bound by the host, behind which kernels hide: kernels run in 60 % of it")) << all(hidden);
  std::swap(of(summary.path, TimeClass::compute), of(summary.path, TimeClass::host));
  EXPECT_EQ(verdict_of(run, summary).bound_by, "compute");
}

TEST(Verdict, WithScalesAndPoliciesSaysWhatIsNotScaled) {
  memwall::Run run = host_then_kernel(2);
  RunSummary summary = summarize(run);
  EXPECT_FALSE(says(verdict_of(run, summary), "With "));
  summary.changes.scale = {"kernels=2"};
  summary.changes.step_without = summary.step_time / 2;
  EXPECT_TRUE(says(verdict_of(run, summary), "With --scale kernels=2 ")) << all(verdict_of(run, summary));
  EXPECT_FALSE(says(verdict_of(run, summary), "not scaled"));
  summary.policies = {"offload:what=optimizer"};
  EXPECT_TRUE(says(verdict_of(run, summary), "what policies add is not scaled"));
  summary.changes = {.overrides = {"pcie=gen5"}, .scale = {}, .step_without = summary.step_time};
  EXPECT_TRUE(says(verdict_of(run, summary), "With pcie=gen5 ")) << all(verdict_of(run, summary));
  EXPECT_TRUE(says(verdict_of(run, summary), ", as before.")) << all(verdict_of(run, summary));
}

TEST(Verdict, SaysWhetherPlannersKeepToTheirBudgets) {
  memwall::Run run = host_then_kernel(2);
  EXPECT_FALSE(says(summarize(run).verdict, "budget")) << "nobody was given one";
  run.trace.edit().budgets = {{"capuchin", 10 * kGB, 0}, {"rotor", 8 * kGB, 3 * kGB}};
  const Verdict verdict = summarize(run).verdict;
  EXPECT_TRUE(says(verdict, "Within the budget: capuchin keeps the step's storages to 10.00 GB.")) << all(verdict);
  EXPECT_TRUE(says(verdict,
                   "Over the budget: the step's storages need 3.000 GB more than the 8.000 GB that rotor was "
                   "given."))
      << all(verdict);
}

TEST(Verdict, WithoutDataflowSaysHowToHaveIt) {
  Tight tight;
  tight.run.trace.edit().knowledge.dataflow = false;
  EXPECT_FALSE(says(tight.verdict(), "--policy"));
  EXPECT_TRUE(says(tight.verdict(), "memwall inspect"));
}

TEST(Verdict, NamesTheRankThatHoldsUpTheOthers) {
  RankAuthor a(3), b(5);
  for (auto [author, time] : {std::pair(&a, microseconds(100)), std::pair(&b, microseconds(400))}) {
    author->kernel(time);
    author->order(0, 1);
    author->meet(7, microseconds(30));
    author->trace().groups = {{"dp", 2, {3, 5}}};
  }
  const RunSummary summary = summarize(simulate_and_record(joined(std::move(a), std::move(b)), test_machine(), {}));
  EXPECT_TRUE(says(summary.verdict, "Rank 5 comes last to 1 of 1 collectives and holds up the others by 300.0 us"))
      << all(summary.verdict);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
