#include "models/workload/generate/parallel/parallel_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/workload/generate/configuration/model_size.h"
#include "models/workload/generate/configuration/module_structure.h"
#include "models/workload/generate/network.h"
#include "models/workload/generate/parallel/pipeline_actions.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kVocabularyMultiple = 128;  // make_vocab_size_divisible_by

bool autocast_precision(const Recipe& r) {
  return r.precision == Precision::amp_fp16 || r.precision == Precision::amp_bf16;
}

// What a framework has in place of autocast.
const char* autocast_expected(ParallelFramework framework) {
  if (framework == ParallelFramework::torchtitan)
    return "precision bf16, which torchtitan has by FSDP2's mixed precision beside tensor parallelism, or fp32";
  return framework == ParallelFramework::deepspeed ? "precision bf16 or fp16, which Megatron-DeepSpeed has"
                                                   : "precision bf16 or fp16, which Megatron-LM has";
}

void refuse(bool refused, const std::string& sentence) {
  if (refused) throw UsageError(sentence);
}

// Can `t` ranks share each layer?
bool divides_layers(const Model& m, const Recipe& r, std::int64_t t) {
  const std::int64_t keys = key_value_heads(m);
  const bool has_keys =
      r.parallel.framework == ParallelFramework::torchtitan ? keys % t == 0 : keys % t == 0 || t % keys == 0;
  return m.heads % t == 0 && inner(m) % t == 0 && r.lora_rank % t == 0 && has_keys;
}

// The tensor parallelism that comes nearest to what was asked for: "4 or 8".
std::string tensors_near(const Model& m, const Recipe& r) {
  std::int64_t below = std::min(r.parallel.tensor, m.heads), above = r.parallel.tensor;
  while (below > 1 && !divides_layers(m, r, below)) --below;
  while (above <= m.heads && !divides_layers(m, r, above)) ++above;
  return above > m.heads ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

void require_divisible(const Model& m, const Recipe& r) {
  const std::int64_t t = r.parallel.tensor, keys = key_value_heads(m);
  const auto near = [&](bool refused, const std::string& sentence) {
    if (refused) throw UsageError(fmt::format("{}; expected {}.", sentence, tensors_near(m, r)));
  };
  near(m.heads % t != 0, fmt::format("tensor {} does not divide the model's {} heads", t, m.heads));
  near(inner(m) % t != 0, fmt::format("tensor {} does not divide the MLP's width {}", t, inner(m)));
  near(keys % t != 0 && t % keys != 0,
       fmt::format("tensor {} neither divides the model's {} heads of keys and values nor is a multiple of them", t,
                   keys));
  near(r.lora_rank % t != 0, fmt::format("tensor {} does not divide lora_rank {}", t, r.lora_rank));
  near(r.parallel.framework == ParallelFramework::torchtitan && keys % t != 0,
       fmt::format("tensor {} does not divide the model's {} heads of keys and values, as torchtitan's layers need", t,
                   keys));
  const std::int64_t sequence = r.sequence ? r.sequence : m.longest;
  refuse(r.parallel.sequence_parallel && sequence % t != 0,
         fmt::format("tensor {} does not divide the {} tokens of a sequence, as sequence_parallel needs.", t, sequence));
}

void require_implemented_recipe(const Model& m, const Recipe& r) {
  const auto only = [](bool fails, const char* setting, const char* expected) {
    refuse(fails, fmt::format("tensor or pipeline parallelism with {} is not implemented; expected {}.", setting,
                              expected));
  };
  only(m.architecture != Architecture::decoder, "this architecture", "a decoder (GPT, Llama)");
  only(m.experts != 0, "experts", "a dense model");
  only(r.execution != ExecutionMode::eager, "execution compiled or native",
       "execution=eager, of which --policy compile:modules=layers.* compiles the blocks as torchtitan does");
  only(r.lora_rank != 0 && r.parallel.framework != ParallelFramework::megatron,
       "lora_rank under another framework than Megatron-LM", "parallel_framework=megatron");
  only(r.lora_rank != 0 &&
           (r.lora_in_fp32 || r.lora_dropout != 0 || r.weights_in_nf4 || r.weights_in_gptq || r.trained_embeddings),
       "lora_in_fp32, lora_dropout, weights_in_nf4, weights_in_gptq or trained_embeddings", "none of them");
  only(r.tile_factor != 0, "tile_factor", "tile_factor=0");
  only(autocast_precision(r), "precision amp_fp16 or amp_bf16", autocast_expected(r.parallel.framework));
  only(r.precision == Precision::fp8 && r.parallel.framework != ParallelFramework::torchtitan,
       "precision fp8 under another framework than torchtitan",
       "parallel_framework=torchtitan, or precision=bf16 or fp8_transformer_engine");
  only(r.precision == Precision::fp8 && r.parallel.tensor > 1 && !r.parallel.sequence_parallel,
       "precision fp8 without sequence_parallel", "sequence_parallel=1, which torchtitan's plan of layers is");
  only(r.precision == Precision::fp8_transformer_engine && r.parallel.framework != ParallelFramework::megatron,
       "precision fp8_transformer_engine under another framework than Megatron-LM", "parallel_framework=megatron");
  only(r.optimizer_in_backward, "optimizer_in_backward", "optimizer_in_backward=false");
  only(r.optimizer == OptimizerKind::adamw_8bit || r.paged_optimizer, "an 8-bit or paged optimizer",
       "optimizer=adam or adamw");
  only(r.optimizer == OptimizerKind::sgd, "optimizer sgd", "optimizer=adam or adamw");
  only(r.loss_chunks > 1 || r.fused_linear_loss, "loss_chunks or fused_linear_loss", "a loss in one piece");
  only(r.returned_logits != ReturnedLogits::none || r.shifted_logits, "returned_logits or shifted_logits",
       "neither, as in Megatron-LM");
  only(r.activation_offload, "activation_offload", "activation_offload=false, or --policy offload on the step");
  only(r.master_parameters == false && bytes_of(parameter_type(r.precision)) < bytes_of(DataType::fp32),
       "master_parameters=false and parameters in 16 bits",
       r.parallel.framework == ParallelFramework::torchtitan
           ? "master_parameters=true, torchtitan's training.dtype=float32, or precision=fp32"
           : "master_parameters=true, as this framework's optimizer has them, or precision=fp32");
  only(!r.loss_in_fp32, "loss_in_fp32=false", "loss_in_fp32=true");
}

void require_megatron(const Recipe& r) {
  const ModelParallel& p = r.parallel;
  refuse(p.sequence_parallel && p.tensor == 1,
         "sequence_parallel with tensor 1: Megatron-LM refuses it, as there is nobody to share tokens with; expected "
         "tensor 2 or more.");
  const bool megatron = p.framework == ParallelFramework::megatron;
  refuse(p.tp_comm_overlap && !(p.sequence_parallel && megatron),
         "tp_comm_overlap: Transformer Engine's messages are those of sequence parallelism under Megatron-LM; expected "
         "sequence_parallel=1 and parallel_framework=megatron.");
  refuse(
      p.cross_entropy_loss_fusion && p.framework == ParallelFramework::deepspeed,
      "cross_entropy_loss_fusion is Megatron-LM's, and of programs with torchtitan's layers and a fused loss; expected "
      "parallel_framework=megatron or torchtitan.");
  refuse(p.main_gradients == MainGradients::bf16_fused && parameter_type(r.precision) != DataType::bf16,
         "main_gradients=bf16_fused: gradients add up in the parameters' own type; expected precision bf16 or "
         "fp8_transformer_engine.");
  refuse(r.fp8_parameters && p.main_gradients != MainGradients::fp32_fused &&
             p.main_gradients != MainGradients::bf16_fused,
         "fp8_parameters: gradients of parameters in fp8 add up in a buffer; expected main_gradients=fp32_fused or "
         "bf16_fused.");
  refuse(p.overlap_param_gather && !(p.overlap_grad_reduce && p.distributed_optimizer),
         "overlap_param_gather: Megatron-LM refuses it without overlap_grad_reduce and distributed_optimizer.");
  refuse(p.distributed_optimizer && p.main_gradients == MainGradients::none &&
             p.framework == ParallelFramework::megatron,
         "distributed_optimizer: Megatron-LM's gradients are then in a buffer; expected main_gradients=fp32 or "
         "fp32_fused.");
  refuse(p.overlap_grad_reduce && p.main_gradients == MainGradients::none,
         "overlap_grad_reduce: gradients are reduced in buckets of a buffer; expected main_gradients=fp32 or "
         "fp32_fused.");
  refuse(p.overlap_grad_reduce && r.data_parallel == 1 && megatron,
         "overlap_grad_reduce with data_parallel 1: there is nobody to reduce with, it would do nothing; expected "
         "data_parallel 2 or more.");
  refuse(p.checkpoint_method == CheckpointMethod::block && r.checkpoint != ActivationCheckpoint::full,
         "checkpoint_method=block needs checkpoint=full.");
  refuse(p.checkpoint_layers != 1 && r.checkpoint != ActivationCheckpoint::full,
         "checkpoint_layers counts layers that are computed again; expected checkpoint=full beside it.");
  refuse(p.microbatch_group != 0 && p.interleave == 1,
         "microbatch_group counts micro-batches of one of several chunks; expected interleave 2 or more beside it.");
}

void require_framework(const Model& m, const Recipe& r) {
  const ModelParallel& p = r.parallel;
  if (p.framework == ParallelFramework::deepspeed) {
    refuse(p.interleave > 1, "interleave: DeepSpeed's PipelineModule has one chunk of layers per GPU; expected 1.");
    refuse(p.schedule != PipelineSchedule::one_f_one_b,
           "pipeline_schedule: DeepSpeed's TrainSchedule is 1F1B; expected one_f_one_b.");
    refuse(p.overlap_grad_reduce || p.overlap_param_gather,
           "overlap_grad_reduce, overlap_param_gather: DeepSpeed's pipeline overlaps neither; expected false.");
  }
  const bool titan = p.framework == ParallelFramework::torchtitan;
  refuse(p.async_tensor_parallel && !(titan && p.sequence_parallel && p.tensor > 1),
         "async_tensor_parallel is torchtitan's, of tensor-parallel ranks that share tokens; expected "
         "parallel_framework=torchtitan, tensor 2 or more and sequence_parallel=1.");
  if (titan) {
    refuse(r.precision == Precision::fp16,
           "precision fp16 with parallel_framework torchtitan, which scales no gradients; expected bf16 or fp32.");
    refuse(m.tied_embedding && p.pipeline > 1,
           "tied_embedding: torchtitan refuses weight tying with a pipeline; expected model.tied_embedding=false.");
    refuse(p.distributed_optimizer || p.main_gradients != MainGradients::none,
           "distributed_optimizer, main_gradients: torchtitan has neither, FSDP2 divides all of a parameter; expected "
           "distributed_optimizer=false and main_gradients=none.");
    refuse(
        p.interleave > static_cast<std::int64_t>(kMostUnshardedStages) && r.data_parallel > 1,
        fmt::format("interleave {} with data_parallel {}: torch shards the parameters of more than {} stages of a GPU "
                    "again between passes, which is not implemented; expected interleave {} or less.",
                    p.interleave, r.data_parallel, kMostUnshardedStages, kMostUnshardedStages));
    refuse(p.microbatch_group != 0,
           "microbatch_group is Megatron-LM's; torch makes rounds of equally many micro-batches. Expected 0.");
    refuse(
        r.data_parallel > 1 && p.pipeline == 1,
        fmt::format("data_parallel {0} with parallel_framework torchtitan and no pipeline: FSDP2 is then a policy; "
                    "expected data_parallel 1 with --policy fsdp:ranks={0},reduce_dtype=fp32, or pipeline 2 or more.",
                    r.data_parallel));
    refuse(p.pipeline > 1 && p.interleave == 1 && p.schedule == PipelineSchedule::one_f_one_b &&
               r.accumulation < p.pipeline,
           fmt::format("{} micro-batches are fewer than the pipeline's {} GPUs, which torch's Schedule1F1B refuses.",
                       r.accumulation, p.pipeline));
  }
  if (p.schedule == PipelineSchedule::gpipe)
    refuse(p.framework == ParallelFramework::megatron && p.pipeline > 1,
           "pipeline_schedule=gpipe: Megatron-LM has no GPipe; expected one_f_one_b, or parallel_framework=torchtitan.");
}

// A family of transformers in a divided job: layers as this framework has them, where it has such layers.
void require_divisible_layers(const Model& m, const Recipe& r) {
  if (m.modules == Modules::plain) return;
  const std::string of = fmt::format("modules {}", to_string(m.modules));
  refuse(r.parallel.framework == ParallelFramework::torchtitan,
         fmt::format("{}: torchtitan has no such layers; expected parallel_framework=megatron or deepspeed.", of));
  const auto only = [&](bool refused, const char* what) {
    refuse(refused, fmt::format("{}: {} is not implemented in divided jobs; expected tensor=1,pipeline=1, or --policy "
                                "tensor or pipeline on the undivided step.",
                                of, what));
  };
  only(m.layer_order != LayerOrder::pre_norm && m.layer_order != LayerOrder::sandwich_norm,
       "a layer_order but pre_norm and sandwich_norm");
  only(m.attention_softcapping && r.attention == Attention::plain, "attention_softcapping with plain attention");
  only(m.positions == Positions::alibi, "positions: alibi");
  only(m.rotary_size != 0, "rotation of a part of each head");
  only(m.normalized_embedding || m.output_bias, "normalized_embedding or output_bias");
  only(m.residual_dropout_only && m.dropout != 0, "dropout behind attention and MLP alone (dropout=0 would be)");
}

// Megatron-LM pads the vocabulary; so does who follows it.
void pad_vocabulary(ParallelJob& job) {
  const std::int64_t multiple =
      job.recipe.parallel.framework == ParallelFramework::torchtitan ? job.tensor() : kVocabularyMultiple * job.tensor();
  const std::int64_t padded = (job.model.vocabulary + multiple - 1) / multiple * multiple;
  if (padded == job.model.vocabulary) return;
  job.notes.push_back(fmt::format("The vocabulary of {} is padded to {}, a multiple of {}.", job.model.vocabulary,
                                  padded, multiple));
  job.model.vocabulary = padded;
}

// accumulate_allreduce_grads_in_fp32 and gradient_accumulation_fusion, which Megatron-core sets where it can.
Recipe with_main_gradients(Recipe r) {
  if (r.parallel.main_gradients != MainGradients::automatic) return r;
  const bool megatron = r.parallel.framework == ParallelFramework::megatron;
  r.parallel.main_gradients =
      megatron && parameter_type(r.precision) == DataType::bf16 ? MainGradients::fp32_fused : MainGradients::none;
  return r;
}

RankSizes sizes_of(const Recipe& r) {
  RankSizes sizes;
  sizes.tensor = static_cast<std::uint32_t>(r.parallel.tensor);
  sizes.pipeline = static_cast<std::uint32_t>(r.parallel.pipeline);
  sizes.data = r.data_parallel;
  return sizes;
}

constexpr std::int64_t kMostRanks = 1'000'000;

}  // namespace

bool is_parallel(const Recipe& r) {
  const ModelParallel& p = r.parallel;
  const bool divided =
      p.tensor > 1 || p.pipeline > 1 || p.interleave > 1 || p.sequence_parallel || p.async_tensor_parallel;
  const bool stages = p.schedule != PipelineSchedule::one_f_one_b || p.microbatch_group != 0 ||
                      p.first_stage_layers != 0 || p.last_stage_layers != 0 || p.embedding_in_split ||
                      p.loss_in_split || !p.stage_layout.empty();
  const bool gradients = p.distributed_optimizer || p.main_gradients != MainGradients::automatic || p.overlap_grad_reduce ||
                         p.overlap_param_gather;
  return divided || stages || gradients || p.checkpoint_method != CheckpointMethod::uniform || p.checkpoint_layers != 1;
}

bool divides_parameters(const Recipe& r) {
  return r.parallel.framework == ParallelFramework::torchtitan && r.data_parallel > 1;
}

bool updates_each_parameter(const Recipe& r) {
  return r.parallel.framework == ParallelFramework::torchtitan && r.parallel.pipeline == 1;
}

Recipe with_passes(Recipe r) {
  ModelParallel& p = r.parallel;
  refuse(p.global_batch != 0 && p.micro_batch == 0,
         "global_batch needs micro_batch, the sequences of one pass; expected micro_batch=1 or more beside it.");
  if (p.micro_batch == 0) return r;
  refuse(r.accumulation != 1,
         fmt::format("micro_batch {} and accumulation {} both say how many passes a step has; expected one of them "
                     "(micro_batch=0 where the workload's file has it).",
                     p.micro_batch, r.accumulation));
  std::int64_t of_replica = r.batch;
  if (p.global_batch != 0) {
    refuse(p.global_batch % r.data_parallel != 0,
           fmt::format("global_batch {} is no multiple of data_parallel {}.", p.global_batch, r.data_parallel));
    of_replica = p.global_batch / r.data_parallel;
  }
  refuse(of_replica % p.micro_batch != 0,
         fmt::format("A replica's batch of {} sequences is no multiple of micro_batch {}; expected {}={} or a multiple "
                     "of that, or another micro_batch.",
                     of_replica, p.micro_batch, p.global_batch != 0 ? "global_batch" : "batch",
                     p.micro_batch * (p.global_batch != 0 ? std::int64_t{r.data_parallel} : 1)));
  r.accumulation = of_replica / p.micro_batch;
  r.batch = p.micro_batch;
  p.micro_batch = p.global_batch = 0;
  return r;
}

std::uint32_t ParallelJob::number(std::int64_t pipeline_rank) const {
  return grid.group(0, "pp")[static_cast<std::size_t>(pipeline_rank)];
}

std::vector<std::uint32_t> ParallelJob::folded_ranks(std::int64_t pipeline_rank) const {
  const std::uint32_t own = number(pipeline_rank);
  const std::string_view axes[] = {"tp", "cp", "dp"};
  std::vector<std::uint32_t> others = grid.group(own, axes);
  others.erase(std::find(others.begin(), others.end(), own));
  return others;
}

ParallelJob parallel_job(const Model& model, const Recipe& given) {
  const Recipe recipe = with_main_gradients(with_passes(given));
  const ModelParallel& p = recipe.parallel;
  require_implemented_recipe(model, recipe);
  require_divisible(model, recipe);
  require_megatron(recipe);
  require_framework(model, recipe);
  require_divisible_layers(model, recipe);
  refuse(p.tensor * p.pipeline > kMostRanks / recipe.data_parallel,
         fmt::format("tensor {} x pipeline {} x data_parallel {} are more than {} ranks.", p.tensor, p.pipeline,
                     recipe.data_parallel, kMostRanks));
  const RankSizes sizes = sizes_of(recipe);
  ParallelJob job{
      model,
      recipe,
      stage_layers(p, model.layers),
      {p.pipeline, p.interleave, recipe.accumulation, p.microbatch_group, p.framework == ParallelFramework::torchtitan},
      dense_grid(sizes, p.rank_order == RankOrder::tensor_pipeline_data),
      {}};
  for (std::size_t s = 0; s < job.stages.size(); ++s) {
    const StageLayers& stage = job.stages[s];
    refuse(stage.count == 0 && !stage.embedding && !stage.loss,
           fmt::format("Stage {} of {} holds nothing, which is not implemented; expected at least a layer in each.", s,
                       job.stages.size()));
  }
  if (p.framework != ParallelFramework::torchtitan) {  // as Megatron-LM's layers are made
    job.model.joint_query_key_value = true;
    job.model.rotary_in_fp32 = false;  // torchtune's rotation, of queries and keys that are products of their own
    // One operator, whether its weight counts from zero (layernorm_zero_centered_gamma) or not.
    if (job.model.normalization != Normalization::layer_norm) job.model.normalization = Normalization::rms_norm;
    job.model.modules = Modules::plain;
    job.model.local_rotary = false;  // one table of each step's rotation; a second is as many small kernels
    if (job.model.activation == Activation::gelu_tanh_in_parts) job.model.activation = Activation::gelu_tanh;
  }
  // The parameters that the optimizer is given are in fp32, as in all divided jobs.
  if (updates_each_parameter(job.recipe) && job.recipe.precision != Precision::fp32)
    job.recipe.master_parameters = true;
  require_schedule(p.schedule, job.pipeline);
  pad_vocabulary(job);
  return job;
}

}  // namespace memwall
