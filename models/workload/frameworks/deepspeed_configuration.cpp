// DeepSpeed 0.19: what deepspeed.initialize(config=FILE) reads. Keys and their defaults: deepspeed/runtime/config.py,
// runtime/zero/config.py, runtime/zero/offload_config.py, runtime/swap_tensor/constants.py. Whatever of
// zero_optimization the policy has is passed on only where the file says it, so that defaults stand in one place.
#include <fmt/format.h>

#include <utility>

#include "models/workload/frameworks/framework_files.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostElements = 1'000'000'000'000'000;

// Keys of zero_optimization whose policy's parameter has the same name, without "stage3_".
constexpr const char* kFlags[] = {
    "overlap_comm",           "reduce_scatter",           "use_multi_rank_bucket_allreduce",
    "contiguous_gradients",   "round_robin_gradients",    "allgather_partitions",
    "zero_quantized_weights", "zero_quantized_gradients", "memory_efficient_linear"};
constexpr const char* kStage3Flags[] = {"use_all_reduce_for_fetch_params", "allgather_sequential"};
constexpr const char* kSizes[] = {"reduce_bucket_size", "allgather_bucket_size", "sub_group_size",
                                  "zero_hpz_partition_size"};
constexpr const char* kStage3Sizes[] = {"prefetch_bucket_size",        "param_persistence_threshold",
                                        "model_persistence_threshold", "max_live_parameters",
                                        "max_reuse_distance",          "module_granularity_threshold"};
// Known, and without effect on the memory and the time of a step.
constexpr const char* kDeepSpeedPassedOver[] = {"scheduler",
                                                "steps_per_print",
                                                "wall_clock_breakdown",
                                                "dump_state",
                                                "memory_breakdown",
                                                "flops_profiler",
                                                "tensorboard",
                                                "wandb",
                                                "comet",
                                                "csv_monitor",
                                                "monitor_config",
                                                "comms_logger",
                                                "checkpoint",
                                                "zero_allow_untested_optimizer",
                                                "elasticity",
                                                "autotuning",
                                                "dataloader_drop_last",
                                                "nebula",
                                                "zero_force_ds_cpu_optimizer",
                                                "optimizer.params",
                                                "optimizer.legacy_fusion",
                                                "gradient_predivide_factor",
                                                "prescale_gradients",
                                                "fp16.loss_scale",
                                                "fp16.loss_scale_window",
                                                "fp16.initial_scale_power",
                                                "fp16.hysteresis",
                                                "fp16.min_loss_scale",
                                                "fp16.consecutive_hysteresis",
                                                "data_efficiency",
                                                "curriculum_learning",
                                                "use_data_before_expert_parallelism",
                                                "timers",
                                                "seed",
                                                "zero_optimization.gather_16bit_weights_on_model_save",
                                                "zero_optimization.stage3_gather_16bit_weights_on_model_save",
                                                "zero_optimization.stage3_gather_fp16_weights_on_model_save",
                                                "zero_optimization.load_from_fp32_weights",
                                                "zero_optimization.elastic_checkpoint",
                                                "zero_optimization.ignore_unused_parameters",
                                                "zero_optimization.log_trace_cache_warnings",
                                                "zero_optimization.override_module_apply",
                                                "zero_optimization.offload_optimizer.fast_init"};

class DeepSpeedReader {
 public:
  DeepSpeedReader(const ConfigurationFile& file, const FrameworkSurroundings& surroundings) : file_(file) {
    job_.ranks = surroundings.ranks;
  }

  FrameworkJob run() {
    refuse_other_parallelism();
    read_batch();
    read_types();
    read_optimizer();
    read_zero();
    read_checkpointing();
    for (const char* key : kDeepSpeedPassedOver) file_.pass_over(key);
    job_.unknown_keys = file_.unknown();
    return std::move(job_);
  }

 private:
  static constexpr const char* kZero = "zero_optimization.";

  void refuse_other_parallelism() const {
    for (const char* key : {"tensor_parallel.autotp_size", "tensor_parallel.tp_size", "autotp_size"})
      if (file_.integer(key, 1, 0, kMostRanks) > 1)
        throw UsageError(fmt::format("{}: {}: tensor parallelism is not implemented.", file_.name(), key));
    if (file_.flag("compile.enabled", false))
      throw UsageError(
          fmt::format("{}: compile: DeepCompile's passes are not implemented; the planner is: --policy "
                      "deepcompile.",
                      file_.name()));
    for (const char* key : {"compression_training", "sparse_attention"})
      if (file_.has_any(key)) throw UsageError(fmt::format("{}: {} is not implemented.", file_.name(), key));
  }

  void read_batch() {
    const std::int64_t all = file_.integer("train_batch_size", 0, 1, kMostSamples);
    job_.batch = file_.integer("train_micro_batch_size_per_gpu", 0, 1, kMostSamples);
    job_.accumulation = file_.integer("gradient_accumulation_steps", 0, 1, kMostAccumulation);
    if (job_.ranks == 0 && all > 0 && job_.batch > 0 && job_.accumulation > 0 &&
        all % (job_.batch * job_.accumulation) == 0)
      job_.ranks = static_cast<std::uint32_t>(all / (job_.batch * job_.accumulation));
    complete_batch(all);
    if (job_.batch > 0) set_number(job_, "batch", job_.batch);
    if (job_.accumulation > 0) set_number(job_, "accumulation", job_.accumulation);
  }

  // As DeepSpeed's _set_batch_related_parameters does it, and refuses it.
  void complete_batch(std::int64_t all) {
    const auto ranks = static_cast<std::int64_t>(job_.ranks);
    if (all == 0 || ranks == 0) {
      if (job_.accumulation == 0 && job_.batch > 0) job_.accumulation = 1;
      return;
    }
    if (job_.batch == 0 && job_.accumulation == 0) job_.accumulation = 1;
    if (job_.batch == 0) job_.batch = all / job_.accumulation / ranks;
    if (job_.accumulation == 0) job_.accumulation = all / job_.batch / ranks;
    if (job_.batch * job_.accumulation * ranks != all)
      file_.refuse(
          fmt::format("DeepSpeed refuses it: train_batch_size is {}, not micro_batch_per_gpu * "
                      "gradient_acc_step * world_size = {} * {} * {}",
                      all, job_.batch, job_.accumulation, ranks));
  }

  void read_types() {
    const bool fp16 = file_.flag("fp16.enabled", false), amp = file_.flag("amp.enabled", false);
    const bool bf16 = file_.flag(file_.has("bf16.enabled") ? "bf16.enabled" : "bfloat16.enabled", false);
    const bool autocast = file_.flag("torch_autocast.enabled", false);
    file_.pass_over("amp.opt_level");
    file_.pass_over("fp16.fp16_master_weights_and_grads");
    file_.pass_over("torch_autocast.lower_precision_safe_modules");
    if (fp16 && bf16) file_.refuse("DeepSpeed refuses it: bfloat16 and fp16 modes cannot be simultaneously enabled");
    if (file_.flag("fp16.auto_cast", false) || amp)
      throw UsageError(fmt::format("{}: fp16.auto_cast and amp are not implemented; torch_autocast is.", file_.name()));
    for (const char* key : {"bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states"})
      if (file_.flag(key, false)) throw UsageError(fmt::format("{}: {} is not implemented.", file_.name(), key));
    const std::string type = file_.text("torch_autocast.dtype", "bfloat16");
    if (autocast)
      job_.settings.push_back(type.ends_with("float16") && !type.ends_with("bfloat16") ? "precision=amp_fp16"
                                                                                       : "precision=amp_bf16");
    else if (fp16 || bf16)
      job_.settings.push_back(fp16 ? "precision=fp16" : "precision=bf16"),
          job_.settings.push_back("master_parameters=true");
    else if (file_.is_auto("bf16.enabled") || file_.is_auto("fp16.enabled"))
      job_.notes.push_back("The type of numbers is left to Transformers (\"auto\"): the step's stays.");
    if (const std::string sums = file_.text("data_types.grad_accum_dtype", ""); !sums.empty() && sums != "fp32")
      job_.notes.push_back(fmt::format("data_types.grad_accum_dtype={} is not followed.", sums));
    if (const std::string wire = file_.text("communication_data_type", ""); !wire.empty())
      job_.notes.push_back(
          fmt::format("communication_data_type={} is not followed: gradients travel as they are.", wire));
  }

  void read_optimizer() {
    const std::string type = file_.text("optimizer.type", "");
    if (type == "Adam" || type == "AdamW")
      job_.settings.push_back(type == "Adam" ? "optimizer=adam" : "optimizer=adamw"),
          job_.settings.push_back("optimizer_kernels=fused");
    else if (!type.empty())
      job_.notes.push_back(fmt::format("optimizer.type={} is not followed: the step's optimizer stays.", type));
    clips_ = file_.number("gradient_clipping", 0, 0, 1e30) > 0;
    for (const char* key : {"sparse_gradients", "disable_allgather"})
      if (file_.flag(key, false)) job_.notes.push_back(fmt::format("{} is not followed.", key));
  }

  void read_zero() {
    if (!file_.has(std::string(kZero) + "stage") && job_.ranks < 2) return;
    const std::int64_t stage = file_.integer(std::string(kZero) + "stage", 0, 0, 3);
    require_ranks(file_, job_);
    if (job_.ranks == 1) {
      job_.notes.push_back("One GPU shares nothing with others: zero_optimization is left out.");
      file_.pass_over("zero_optimization");
      file_.pass_over("aio");
      return;
    }
    PolicyWords words("deepspeed");
    words.add("stage", stage);
    words.add("ranks", job_.ranks);
    for (const char* key : kFlags) pass_flag(words, key, key);
    for (const char* key : kStage3Flags) pass_flag(words, std::string("stage3_") + key, key);
    for (const char* key : kSizes) pass_size(words, key, key);
    // DeepSpeed knows most of them without the prefix, too, as older versions did.
    for (const char* key : kStage3Sizes)
      pass_size(words, file_.has(std::string(kZero) + key) ? key : std::string("stage3_") + key, key);
    add_offload(words);
    add_zenflow(words);
    add_io(words);
    job_.policies.push_back(words.text());
  }

  void pass_flag(PolicyWords& words, const std::string& key, const char* parameter) {
    const std::string path = kZero + key;
    if (file_.has(path))
      words.add_flag(parameter, file_.flag(path, false));
    else
      note_auto(path);
  }
  void pass_size(PolicyWords& words, const std::string& key, const char* parameter) {
    const std::string path = kZero + key;
    if (file_.has(path))
      words.add(parameter, file_.integer(path, 0, 0, kMostElements));
    else
      note_auto(path);
  }
  // Transformers puts products of the hidden size there, which this file does not know.
  void note_auto(const std::string& path) {
    if (file_.is_auto(path))
      job_.notes.push_back(fmt::format(
          "{} is \"auto\": Transformers sets it by the hidden size; DeepSpeed's own default is taken.", path));
  }

  void add_offload(PolicyWords& words) {
    const std::string optimizer = std::string(kZero) + "offload_optimizer.",
                      param = std::string(kZero) + "offload_param.";
    if (file_.flag(std::string(kZero) + "cpu_offload", false)) words.add("offload_optimizer", "cpu");
    const std::string device = file_.text(optimizer + "device", "none"),
                      of_param = file_.text(param + "device", "none");
    if (device != "none") words.add("offload_optimizer", device);
    if (of_param != "none") words.add("offload_param", of_param);
    for (const char* key :
         {"nvme_path", "pin_memory", "ratio", "buffer_count", "pipeline_read", "pipeline_write", "super_offload"})
      file_.has(optimizer + key);
    for (const char* key : {"nvme_path", "pin_memory", "buffer_count", "buffer_size", "max_in_cpu"})
      file_.has(param + key);
    if (device != "none") {
      if (file_.has(optimizer + "ratio")) words.add("ratio", file_.text(optimizer + "ratio", "1"));
      for (const char* key : {"pin_memory", "super_offload", "pipeline_read", "pipeline_write"})
        if (file_.has(optimizer + key)) words.add_flag(key, file_.flag(optimizer + key, false));
      // Without it nothing changes: the norm is computed, and gradients scaled, in any case.
      if (clips_ && file_.flag(optimizer + "super_offload", false)) words.add_flag("gradient_clipping", true);
      if (file_.has(optimizer + "buffer_count"))
        words.add("offload_optimizer_buffer_count", file_.integer(optimizer + "buffer_count", 4, 1, 1024));
    }
    if (of_param != "none") {
      if (file_.has(param + "buffer_count"))
        words.add("offload_param_buffer_count", file_.integer(param + "buffer_count", 5, 1, 1024));
      for (const char* key : {"buffer_size", "max_in_cpu"})
        if (file_.has(param + key)) words.add(key, file_.integer(param + key, 0, 0, kMostElements));
    }
    file_.pass_over(optimizer + "cpu_offload_params");
    file_.pass_over(optimizer + "cpuadam_cores_perc");
  }

  // Its update interval takes the place of gradient_accumulation_steps (deepspeed/runtime/zenflow/engine.py,
  // configure_zenflow).
  void add_zenflow(PolicyWords& words) {
    const std::string zenflow = std::string(kZero) + "zenflow.";
    if (!file_.has_any(std::string(kZero) + "zenflow")) return;
    words.add_flag("zenflow", true);
    for (const char* key : {"topk_ratio", "select_strategy", "pt_reserved_cores_perc"})
      if (file_.has(zenflow + key)) words.add(std::string("zenflow_") + key, file_.text(zenflow + key, ""));
    for (const char* key : {"overlap_step", "offload"})
      if (file_.has(zenflow + key)) words.add_flag(std::string("zenflow_") + key, file_.flag(zenflow + key, false));
    if (file_.has(zenflow + "full_warm_up_rounds"))
      words.add("zenflow_full_warm_up_rounds", file_.integer(zenflow + "full_warm_up_rounds", 0, 0, 1 << 30));
    for (const char* key : {"select_interval", "update_interval"})
      if (file_.has(zenflow + key) && !file_.is_auto(zenflow + key))
        words.add(std::string("zenflow_") + key, file_.integer(zenflow + key, 1, 1, 1 << 20));
    file_.pass_over(zenflow + "auto_ratio");
    if (!file_.has(zenflow + "update_interval") || file_.is_auto(zenflow + "update_interval")) return;
    job_.accumulation = file_.integer(zenflow + "update_interval", 1, 1, kMostAccumulation);
    std::erase_if(job_.settings, [](const std::string& setting) { return setting.starts_with("accumulation="); });
    set_number(job_, "accumulation", job_.accumulation);
    job_.notes.push_back(
        fmt::format("zenflow.update_interval={} takes the place of gradient_accumulation_steps.", job_.accumulation));
  }

  void add_io(PolicyWords& words) {
    if (file_.has("aio.block_size"))
      words.add("aio_block_size", fmt::format("{}B", file_.integer("aio.block_size", 0, 1, kMostElements)));
    if (file_.has("aio.queue_depth")) words.add("aio_queue_depth", file_.integer("aio.queue_depth", 8, 1, 1 << 20));
    const char* threads = file_.has("aio.intra_op_parallelism") ? "aio.intra_op_parallelism" : "aio.thread_count";
    if (file_.has(threads)) words.add("aio_intra_op_parallelism", file_.integer(threads, 1, 1, 1024));
    for (const char* key : {"single_submit", "overlap_events", "use_gds"})
      if (const std::string path = fmt::format("aio.{}", key); file_.has(path))
        words.add_flag(fmt::format("aio_{}", key), file_.flag(path, false));
  }

  void read_checkpointing() {
    if (file_.has("activation_checkpointing.partition_activations") ||
        file_.has("activation_checkpointing.cpu_checkpointing"))
      job_.notes.push_back(
          "activation_checkpointing is of models that call deepspeed.checkpointing themselves: it is not followed. "
          "What "
          "runs again is said by --policy checkpoint.");
    file_.pass_over("activation_checkpointing");
  }

  const ConfigurationFile& file_;
  FrameworkJob job_;
  bool clips_ = false;  // gradients, by their norm
};

}  // namespace

FrameworkJob deepspeed_job(const ConfigurationFile& file, const FrameworkSurroundings& surroundings) {
  return DeepSpeedReader(file, surroundings).run();
}

}  // namespace memwall
