// Does following a job's calls of the allocator reserve and hand out what simulating the job written out does?
#include "study/layout/reserved_job.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/parallel/parallel_step.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "study/device_budget.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::vector<ReservedStage> written_out(const TrainingJob& job, const Machine& machine, Bytes capacity) {
  const Trace trace = modelled_on(parallel_step(job.model, job.recipe), machine);
  const std::shared_ptr<const Machine> limited = with_device_bytes(machine, trace, capacity);
  const RankMachine ranks = machine_of_ranks(*limited, trace);
  const SimulationResult result = simulate(trace, ranks, {});
  std::vector<ReservedStage> stages;
  for (const RankView& view : ranks.views) {
    const TierResult& tier = result.tiers[view.tier[static_cast<std::size_t>(machine.tier("hbm"))]];
    stages.push_back({tier.peak_reserved, tier.peak_allocated, tier.missing});
  }
  return stages;
}

TrainingJob random_job(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
  };
  TrainingJob job = load_training_job("gpt3-175b");
  job.model.width = one_of({256, 1024, 2048});
  job.model.heads = 8;
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
  p.overlap_grad_reduce = r.data_parallel > 1 && one_of({0, 1}) == 1;
  p.overlap_param_gather = p.overlap_grad_reduce && p.distributed_optimizer && one_of({0, 1}) == 1;
  p.micro_batch = one_of({1, 2, 3});
  r.batch = p.micro_batch * p.pipeline * one_of({1, 2, 5, 9, 20, 40});
  r.checkpoint = std::initializer_list<ActivationCheckpoint>{ActivationCheckpoint::none, ActivationCheckpoint::full,
                                                             ActivationCheckpoint::selective}
                     .begin()[one_of({0, 1, 2})];
  if (r.checkpoint == ActivationCheckpoint::selective) r.attention = Attention::plain;
  r.sequence = one_of({512, 2048});
  p.deallocate_outputs = one_of({0, 1}) == 1;
  p.tensor *= p.pipeline == 1 && p.tensor == 1 ? 2 : 1;
  return job;
}

std::string text_of(const TrainingJob& job) {
  const Recipe& r = job.recipe;
  const ModelParallel& p = r.parallel;
  return (::testing::Message() << "t " << p.tensor << " p " << p.pipeline << " v " << p.interleave << " sp "
                               << p.sequence_parallel << " batch " << r.batch << " micro " << p.micro_batch << " width "
                               << job.model.width << " layers " << job.model.layers << " D " << r.data_parallel
                               << " dist " << p.distributed_optimizer << " overlaps " << p.overlap_grad_reduce
                               << p.overlap_param_gather << " again " << static_cast<int>(r.checkpoint) << " tied "
                               << job.model.tied_embedding << " drops " << p.deallocate_outputs << " s " << r.sequence)
      .GetString();
}

void expect_equal(const TrainingJob& job, const Machine& machine, Bytes capacity) {
  ChunkCostCache costs(machine);
  const ParallelJob parallel = parallel_job(job.model, job.recipe);
  const std::optional<ReservedJob> reserved = reserved_job(parallel, costs, capacity);
  ASSERT_TRUE(reserved);
  const std::vector<ReservedStage> whole = written_out(job, machine, capacity);
  ASSERT_EQ(reserved->stages.size(), whole.size());
  for (std::size_t s = 0; s < whole.size(); ++s) {
    EXPECT_EQ(reserved->stages[s].allocated, whole[s].allocated) << "stage " << s;
    EXPECT_EQ(reserved->stages[s].reserved, whole[s].reserved) << "stage " << s;
    EXPECT_EQ(reserved->stages[s].missing, whole[s].missing) << "stage " << s;
  }
  EXPECT_EQ(reserved->microbatches, parallel.pipeline.microbatches);
}

TEST(ReservedJob, ReservesWhatTheJobWrittenOutDoes) {
  std::mt19937 random(1);
  const Machine machine = load_machine("dgx-a100-80gb");
  for (int i = 0; i < 60; ++i) {
    const TrainingJob job = random_job(random);
    SCOPED_TRACE(text_of(job));
    expect_equal(job, machine, GiB(1000));
  }
}

// Stages that share parameters (FSDP2) write their first micro-batch out; what they gather is of the pool of another
// stream.
TEST(ReservedJob, OfSharedParametersIsThatOfTheJobWrittenOut) {
  const Machine machine = load_machine("hgx-h100");
  for (const char* const settings :
       {"tensor=2,pipeline=2,data_parallel=2,batch=2", "tensor=4,pipeline=4,data_parallel=8,batch=16,checkpoint=full",
        "tensor=1,pipeline=4,data_parallel=4,batch=9", "tensor=2,pipeline=2,data_parallel=4,batch=3,precision=fp32",
        "tensor=4,pipeline=2,data_parallel=2,batch=40",
        "tensor=1,pipeline=2,data_parallel=4,batch=6,pipeline_schedule=gpipe", "tensor=4,pipeline=4,batch=30",
        "tensor=2,pipeline=2,interleave=2,data_parallel=2,batch=8",
        "tensor=1,pipeline=4,interleave=2,batch=10,checkpoint=full",
        "tensor=2,pipeline=4,interleave=2,data_parallel=4,batch=20"})
    for (const char* const width : {"layers=8,width=1024", "layers=9,width=4096,embedding_in_split=1"}) {
      SCOPED_TRACE(std::string(settings) + " " + width);
      TrainingJob job = load_training_job(
          std::string("llama3-8b:sequence=2048,parallel_framework=torchtitan,micro_batch=1,") + width + "," + settings);
      job.recipe.parallel.sequence_parallel = job.recipe.parallel.tensor > 1;
      try {
        parallel_job(job.model, job.recipe);
      } catch (const UsageError&) {
        continue;  // what does not divide
      }
      expect_equal(job, machine, GiB(1000));
    }
}

// A budget that a little is missing to: the allocator gives back what it has cached and tries again, or it does not
// fit.
TEST(ReservedJob, LacksWhatTheJobWrittenOutLacks) {
  std::mt19937 random(2);
  const Machine machine = load_machine("dgx-a100-80gb");
  for (int i = 0; i < 20; ++i) {
    const TrainingJob job = random_job(random);
    SCOPED_TRACE(text_of(job));
    ChunkCostCache costs(machine);
    const std::optional<ReservedJob> roomy = reserved_job(parallel_job(job.model, job.recipe), costs, GiB(1000));
    ASSERT_TRUE(roomy);
    Bytes most = 0;
    for (const ReservedStage& stage : roomy->stages) most = std::max(most, stage.allocated);
    expect_equal(job, machine, most + MiB(1));
    expect_equal(job, machine, most - most / 10);
  }
}

// Far more micro-batches than are followed: the same as all of them, or less where no cycle was found, which is told.
TEST(ReservedJob, MicrobatchesThatRepeatReserveNoMore) {
  const Machine machine = load_machine("dgx-a100-80gb");
  ChunkCostCache costs(machine);
  int folded = 0;
  for (const char* const settings :
       {"width=1024,pipeline=4,micro_batch=1,batch=301", "width=1024,tensor=2,micro_batch=1,batch=533",
        "width=4096,pipeline=4,micro_batch=1,batch=301",
        "width=4096,pipeline=2,checkpoint=full,micro_batch=1,batch=401",
        "width=1024,pipeline=4,checkpoint=full,micro_batch=3,batch=963",
        "width=4096,pipeline=2,interleave=2,micro_batch=1,batch=302"}) {
    SCOPED_TRACE(settings);
    const TrainingJob job = load_training_job(std::string("gpt3-175b:layers=24,heads=16,sequence=1024,") + settings);
    const ParallelJob parallel = parallel_job(job.model, job.recipe);
    const auto few = reserved_job(parallel, costs, GiB(1000)), all = reserved_job(parallel, costs, GiB(1000), false);
    ASSERT_TRUE(few && all);
    folded += few->microbatches == all->microbatches ? 1 : 0;
    for (std::size_t i = 0; i < all->stages.size(); ++i) {
      if (few->microbatches < all->microbatches) {
        EXPECT_LE(few->stages[i].reserved, all->stages[i].reserved) << "stage " << i;
        continue;
      }
      EXPECT_EQ(few->stages[i].reserved, all->stages[i].reserved) << "stage " << i;
      EXPECT_EQ(few->stages[i].allocated, all->stages[i].allocated) << "stage " << i;
    }
  }
  EXPECT_GE(folded, 3);
}

// A block that one pass leaves unfreed, or that is larger: the comparison above would see it.
TEST(ReservedJob, AnotherEventIsSeen) {
  const Machine machine = load_machine("dgx-a100-80gb");
  ChunkCostCache costs(machine);
  const TrainingJob job =
      load_training_job("gpt3-175b:layers=8,width=1024,heads=16,sequence=1024,pipeline=2,micro_batch=1,batch=12");
  const ParallelJob parallel = parallel_job(job.model, job.recipe);
  ChunkEvents events = *costs.events_of(parallel, 0, 0);
  const StageTrace program = StageProgram(parallel, 0).write_marked();
  const ReservedStage right = allocated_stage(program, {&events}, 0, GiB(1000)).stage;
  EXPECT_EQ(right.reserved, written_out(job, machine, GiB(1000)).front().reserved);
  std::vector<PassEvent>& forward = events.forward.events;
  for (PassEvent& event : forward)
    if (event.allocates && event.whose == PassEvent::Whose::own) event.bytes += MiB(4);
  EXPECT_NE(allocated_stage(program, {&events}, 0, GiB(1000)).stage.reserved, right.reserved);
  std::erase_if(forward, [](const PassEvent& event) { return !event.allocates; });
  EXPECT_GT(allocated_stage(program, {&events}, 0, GiB(1000)).stage.allocated, right.allocated);
}

// Messages in parts and other frameworks: marks do not stand for passes, or stand for none of them, which is
// told or as exact.
TEST(ReservedJob, OtherFrameworksAreExactOrNotFollowed) {
  const Machine machine = load_machine("dgx-a100-80gb");
  ChunkCostCache costs(machine);
  for (const char* const settings :
       {"tensor=2,pipeline=2,scatter_gather_tensors=1,micro_batch=1,batch=12",
        "pipeline=2,parallel_framework=deepspeed,micro_batch=1,batch=40",
        "tensor=2,pipeline=2,parallel_framework=deepspeed,precision=fp16,micro_batch=1,batch=12",
        "pipeline=2,parallel_framework=torchtitan,tied_embedding=0,micro_batch=1,batch=12",
        "pipeline=2,main_gradients=none,micro_batch=1,batch=14",
        "tensor=2,sequence_parallel=1,precision=fp8_transformer_engine,fp8_recipe=delayed,micro_batch=1,batch=9"}) {
    SCOPED_TRACE(settings);
    const TrainingJob job =
        load_training_job(std::string("gpt3-175b:layers=8,width=1024,heads=16,sequence=1024,") + settings);
    const ParallelJob parallel = parallel_job(job.model, job.recipe);
    if (reserved_job(parallel, costs, GiB(1000))) expect_equal(job, machine, GiB(1000));
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
