// What cannot be divided, what frameworks refuse (../shared/spec/parallelism.md, 7.2), and what is not implemented:
// each a sentence that says what was found and what was expected.
#include "models/workload/generate/parallel/parallel_job.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Change = std::function<void(Model&, Recipe&)>;

// "" where the job is taken.
std::string refusal(const Change& change) {
  Model model = small_gpt(8);
  Recipe recipe = parallel_recipe(2, 2, 1, 4);
  change(model, recipe);
  try {
    generate_step(model, recipe);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

struct Refused {
  const char* sentence;  // a part of it
  Change change;
};

void expect_refused(const std::vector<Refused>& all) {
  for (const Refused& one : all) {
    const std::string said = refusal(one.change);
    EXPECT_NE(said.find(one.sentence), std::string::npos) << "expected: " << one.sentence << "\nsaid: " << said;
    EXPECT_EQ(said.empty() ? '.' : said.back(), '.') << said;
  }
}

TEST(ParallelJob, TakesWhatItShould) {
  EXPECT_EQ(refusal([](Model&, Recipe&) {}), "");
  EXPECT_EQ(refusal([](Model& m, Recipe& r) { r.parallel.pipeline = 8, m.layers = 8; }), "");
}

// A stage without anything, and a framework that is said of a job that it does not run.
TEST(ParallelJob, RefusesWhatWouldBePassedOver) {
  Recipe empty = parallel_recipe(1, 4, 1, 4);
  empty.parallel.stage_layout = "Et||tt|tL";
  EXPECT_THROW(generate_step(small_gpt(4), empty), UsageError);
  Recipe sharded = parallel_recipe(1, 1, 1, 1);
  sharded.parallel.framework = ParallelFramework::torchtitan;
  sharded.data_parallel = 2;
  EXPECT_THROW(generate_step(small_gpt(4), sharded), UsageError);
}

TEST(ParallelJob, RefusesWhatDoesNotDivide) {
  expect_refused({
      {"tensor 3 does not divide the model's 8 heads; expected 2 or 4",
       [](Model&, Recipe& r) { r.parallel.tensor = 3; }},
      {"tensor 8 does not divide the MLP's width 100; expected 4.",
       [](Model& m, Recipe& r) { r.parallel.tensor = 8, m.inner = 100; }},
      {"tensor 2 neither divides the model's 3 heads of keys and values nor is a multiple of them; expected 1 or 3.",
       [](Model& m, Recipe&) { m.heads = 6, m.key_value_heads = 3, m.width = 48; }},
      {"tensor 4 does not divide the 30 tokens of a sequence",
       [](Model&, Recipe& r) { r.parallel.tensor = 4, r.sequence = 30, r.parallel.sequence_parallel = true; }},
      {"8 layers cannot be divided over 3 GPUs", [](Model&, Recipe& r) { r.parallel.pipeline = 3; }},
      {"global_batch 7 is no multiple of data_parallel 2",
       [](Model&, Recipe& r) {
         r.accumulation = 1, r.data_parallel = 2, r.parallel.micro_batch = 1, r.parallel.global_batch = 7;
       }},
      {"A replica's batch of 5 sequences is no multiple of micro_batch 2; expected batch=2 or a multiple of that",
       [](Model&, Recipe& r) { r.accumulation = 1, r.batch = 5, r.parallel.micro_batch = 2; }},
      {"micro_batch 1 and accumulation 4 both say how many passes a step has",
       [](Model&, Recipe& r) { r.parallel.micro_batch = 1; }},
      {"global_batch needs micro_batch, the sequences of one pass; expected micro_batch=1",
       [](Model&, Recipe& r) { r.parallel.global_batch = 8; }},
  });
}

TEST(ParallelJob, RefusesWhatMegatronRefuses) {
  expect_refused({
      {"sequence_parallel with tensor 1",
       [](Model&, Recipe& r) { r.parallel.tensor = 1, r.parallel.sequence_parallel = true; }},
      {"overlap_param_gather: Megatron-LM refuses it without overlap_grad_reduce and distributed_optimizer",
       [](Model&, Recipe& r) {
         r.parallel.main_gradients = MainGradients::fp32;
         r.parallel.overlap_param_gather = r.parallel.distributed_optimizer = true;
       }},
      {"overlap_param_gather: Megatron-LM refuses it without overlap_grad_reduce and distributed_optimizer",
       [](Model&, Recipe& r) {
         r.parallel.main_gradients = MainGradients::fp32;
         r.parallel.overlap_param_gather = r.parallel.overlap_grad_reduce = true;
       }},
      {"distributed_optimizer: Megatron-LM's gradients are then in a buffer",
       [](Model&, Recipe& r) { r.parallel.distributed_optimizer = true; }},
      {"overlap_grad_reduce: gradients are reduced in buckets of a buffer",
       [](Model&, Recipe& r) { r.parallel.overlap_grad_reduce = true; }},
      {"overlap_grad_reduce with data_parallel 1: there is nobody to reduce with",
       [](Model&, Recipe& r) {
         r.data_parallel = 1;
         r.parallel.main_gradients = MainGradients::fp32;
         r.parallel.overlap_grad_reduce = true;
       }},
      {"checkpoint_method=block needs checkpoint=full",
       [](Model&, Recipe& r) { r.parallel.checkpoint_method = CheckpointMethod::block; }},
      {"checkpoint_layers counts layers that are computed again",
       [](Model&, Recipe& r) { r.parallel.checkpoint_layers = 2; }},
      {"microbatch_group counts micro-batches of one of several chunks",
       [](Model&, Recipe& r) { r.parallel.microbatch_group = 2; }},
      {"Megatron-LM has no GPipe", [](Model&, Recipe& r) { r.parallel.schedule = PipelineSchedule::gpipe; }},
      {"3 micro-batches cannot be interleaved in groups of 2",
       [](Model&, Recipe& r) { r.parallel.interleave = 2, r.accumulation = 3; }},
      {"microbatch_group 3 is smaller than the pipeline of 4 GPUs",
       [](Model&, Recipe& r) {
         r.parallel.pipeline = 4, r.parallel.interleave = 2, r.accumulation = 8, r.parallel.microbatch_group = 3;
       }},
      {"interleave 2 needs a pipeline of several GPUs",
       [](Model&, Recipe& r) { r.parallel.pipeline = 1, r.parallel.interleave = 2; }},
      {"stage_layout with first_stage_layers",
       [](Model&, Recipe& r) { r.parallel.stage_layout = "Ettttt|tttL", r.parallel.first_stage_layers = 5; }},
  });
}

TEST(ParallelJob, RefusesWhatDeepSpeedAndTorchtitanRefuse) {
  const auto deepspeed = [](Recipe& r) -> ModelParallel& {
    r.parallel.framework = ParallelFramework::deepspeed;
    return r.parallel;
  };
  const auto torchtitan = [](Model& m, Recipe& r) -> ModelParallel& {
    m.tied_embedding = false;
    r.parallel.framework = ParallelFramework::torchtitan;
    return r.parallel;
  };
  expect_refused({
      {"DeepSpeed's PipelineModule has one chunk", [&](Model&, Recipe& r) { deepspeed(r).interleave = 2; }},
      {"DeepSpeed's TrainSchedule is 1F1B",
       [&](Model&, Recipe& r) { deepspeed(r).schedule = PipelineSchedule::gpipe; }},
      {"DeepSpeed's pipeline overlaps neither",
       [&](Model&, Recipe& r) {
         deepspeed(r).overlap_grad_reduce = true;
         r.parallel.main_gradients = MainGradients::fp32;
       }},
      {"torchtitan refuses weight tying with a pipeline",
       [&](Model& m, Recipe& r) {
         torchtitan(m, r);
         m.tied_embedding = true;
       }},
      {"3 micro-batches are fewer than the pipeline's 4 GPUs, which torch's Schedule1F1B refuses",
       [&](Model& m, Recipe& r) { torchtitan(m, r).pipeline = 4, r.accumulation = 3; }},
      {"torchtitan has neither", [&](Model& m, Recipe& r) { torchtitan(m, r).main_gradients = MainGradients::fp32; }},
      {"GPipe with 2 chunks",
       [&](Model& m, Recipe& r) {
         torchtitan(m, r).schedule = PipelineSchedule::gpipe;
         r.parallel.framework = ParallelFramework::megatron;
         r.parallel.pipeline = 1, r.parallel.interleave = 2;
       }},
  });
}

TEST(ParallelJob, RefusesWhatIsNotImplemented) {
  const auto with = [](const std::function<void(Recipe&)>& change) {
    return [change](Model&, Recipe& r) { change(r); };
  };
  expect_refused({
      {"with this architecture is not implemented; expected a decoder",
       [](Model& m, Recipe&) { m.architecture = Architecture::encoder; }},
      {"with experts is not implemented",
       [](Model& m, Recipe&) { m = small_rotary_decoder(), m.experts = 4, m.experts_per_token = 2; }},
      {"with execution compiled or native", with([](Recipe& r) { r.execution = ExecutionMode::compiled; })},
      {"with lora_rank under another framework than Megatron-LM", with([](Recipe& r) {
         r.lora_rank = 4;
         r.parallel.framework = ParallelFramework::torchtitan;
       })},
      {"tensor 2 does not divide lora_rank 3", with([](Recipe& r) { r.lora_rank = 3; })},
      {"lora_dropout, weights_in_nf4", with([](Recipe& r) { r.lora_rank = 4, r.lora_dropout = 0.1; })},
      {"with precision amp_fp16 or amp_bf16", with([](Recipe& r) { r.precision = Precision::amp_bf16; })},
      {"with precision amp_fp16 or amp_bf16 is not implemented; expected precision bf16, which torchtitan has",
       with([](Recipe& r) {
         r.precision = Precision::amp_bf16;
         r.parallel.framework = ParallelFramework::torchtitan;
       })},
      {"which Megatron-DeepSpeed has", with([](Recipe& r) {
         r.precision = Precision::amp_bf16;
         r.parallel.framework = ParallelFramework::deepspeed;
       })},
      {"expected master_parameters=true, as this framework's optimizer",
       with([](Recipe& r) { r.master_parameters = false; })},
      {"expected master_parameters=true, torchtitan's training.dtype=float32", with([](Recipe& r) {
         r.master_parameters = false;
         r.parallel.framework = ParallelFramework::torchtitan;
       })},
      {"with precision fp8 under another framework than torchtitan",
       with([](Recipe& r) { r.precision = Precision::fp8; })},
      {"with precision fp8 without sequence_parallel", with([](Recipe& r) {
         r.precision = Precision::fp8;
         r.parallel.framework = ParallelFramework::torchtitan;
       })},
      {"with optimizer sgd", with([](Recipe& r) { r.optimizer = OptimizerKind::sgd; })},
      {"with an 8-bit or paged optimizer", with([](Recipe& r) { r.optimizer = OptimizerKind::adamw_8bit; })},
      {"with optimizer_in_backward", with([](Recipe& r) { r.optimizer_in_backward = true; })},
      {"with loss_chunks or fused_linear_loss", with([](Recipe& r) { r.loss_chunks = 2; })},
      {"with activation_offload", with([](Recipe& r) { r.activation_offload = true; })},
      {"with tile_factor", with([](Recipe& r) { r.tile_factor = 2; })},
      {"with loss_in_fp32=false", with([](Recipe& r) { r.loss_in_fp32 = false; })},
  });
}

// A setting that only a divided job has is never passed over in silence.
TEST(ParallelJob, SettingsOfOneGpuAreNotIgnored) {
  const auto alone = [](const std::function<void(ModelParallel&)>& change) {
    return [change](Model&, Recipe& r) {
      r.parallel.tensor = r.parallel.pipeline = 1;
      change(r.parallel);
    };
  };
  expect_refused({
      {"overlap_grad_reduce", alone([](ModelParallel& p) { p.overlap_grad_reduce = true; })},
      {"overlap_param_gather", alone([](ModelParallel& p) { p.overlap_param_gather = true; })},
      {"with these first and last stages",
       alone([](ModelParallel& p) { p.main_gradients = MainGradients::automatic, p.first_stage_layers = 3; })},
      {"microbatch_group",
       alone([](ModelParallel& p) { p.main_gradients = MainGradients::automatic, p.microbatch_group = 4; })},
      {"has 2 stages; expected 1", alone([](ModelParallel& p) { p.stage_layout = "Ett|ttL"; })},
      {"sequence_parallel with tensor 1", alone([](ModelParallel& p) { p.sequence_parallel = true; })},
  });
}

// Every known decoder is divided, or refused in a sentence: programs are written for each.
TEST(ParallelJob, EveryKnownWorkloadIsDividedOrRefused) {
  std::size_t divided = 0, decoders = 0;
  for (const std::string& name : known_workloads()) {
    TrainingJob job = load_training_job(name);
    if (job.model.architecture != Architecture::decoder) continue;
    SCOPED_TRACE(name);
    ++decoders;
    job.model.layers = 2;
    job.recipe.batch = job.recipe.accumulation = job.recipe.data_parallel = 1;
    for (const auto& [tensor, pipeline] : {std::pair(2, 1), std::pair(1, 2)}) {
      job.recipe.parallel.tensor = tensor, job.recipe.parallel.pipeline = pipeline;
      job.recipe.accumulation = pipeline;
      try {
        EXPECT_FALSE(generate_step(job.model, job.recipe).ops.empty());
        ++divided;
      } catch (const UsageError& refused) {
        EXPECT_NE(std::string(refused.what()), "");
      }
    }
  }
  EXPECT_GT(decoders, 30u);
  EXPECT_GT(divided, decoders) << "more than half of the pairs";
}

TEST(ParallelJob, MorePassesThanOne) {
  Recipe r;
  r.batch = 6, r.parallel.micro_batch = 2;
  EXPECT_EQ(with_passes(r).accumulation, 3);
  EXPECT_EQ(with_passes(r).batch, 2);
  r.parallel.global_batch = 64, r.data_parallel = 4;
  EXPECT_EQ(with_passes(r).accumulation, 8);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
