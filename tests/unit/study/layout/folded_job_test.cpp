// Does a job with its passes as one kernel each take as long, and as much memory, as the job written out?
#include "study/layout/folded_job.h"

#include <gtest/gtest.h>

#include <random>

#include "models/hw/modelled_step.h"
#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/parallel/parallel_step.h"
#include "sim/engine/simulation.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/equal_places.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Whole {
  Duration time{};
  std::vector<Bytes> peaks;
  std::vector<BytesByKind> kinds;
};

Whole written_out(const Model& model, const Recipe& recipe, const Machine& machine) {
  const Trace trace = modelled_on(parallel_step(model, recipe), machine);
  const RankMachine ranks = machine_of_ranks(machine, trace);
  SimulationOptions options;
  options.allocator = "ideal";
  const SimulationResult result = simulate(trace, ranks, options);
  Whole whole{result.end, {}, {}};
  std::size_t device = 0;
  while (machine.tiers[device].name != "hbm") ++device;
  for (const RankView& view : ranks.views) {
    const TierResult& tier = result.tiers[view.tier[device]];
    whole.peaks.push_back(tier.peak_allocated);
    whole.kinds.emplace_back();
    std::copy(std::begin(tier.peak_by_kind), std::end(tier.peak_by_kind), whole.kinds.back().begin());
  }
  return whole;
}

TrainingJob random_job(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
  };
  TrainingJob job = load_training_job("gpt3-175b");
  job.model.width = one_of({1024, 2048, 4096});
  job.model.heads = 16;
  job.model.tied_embedding = one_of({0, 1}) == 1;
  Recipe& r = job.recipe;
  ModelParallel& p = r.parallel;
  p.tensor = one_of({1, 2, 4});
  p.pipeline = one_of({1, 2, 4});
  p.interleave = p.pipeline > 1 ? one_of({1, 2}) : 1;
  p.sequence_parallel = p.tensor > 1 && one_of({0, 1}) == 1;
  job.model.layers = p.pipeline * p.interleave * one_of({1, 2, 5});
  r.data_parallel = static_cast<std::uint32_t>(one_of({1, 2}));
  p.distributed_optimizer = one_of({0, 1}) == 1;
  p.micro_batch = one_of({1, 2});
  r.batch = p.micro_batch * p.pipeline * one_of({1, 2, 5, 9, 20});
  r.checkpoint = one_of({0, 1}) == 1 ? ActivationCheckpoint::full : ActivationCheckpoint::none;
  r.sequence = 2048;
  p.tensor *= p.pipeline == 1 && p.tensor == 1 ? 2 : 1;
  return job;
}

TEST(FoldedJob, TakesAsLongAsTheJobWrittenOut) {
  std::mt19937 random(1);
  const Machine machine = load_machine("dgx-a100-80gb");
  for (int i = 0; i < 40; ++i) {
    const TrainingJob job = random_job(random);
    const ParallelJob parallel = parallel_job(job.model, job.recipe);
    const ModelParallel& p = parallel.recipe.parallel;
    SCOPED_TRACE(::testing::Message() << "t " << p.tensor << " p " << p.pipeline << " v " << p.interleave << " m "
                                      << parallel.pipeline.microbatches << " width " << job.model.width << " layers "
                                      << job.model.layers << " D " << job.recipe.data_parallel << " dist "
                                      << p.distributed_optimizer << " full "
                                      << static_cast<int>(job.recipe.checkpoint) << " tied " << job.model.tied_embedding);
    const Whole whole = written_out(job.model, job.recipe, machine);
    ChunkCostCache cache(machine);
    const FoldedJob folded = folded_job(parallel, cache);
    // Where the host is the slower one, a pass is not the same wherever it stands.
    const double tolerance = job.model.width >= 2048 ? 0.012 : 0.08;
    EXPECT_NEAR(to_seconds(folded.step_time), to_seconds(whole.time), tolerance * to_seconds(whole.time))
        << " simulated " << folded.simulated;
    for (std::size_t s = 0; s < whole.peaks.size(); ++s) {
      EXPECT_EQ(folded.stages[s].peak, whole.peaks[s]) << "stage " << s;
      EXPECT_EQ(folded.stages[s].peak_by_kind, whole.kinds[s]) << "stage " << s;
    }
  }
}

// FSDP2 under torchtitan's pipeline: the first micro-batch's passes gather (of one stage on each GPU) and make what
// gradients add up in, written out beside the others. Peaks to the byte, by kind; so are those of stages that share
// none, whose receive buffers are there for all micro-batches, too.
TEST(FoldedJob, SharesParametersAsTheJobWrittenOut) {
  const Machine machine = load_machine("hgx-h100");
  for (const char* const settings :
       {"tensor=2,pipeline=2,data_parallel=2,batch=2", "tensor=4,pipeline=4,data_parallel=8,batch=16,checkpoint=full",
        "tensor=1,pipeline=4,data_parallel=4,batch=9", "tensor=2,pipeline=2,data_parallel=4,batch=3,precision=fp32",
        "tensor=4,pipeline=2,data_parallel=2,batch=40", "tensor=4,pipeline=4,batch=30",
        "tensor=1,pipeline=2,data_parallel=2,batch=8,precision=fp8",
        "tensor=2,pipeline=2,interleave=2,data_parallel=2,batch=8", "tensor=4,pipeline=4,interleave=2,batch=12",
        "tensor=2,pipeline=4,interleave=2,data_parallel=4,batch=10,checkpoint=full",
        "tensor=1,pipeline=2,interleave=3,data_parallel=2,batch=40",
        "tensor=1,pipeline=2,data_parallel=4,batch=6,pipeline_schedule=gpipe"}) {
    SCOPED_TRACE(settings);
    TrainingJob job = load_training_job(
        std::string("llama3-8b:layers=8,width=4096,sequence=2048,parallel_framework=torchtitan,micro_batch=1,") +
        settings);
    job.recipe.parallel.sequence_parallel = job.recipe.parallel.tensor > 1;
    const ParallelJob parallel = parallel_job(job.model, job.recipe);
    const Whole whole = written_out(job.model, job.recipe, machine);
    ChunkCostCache cache(machine);
    const FoldedJob folded = folded_job(parallel, cache);
    EXPECT_NEAR(to_seconds(folded.step_time), to_seconds(whole.time), 0.02 * to_seconds(whole.time))
        << " simulated " << folded.simulated;
    for (std::size_t s = 0; s < folded.stages.size(); ++s) {
      EXPECT_EQ(folded.stages[s].peak, whole.peaks[s]) << "stage " << s;
      EXPECT_EQ(folded.stages[s].peak_by_kind, whole.kinds[s]) << "stage " << s;
    }
  }
}

// A host that is far ahead of the GPU waits for room in the launch queue, which is no time of a pass: one that counts it
// is longer than the job's.
TEST(FoldedJob, PassesHoldNoWaitForTheLaunchQueue) {
  const Machine machine = load_machine("hgx-h100");
  for (const char* const settings : {"pipeline=2,batch=8,checkpoint=full", "pipeline=2,data_parallel=2,batch=12",
                                     "pipeline=2,data_parallel=2,batch=12,checkpoint=full"}) {
    SCOPED_TRACE(settings);
    const TrainingJob job = load_training_job(
        std::string("llama3-8b:layers=16,sequence=8192,parallel_framework=torchtitan,micro_batch=1,") + settings);
    const Whole whole = written_out(job.model, job.recipe, machine);
    ChunkCostCache cache(machine);
    const FoldedJob folded = folded_job(parallel_job(job.model, job.recipe), cache);
    EXPECT_NEAR(to_seconds(folded.step_time), to_seconds(whole.time), 0.02 * to_seconds(whole.time));
  }
}

// 3 replicas of 2 GPUs are in unequal places of a node of 8, whose host has a part for each 4 of them.
TEST(FoldedJob, TakesReplicasInUnequalPlaces) {
  const Machine machine = load_machine("dgx-a100-80gb");
  ChunkCostCache cache(machine);
  for (const char* const settings : {"tensor=2,data_parallel=3,micro_batch=1,batch=9",
                                     "tensor=2,pipeline=2,data_parallel=3,micro_batch=1,batch=9",
                                     "pipeline=3,data_parallel=5,micro_batch=1,batch=12,distributed_optimizer=1"}) {
    SCOPED_TRACE(settings);
    const TrainingJob job =
        load_training_job(std::string("gpt3-175b:layers=6,width=4096,heads=16,sequence=2048,") + settings);
    const ParallelJob parallel = parallel_job(job.model, job.recipe);
    const FoldedJob folded = folded_job(parallel, cache);
    const Trace trace = modelled_on(
        with_equal_places(parallel_step(job.model, job.recipe), shared_sizes(machine)), machine);
    EXPECT_GT(trace.rank_table.size(), folded.stages.size());
    SimulationOptions options;
    options.allocator = "ideal";
    const SimulationResult whole = simulate(trace, machine_of_ranks(machine, trace), options);
    EXPECT_NEAR(to_seconds(folded.step_time), to_seconds(whole.end), 0.012 * to_seconds(whole.end));
    Bytes peak = 0;
    for (const TierResult& tier : whole.tiers) peak = std::max(peak, tier.peak_allocated);
    EXPECT_EQ(folded.stages[folded.fullest()].peak, peak);
  }
}

// Far more micro-batches than are run: the same as all of them run.
TEST(FoldedJob, MicrobatchesThatRepeatAddThePeriodThatWasFound) {
  const Machine machine = load_machine("dgx-a100-80gb");
  ChunkCostCache cache(machine);
  int folded_in = 0;
  for (const char* const settings :
       {"pipeline=4,micro_batch=1,batch=101", "pipeline=4,interleave=2,micro_batch=1,batch=120",
        "pipeline=8,interleave=3,micro_batch=1,batch=112", "tensor=2,micro_batch=1,batch=33",
        "pipeline=4,micro_batch=1,batch=64,parallel_framework=deepspeed,distributed_optimizer=true,data_parallel=2",
        "pipeline=2,interleave=2,microbatch_group=4,micro_batch=1,batch=82"}) {
    SCOPED_TRACE(settings);
    const TrainingJob job =
        load_training_job(std::string("gpt3-175b:layers=24,width=2048,heads=16,sequence=1024,") + settings);
    const ParallelJob parallel = parallel_job(job.model, job.recipe);
    const FoldedJob few = folded_job(parallel, cache), all = folded_job(parallel, cache, false);
    folded_in += few.simulated < all.simulated ? 1 : 0;
    EXPECT_NEAR(to_seconds(few.step_time), to_seconds(all.step_time), 1e-5 * to_seconds(all.step_time));
    for (std::size_t i = 0; i < all.stages.size(); ++i) EXPECT_EQ(few.stages[i].peak_by_kind, all.stages[i].peak_by_kind);
  }
  EXPECT_GE(folded_in, 5);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
