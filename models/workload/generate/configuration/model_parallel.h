// How one model is divided over the GPUs of a job: within layers (tensor), by layers (pipeline), and who does what when.
// Names and defaults are Megatron-LM's, revision d98e8a64, megatron/core/model_parallel_config.py and
// megatron/training/arguments.py, where a comment does not say otherwise.
#pragma once

#include <cstdint>
#include <string>

namespace memwall {

// Who issues the program, hence what the host waits for and what overlaps.
enum class ParallelFramework : std::uint8_t {
  megatron,   // Megatron-core
  deepspeed,  // DeepSpeed's PipelineModule around Megatron's layers (Megatron-DeepSpeed)
  torchtitan  // torch.distributed.pipelining with DTensor and FSDP2
};

enum class PipelineSchedule : std::uint8_t {
  one_f_one_b,  // 1F1B; interleaved where a rank has several chunks of layers
  gpipe         // all forward passes, then all backward passes
};

// Which layers are computed again in backward where checkpoints are full: each run of `checkpoint_layers` layers, all
// of them (uniform); or the first `checkpoint_layers` layers of each chunk, the others not (block).
enum class CheckpointMethod : std::uint8_t { uniform, block };

// Order of the axes over the numbers of ranks, the first with stride 1.
enum class RankOrder : std::uint8_t {
  tensor_data_pipeline,  // tp-cp-ep-dp-pp
  tensor_pipeline_data   // tp-cp-ep-pp-dp (--use-tp-pp-dp-mapping)
};

// What gradients of micro-batches add up in.
enum class MainGradients : std::uint8_t {
  automatic,   // of Megatron-core with parameters in bf16 fp32_fused, else none
  none,        // each parameter's own gradient, in its type
  fp32,        // a buffer in fp32 for the whole run, to which a kernel adds each gradient
  fp32_fused,  // the same, but matrix products add to it themselves (gradient_accumulation_fusion)
  bf16_fused   // likewise in a buffer in bf16 (grad_reduce_in_fp32=False)
};

struct ModelParallel {
  ParallelFramework framework = ParallelFramework::megatron;
  std::int64_t tensor = 1, pipeline = 1;  // GPUs
  std::int64_t interleave = 1;            // chunks of layers per GPU (virtual pipeline stages)
  bool sequence_parallel = false;         // activations between the tensor-parallel products are split by tokens
  // The all-reduce of the gradient of a column's inputs runs beside the product of its weight's gradient; without, as
  // before 2022, it follows that product (--no-async-tensor-model-parallel-allreduce). Not with sequence_parallel.
  bool async_tensor_all_reduce = true;
  // Products run in pieces beside their own gathers and scatters (--tp-comm-overlap, Transformer Engine's userbuffers).
  // With sequence_parallel.
  bool tp_comm_overlap = false;
  // torchtitan's enable_async_tensor_parallel: likewise, in the blocks that torch.compile makes, by symmetric memory.
  // Of columns what is gathered is beside products, of rows both ways are.
  bool async_tensor_parallel = false;
  // Loss and gradient of logits in 16 bits by two kernels and one gather (--cross-entropy-loss-fusion,
  // --cross-entropy-fusion-impl te).
  bool cross_entropy_loss_fusion = false;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int64_t microbatch_group = 0;  // micro-batches of a chunk in a row where interleaved; 0: as many as GPUs
  // Layers of the first and the last GPU of a pipeline; 0: as many as the others (decoder_first_pipeline_num_layers).
  std::int64_t first_stage_layers = 0, last_stage_layers = 0;
  // Embedding and loss count as a layer each where layers are divided (account_for_embedding_in_pipeline_split).
  bool embedding_in_split = false, loss_in_split = false;
  std::string stage_layout;  // pipeline_model_parallel_layout, "Et*3|(tt|)*29,m|L"; "": as above
  RankOrder rank_order = RankOrder::tensor_data_pipeline;
  CheckpointMethod checkpoint_method = CheckpointMethod::uniform;
  std::int64_t checkpoint_layers = 1;
  MainGradients main_gradients = MainGradients::automatic;
  bool distributed_optimizer = false;  // main parameters and moments are split over data-parallel ranks
  bool overlap_grad_reduce = false;    // gradients are reduced in backward, in buckets
  bool overlap_param_gather = false;   // updated parameters are gathered in the next forward
  bool clip_gradients = true;          // their norm over all GPUs is taken before the update (clip_grad 1.0)
  // DeepSpeed: tensor-parallel ranks each send a part of a message, and the receivers gather (pipe_partitioned and
  // grad_partitioned in its configuration).
  bool pipe_partitioned = true;
  // Megatron-LM of 2021 and 2022 likewise (--no-scatter-gather-tensors-in-pipeline turned it off).
  bool scatter_gather_tensors = false;
  bool deallocate_outputs = true;      // what has been sent on is dropped (deallocate_pipeline_outputs)
  // 0: `batch` is of one pass. Otherwise sequences of one pass; `batch` is then of one step of one replica.
  std::int64_t micro_batch = 0;
  std::int64_t global_batch = 0;  // with micro_batch: sequences of one step of all replicas, instead of `batch`
};

}  // namespace memwall
