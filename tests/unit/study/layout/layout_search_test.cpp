// Is the layout that the search calls best the best of all, simulated one by one, and is no bound above a step?
#include "study/layout/layout_search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/workload/generate/parallel/parallel_step.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "study/layout/layout_candidates.h"
#include "study/study.h"
#include "traces/run/analysis/gpu_memory_peaks.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

LayoutRequest small_request(Bytes budget) {
  LayoutRequest request;
  request.job = load_training_job("gpt3-175b");
  set_all(request.job, {"layers=4", "width=4096", "heads=32"});
  request.fixed = {"layers", "width", "heads"};
  request.machine = std::make_shared<const Machine>(load_machine("dgx-a100-80gb"));
  request.gpus = 8;
  request.global_batch = 16;
  request.budget = budget;
  request.jobs = 2;
  return request;
}

struct Truth {
  Duration time{};
  Bytes peak = 0;
};

Truth truth_of(const ParallelJob& job, const LayoutRequest& request) {
  const Trace trace = modelled_on(parallel_step(request.job.model, job.recipe), *request.machine);
  SimulationOptions options;
  options.allocator = "ideal";
  const SimulationResult result = simulate(trace, *request.machine, options);
  Truth truth{result.end, 0};
  const RankMachine ranks = machine_of_ranks(*request.machine, trace);
  const auto device = static_cast<std::size_t>(request.machine->tier("hbm"));
  for (const RankView& view : ranks.views)
    truth.peak = std::max(truth.peak, result.tiers[view.tier[device]].peak_allocated);
  return truth;
}

void is_best_of_all(Bytes budget) {
  const LayoutRequest request = small_request(budget);
  const LayoutSearch found = search_layouts(request, nullptr);
  ASSERT_FALSE(found.best.empty());
  Duration best = kNever;
  std::size_t that_fit = 0;
  for (const auto& [job, replicas] : layout_candidates(request).jobs) {
    const Truth truth = truth_of(job, request);
    if (truth.peak > budget) continue;
    ++that_fit;
    best = std::min(best, truth.time);
  }
  EXPECT_NEAR(to_seconds(found.best.front().outcome.step_time), to_seconds(best), 0.01 * to_seconds(best));
  EXPECT_EQ(found.best.size(), std::min(that_fit, request.best));
  for (const Layout& layout : found.best) EXPECT_LE(layout.outcome.stages[layout.outcome.fullest()].peak, budget);
  for (std::size_t i = 1; i < found.best.size(); ++i)
    EXPECT_LE(found.best[i - 1].outcome.step_time, found.best[i].outcome.step_time);
}

TEST(LayoutSearch, IsTheBestOfAllWhereAllFit) { is_best_of_all(std::numeric_limits<Bytes>::max()); }

TEST(LayoutSearch, IsTheBestOfAllThatFit) { is_best_of_all(GiB(6)); }

TEST(LayoutSearch, SaysTheSameWithAnyNumberOfThreads) {
  LayoutRequest request = small_request(GiB(8));
  const LayoutSearch two = search_layouts(request, nullptr);
  request.jobs = 1;
  const LayoutSearch one = search_layouts(request, nullptr);
  ASSERT_EQ(one.best.size(), two.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(layout_settings(one.best[i]), layout_settings(two.best[i]));
    EXPECT_EQ(one.best[i].outcome.step_time, two.best[i].outcome.step_time);
  }
}

TEST(LayoutSearch, KeepsToWhatIsSaid) {
  LayoutRequest request = small_request(GiB(80));
  set(request.job, "tensor=2");
  request.fixed.push_back("tensor");
  for (const Layout& layout : search_layouts(request, nullptr).best) EXPECT_EQ(layout.recipe.parallel.tensor, 2);
}

TEST(LayoutSearch, CountsEachLayoutOnce) {
  for (const Bytes budget : {GiB(80), GiB(2), GiB(1), MiB(700), MiB(500)}) {
    const LayoutSearch found = search_layouts(small_request(budget), nullptr);
    EXPECT_EQ(found.too_large + found.slower + found.simulated + found.refused.layouts(), found.layouts) << budget;
    EXPECT_LE(found.best.size() + found.simulated_too_large, found.simulated) << budget;
  }
}

TEST(LayoutSearch, SaysHowMuchIsMissingWhereNothingFits) {
  const LayoutSearch found = search_layouts(small_request(MiB(100)), nullptr);
  EXPECT_TRUE(found.best.empty());
  EXPECT_EQ(found.too_large, found.layouts);
  EXPECT_GT(found.least_missing, 0);
}

TEST(LayoutSearch, RefusesWhatNothingDivides) {
  LayoutRequest request = small_request(GiB(80));
  request.gpus = 7;
  request.global_batch = 3;
  const LayoutSearch found = search_layouts(request, nullptr);
  EXPECT_TRUE(found.best.empty());
  ASSERT_EQ(found.refused.reasons.size(), 1u);
  EXPECT_EQ(found.refused.reasons.front().sentence, "tensor 7 does not divide the model's 32 heads; expected 4 or 8.");
}

std::string refusal_of(const LayoutRequest& request) {
  try {
    search_layouts(request, nullptr);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "it was searched";
}

// Of what is said that setting is named without which there are layouts, with their number.
TEST(LayoutSearch, NamesTheSettingThatLeavesNoLayout) {
  LayoutRequest request = small_request(GiB(80));
  set_all(request.job, {"tensor=3", "micro_batch=2"});
  request.fixed.insert(request.fixed.end(), {"tensor", "micro_batch"});
  LayoutRequest without = request;
  std::erase(without.fixed, "tensor");
  const LayoutCandidates there = layout_candidates(without);
  EXPECT_EQ(refusal_of(request),
            fmt::format("No layout with tensor=3, micro_batch=2 divides 8 GPUs, 4 layers, 32 heads and a batch of 16: "
                        "without tensor=3 there are {}.",
                        there.jobs.size() + there.refused.layouts()));
  set(request.job, "micro_batch=5");
  EXPECT_NE(refusal_of(request).find("without all of them there are"), std::string::npos) << refusal_of(request);
}

// Of 24 GPUs some layouts lie unevenly over nodes of 8: they are searched as the others are.
TEST(LayoutSearch, TakesWhatLiesUnevenlyOverNodes) {
  LayoutRequest request = small_request(GiB(80));
  request.gpus = 24;
  request.global_batch = 48;
  const LayoutSearch found = search_layouts(request, nullptr);
  EXPECT_FALSE(found.best.empty());
  EXPECT_EQ(found.refused.layouts(), layout_candidates(request).refused.layouts());
}

// The bytes that PyTorch's allocator reserves in the fullest stage of the job written out, all its micro-batches.
Bytes reserved_of(const LayoutRequest& request, const Layout& layout) {
  Recipe recipe = layout.recipe;
  recipe.batch = request.global_batch / recipe.data_parallel;
  const Trace trace = modelled_on(parallel_step(request.job.model, recipe), *request.machine);
  const RankMachine ranks = machine_of_ranks(*request.machine, trace);
  const SimulationResult result = simulate(trace, ranks, {});
  Bytes most = 0;
  for (const TierResult& tier : result.tiers)
    if (tier.peak_allocated > 0) most = std::max(most, tier.peak_reserved);
  return most;
}

TEST(LayoutSearch, SaysWhatPyTorchsAllocatorReserves) {
  for (const std::int64_t batch : {16, 128}) {
    SCOPED_TRACE(batch);
    LayoutRequest request = small_request(GiB(80));
    request.global_batch = batch;
    const LayoutSearch found = search_layouts(request, nullptr);
    ASSERT_EQ(found.recommended(), &found.best.front());
    const Layout& best = found.best.front();
    const ReservedMemory& reserved = *best.reserved;
    EXPECT_EQ(reserved.missing, 0);
    EXPECT_GE(reserved.reserved, best.outcome.stages[best.outcome.fullest()].peak);
    const Bytes truth = reserved_of(request, best);
    EXPECT_NEAR(static_cast<double>(reserved.reserved), static_cast<double>(truth), 0.01 * static_cast<double>(truth));
    EXPECT_FALSE(found.best[1].reserved.has_value());
  }
}

// A budget that the bytes of the best layout keep to exactly, and rounded blocks do not.
TEST(LayoutSearch, TakesTheNextLayoutWhereTheAllocatorNeedsMore) {
  LayoutRequest request = small_request(GiB(80));
  const LayoutSearch roomy = search_layouts(request, nullptr);
  const FoldedJob& best = roomy.best.front().outcome;
  request.budget = best.stages[best.fullest()].peak;
  const LayoutSearch tight = search_layouts(request, nullptr);
  ASSERT_FALSE(tight.best.empty());
  EXPECT_EQ(tight.best.front().outcome.step_time, best.step_time);
  EXPECT_FALSE(tight.best.front().reserved->fits);
  EXPECT_GT(tight.best.front().reserved->missing, 0);
  ASSERT_NE(tight.recommended(), nullptr);
  EXPECT_GT(tight.recommended(), &tight.best.front());
}

// A workload whose file has a layout of its own: what is searched is said all the same.
TEST(LayoutSearch, SettingsOfAWorkloadWithALayoutGiveTheLayoutAgain) {
  LayoutRequest request = small_request(GiB(80));
  const std::string job = "gpt3-175b-megatron:layers=4,width=4096,heads=32";
  request.job = load_training_job(job);
  request.global_batch = 8;
  const Layout best = search_layouts(request, nullptr).best.front();
  const TrainingJob again = load_training_job(job + "," + layout_settings(best, request.fixed));
  const ParallelJob parallel = parallel_job(again.model, again.recipe);
  ChunkCostCache costs(*request.machine);
  EXPECT_EQ(folded_job(parallel, costs).step_time, best.outcome.step_time);
}

TEST(LayoutSearch, SaysWhyNoLayoutCanBeRun) {
  LayoutRequest request = small_request(GiB(80));
  set(request.job, "precision=amp_bf16");
  const LayoutSearch one = search_layouts(request, nullptr);
  EXPECT_TRUE(one.best.empty());
  EXPECT_EQ(one.least_missing, 0);
  EXPECT_GT(one.layouts, 0u);
  EXPECT_EQ(one.refused.layouts(), one.layouts);
  ASSERT_EQ(one.refused.reasons.size(), 1u);
  EXPECT_NE(one.refused.reasons.front().sentence.find("precision amp_fp16 or amp_bf16"), std::string::npos);
  // Each reason by itself.
  request = small_request(GiB(80));
  set_all(request.job, {"pipeline=2", "checkpoint_layers=2"});
  request.fixed.insert(request.fixed.end(), {"pipeline", "checkpoint", "checkpoint_layers"});
  request.gpus = 12, request.global_batch = 12;
  const LayoutSearch several = search_layouts(request, nullptr);
  EXPECT_EQ(several.refused.reasons.size(), 2u);
  EXPECT_EQ(several.refused.layouts(), several.layouts);
}

// What a setting of the answer says, the layout has: given to `run` it is the same job.
TEST(LayoutSearch, SettingsGiveTheLayoutAgain) {
  const LayoutRequest request = small_request(GiB(80));
  const Layout best = search_layouts(request, nullptr).best.front();
  TrainingJob again = load_training_job("gpt3-175b:layers=4,width=4096,heads=32," + layout_settings(best));
  const ParallelJob job = parallel_job(again.model, again.recipe);
  ChunkCostCache costs(*request.machine);
  EXPECT_EQ(folded_job(job, costs).step_time, best.outcome.step_time);
}

// MFU counts the same FLOPs against the same peak as running the layout does, in fp8 the peak of fp8.
TEST(LayoutSearch, MfuIsThatOfTheRun) {
  for (const std::string job : {"gpt3-175b:layers=4,width=4096,heads=32,precision=bf16",
                                "gpt3-175b:layers=4,width=4096,heads=32,precision=fp8_transformer_engine",
                                "llama2-7b:layers=4,sequence=1024,parallel_framework=torchtitan,precision=fp8"}) {
    LayoutRequest request = small_request(GiB(80));
    request.machine = std::make_shared<const Machine>(load_machine("hgx-h100"));
    request.job = load_training_job(job);
    for (const std::string& setting : name_and_settings(job).settings)
      request.fixed.push_back(setting.substr(0, setting.find('=')));
    request.best = 4;
    const LayoutSearch found = search_layouts(request, nullptr);
    ASSERT_FALSE(found.best.empty()) << job;
    Study study;
    for (const Layout& layout : found.best) {
      Scenario scenario{.step = {job + "," + layout_settings(layout, request.fixed)}, .machine = "hgx-h100"};
      if (!layout.policy.empty()) scenario.policies = {layout.policy};
      SCOPED_TRACE(scenario.step.front() + " " + layout.policy);
      const memwall::Run run = study.run(scenario, {.record = true}).run;
      const RunSummary summary = summarize(run);
      ASSERT_TRUE(summary.top.flops);
      // Of the same step, whatever folding makes of its time; a run counts the optimizer's FLOPs as well.
      const double flops = layout.model_flops_share * to_seconds(layout.outcome.step_time),
                   of_run = summary.top.flops->mfu * to_seconds(summary.step_time);
      EXPECT_NEAR(flops, of_run, 1e-3 * of_run);
    }
  }
}

// torchtitan's replicas without a pipeline share their parameters by a policy: each layout that is found is what
// running its settings with that policy says, byte by byte; and so is the step, up to four micro-batches to the
// picosecond.
TEST(LayoutSearch, TorchtitansReplicasShareWhatTheyHold) {
  LayoutRequest request = small_request(GiB(80));
  request.job = load_training_job("llama2-7b:layers=3,sequence=1024,parallel_framework=torchtitan");
  request.fixed = {"layers", "sequence", "parallel_framework"};
  request.best = 40;  // those of many micro-batches among them
  const LayoutSearch found = search_layouts(request, nullptr);
  EXPECT_EQ(found.refused.layouts(), found.layouts - found.too_large - found.slower - found.simulated);
  const std::vector<LayoutRefusals::Reason>& reasons = found.refused.reasons;
  const auto is_told = [&](std::string_view part) {
    return std::ranges::count_if(reasons, [&](const LayoutRefusals::Reason& reason) {
      return reason.layouts > 1 && reason.sentence.find(part) != std::string::npos;
    });
  };
  EXPECT_EQ(is_told("torchtitan's stages with data_parallel"), 0);
  EXPECT_EQ(is_told("are fewer than the pipeline's"), 1) << "whatever the numbers";
  std::size_t shared = 0, long_ones = 0, piped = 0;
  Study study;
  for (const Layout& layout : found.best) {
    if (layout.policy.empty() && layout.recipe.data_parallel > 1) {
      ++piped;  // FSDP2 under a pipeline is the job's own
      const Scenario scenario{.step = {"llama2-7b:layers=3,sequence=1024,parallel_framework=torchtitan," +
                                       layout_settings(layout, request.fixed)},
                              .machine = "dgx-a100-80gb",
                              .allocator = "ideal"};
      SCOPED_TRACE(scenario.step.front());
      const memwall::Run run = study.run(scenario, {.record = false}).run;
      EXPECT_EQ(layout.outcome.stages[layout.outcome.fullest()].peak, gpu_memory_peaks(run)->allocated);
      EXPECT_NEAR(to_seconds(layout.outcome.step_time), to_seconds(run.result.end), 0.03 * to_seconds(run.result.end));
    }
    if (layout.policy.empty()) continue;
    ++shared;
    Scenario scenario{.step = {"llama2-7b:layers=3,sequence=1024,parallel_framework=torchtitan," +
                               layout_settings(layout, request.fixed)},
                      .machine = "dgx-a100-80gb",
                      .policies = {layout.policy}};
    SCOPED_TRACE(scenario.step.front() + " " + layout.policy);
    scenario.allocator = "ideal";
    const memwall::Run run = study.run(scenario, {.record = false}).run;
    EXPECT_EQ(layout.outcome.stages.front().peak, gpu_memory_peaks(run)->allocated);
    EXPECT_EQ(layout.outcome.stages.front().ranks, request.gpus);
    EXPECT_EQ(layout.recipe.data_parallel * layout.recipe.parallel.tensor, 8);
    if (layout.outcome.microbatches <= 4) {
      EXPECT_EQ(layout.outcome.step_time, run.result.end);
    } else {
      ++long_ones;
      EXPECT_NEAR(to_seconds(layout.outcome.step_time), to_seconds(run.result.end), 2e-3 * to_seconds(run.result.end));
    }
    if (layout.reserved) {
      scenario.allocator = "pytorch";
      const memwall::Run reserved = study.run(scenario, {.record = false}).run;
      if (layout.outcome.microbatches <= 4) {
        EXPECT_EQ(layout.reserved->reserved, gpu_memory_peaks(reserved)->reserved);
      }
    }
    ASSERT_TRUE(layout.interval);
    EXPECT_LT(layout.interval->low, layout.outcome.mean_end);
    EXPECT_GT(layout.interval->high, layout.outcome.mean_end);
  }
  EXPECT_GE(shared, 5u);
  EXPECT_GE(long_ones, 1u);
  EXPECT_GE(piped, 1u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
