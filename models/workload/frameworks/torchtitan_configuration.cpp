// torchtitan 0.2.2: the TOML of --job.config_file. Keys, values and defaults: torchtitan/config/job_config.py; what
// they do: models/llama3/infra/parallelize.py, distributed/parallel_dims.py, pipeline_parallel.py. Its main branch has
// other keys, in Python.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "models/workload/frameworks/framework_files.h"
#include "models/workload/frameworks/torchtitan_float8.h"
#include "models/workload/frameworks/torchtitan_pipeline.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kTorchtitanPassedOver[] = {"job",
                                                 "profiling",
                                                 "metrics",
                                                 "lr_scheduler",
                                                 "checkpoint",
                                                 "comm",
                                                 "validation",
                                                 "debug",
                                                 "memory_estimation",
                                                 "training.dataset",
                                                 "training.dataset_path",
                                                 "training.steps",
                                                 "training.gc_freq",
                                                 "training.gc_debug",
                                                 "training.dataloader",
                                                 "training.deterministic",
                                                 "training.seed",
                                                 "optimizer.lr",
                                                 "optimizer.beta1",
                                                 "optimizer.beta2",
                                                 "optimizer.eps",
                                                 "optimizer.weight_decay",
                                                 "model.hf_assets_path",
                                                 "model.tokenizer_path",
                                                 "model.print_after_conversion",
                                                 "parallelism.pipeline_parallel_expert_parallel_overlap",
                                                 "parallelism.context_parallel_rotate_method",
                                                 "parallelism.context_parallel_load_balancer",
                                                 "parallelism.expert_tensor_parallel_degree",
                                                 "parallelism.expert_parallel_comm_backend",
                                                 "activation_checkpoint.preserve_rng_state",
                                                 "activation_checkpoint.determinism_check",
                                                 "activation_checkpoint.debug",
                                                 "activation_checkpoint.visualize_memory_budget_pareto",
                                                 "quantize",
                                                 "compile.backend",
                                                 "experimental",
                                                 "fault_tolerance.process_group",
                                                 "fault_tolerance.process_group_timeout_ms",
                                                 "fault_tolerance.replica_id",
                                                 "fault_tolerance.group_size",
                                                 "fault_tolerance.min_replica_size",
                                                 "fault_tolerance.semi_sync_method"};

class TorchtitanReader {
 public:
  TorchtitanReader(const ConfigurationFile& file, const FrameworkSurroundings& surroundings)
      : file_(file), surroundings_(surroundings) {}

  FrameworkJob run() {
    refuse_other_parallelism();
    read_network();
    is_float8_ = read_float8(file_, job_);
    read_ranks();
    read_training();
    read_tensor();
    read_pipeline();
    read_checkpointing();
    read_sharding();
    for (const char* key : kTorchtitanPassedOver) file_.pass_over(key);
    job_.unknown_keys = file_.unknown();
    return std::move(job_);
  }

 private:
  [[noreturn]] void not_implemented(const std::string& what) const {
    throw UsageError(fmt::format("{}: {} is not implemented.", file_.name(), what));
  }

  void refuse_other_parallelism() const {
    constexpr std::array<std::pair<const char*, const char*>, 2> kDegrees{
        {{"parallelism.context_parallel_degree", "context parallelism"},
         {"parallelism.expert_parallel_degree", "expert parallelism"}}};
    for (const auto& [key, name] : kDegrees)
      if (file_.integer(key, 1, 1, kMostRanks) > 1)
        not_implemented(fmt::format("{} ({}={})", name, key, file_.text(key, "")));
    if (file_.flag("fault_tolerance.enable", false)) not_implemented("fault_tolerance");
  }

  // "llama3" and "8B" are the network "llama3-8b".
  void read_network() {
    const std::string name = file_.text("model.name", "llama3"), flavor = file_.text("model.flavor", "debugmodel");
    std::string network = name + "-" + flavor;
    std::transform(network.begin(), network.end(), network.begin(), [](unsigned char c) { return std::tolower(c); });
    if (names_workload(network)) job_.network = network;
  }

  void read_ranks() {
    replicas_ = file_.integer("parallelism.data_parallel_replicate_degree", 1, 1, kMostRanks);
    tensor_ = file_.integer("parallelism.tensor_parallel_degree", 1, 1, kMostRanks);
    pipeline_ = file_.integer("parallelism.pipeline_parallel_degree", 1, 1, kMostRanks);
    const std::int64_t shards = file_.integer("parallelism.data_parallel_shard_degree", -1, -1, kMostRanks);
    if (shards == 0) file_.fail("parallelism.data_parallel_shard_degree", "-1 (all that are left) or at least 1");
    if (replicas_ * tensor_ > kMostRanks / pipeline_ / std::max<std::int64_t>(shards, 1))
      file_.refuse(fmt::format("its ranks are more than {}", kMostRanks));
    const std::int64_t apart = replicas_ * tensor_ * pipeline_;
    job_.ranks = ranks_of(file_, shards > 0 ? static_cast<std::uint32_t>(shards * apart) : 0, surroundings_);
    require_ranks(file_, job_);
    if (job_.ranks % apart == 0) return;
    std::string beside;
    for (const auto& [key, degree] :
         {std::pair("tensor_parallel_degree", tensor_), {"pipeline_parallel_degree", pipeline_}})
      if (degree > 1) beside += fmt::format(" times parallelism.{}={}", key, degree);
    file_.refuse(
        fmt::format("torchtitan refuses it: parallelism.data_parallel_replicate_degree={}{} does not divide {} GPUs",
                    replicas_, beside, job_.ranks));
  }

  std::int64_t data() const { return job_.ranks / (tensor_ * pipeline_); }  // ranks that read samples of their own
  std::int64_t shards() const { return data() / replicas_; }

  void read_training() {
    job_.batch = file_.integer("training.local_batch_size", 8, 1, kMostSamples);
    job_.sequence = file_.integer("training.seq_len", 2048, 1, kMostTokens);
    const std::int64_t all = file_.integer("training.global_batch_size", -1, -1, kMostSamples * kMostAccumulation);
    const std::int64_t once = job_.batch * data();
    if (all > 0 && all % once != 0)
      file_.refuse(
          fmt::format("torchtitan refuses it: training.global_batch_size={} must be a multiple of "
                      "local_batch_size times data-parallel ranks, {}",
                      all, once));
    job_.accumulation = all > 0 ? all / once : 1;
    set_number(job_, "batch", job_.batch);
    set_number(job_, "sequence", job_.sequence);
    if (pipeline_ == 1) set_number(job_, "accumulation", job_.accumulation);
    read_types();
    read_optimizer();
    clips_ = file_.number("training.max_norm", 1, 0, 1e30) > 0;
    const auto components = file_.list("compile.components");
    const bool compiles_model =
        components.empty() || std::find(components.begin(), components.end(), "model") != components.end();
    compiles_ = file_.flag("compile.enable", false) && compiles_model;
    if (compiles_ && tensor_ == 1 && pipeline_ == 1) job_.settings.push_back("execution=compiled");
  }

  void read_tensor() {
    const bool async = file_.flag("parallelism.enable_async_tensor_parallel", false);
    const bool whole_loss = file_.flag("parallelism.disable_loss_parallel", false);
    if (tensor_ == 1) return;
    if (async && !compiles_)
      file_.refuse(
          "torchtitan refuses it: parallelism.enable_async_tensor_parallel needs compile.enable with model among "
          "compile.components");
    if (whole_loss) not_implemented("parallelism.disable_loss_parallel beside parallelism.tensor_parallel_degree");
    if (job_.sequence % (2 * tensor_) != 0)
      file_.refuse(
          fmt::format("torchtitan refuses it: training.seq_len={} is no multiple of 2 times "
                      "parallelism.tensor_parallel_degree, {}",
                      job_.sequence, 2 * tensor_));
    if (replicas_ > 1 && shards() == 1)
      file_.refuse(
          fmt::format("torchtitan refuses it: \"DDP has not supported > 1D parallelism\", and "
                      "parallelism.data_parallel_replicate_degree={} has one shard beside "
                      "parallelism.tensor_parallel_degree={}",
                      replicas_, tensor_));
    set_divided();
    set_number(job_, "tensor", tensor_);
    job_.settings.push_back("sequence_parallel=true");
    if (async) job_.settings.push_back("async_tensor_parallel=true");
    if (compiles_) job_.policies.push_back("compile:modules=layers.*");
  }

  void set_divided() {
    job_.settings.push_back("parallel_framework=torchtitan");
    // Of gradients on the CPU no norm is taken (read_sharding).
    if (!clips_ || file_.flag("training.enable_cpu_offload", false)) job_.settings.push_back("clip_gradients=false");
  }

  // Stages, and the micro-batches that a local batch is cut into.
  void read_pipeline() {
    const TorchtitanPipeline pipeline = read_torchtitan_pipeline(file_, pipeline_, job_.batch, job_.network);
    if (pipeline_ == 1) return;
    if (job_.accumulation > 1) not_implemented("gradient accumulation (training.global_batch_size) over a pipeline");
    if (replicas_ > 1) not_implemented("parallelism.data_parallel_replicate_degree beside pipeline_parallel_degree");
    if (file_.flag("training.enable_cpu_offload", false))
      not_implemented("training.enable_cpu_offload beside parallelism.pipeline_parallel_degree");
    if (tensor_ == 1) {
      set_divided();
      if (compiles_) job_.policies.push_back("compile:modules=layers.*");
    }
    set_number(job_, "pipeline", pipeline_);
    if (pipeline.stages_per_rank > 1) set_number(job_, "interleave", pipeline.stages_per_rank);
    set_number(job_, "micro_batch", pipeline.micro_batch);
    if (pipeline.gpipe) job_.settings.push_back("pipeline_schedule=gpipe");
    if (!pipeline.stage_layout.empty()) job_.settings.push_back("stage_layout=" + pipeline.stage_layout);
    if (shards() > 1) set_number(job_, "data_parallel", shards());
  }

  // Under fully_shard the gathered parameters have mixed_precision_param's type; alone and under DDP that is
  // autocast's.
  void read_types() {
    const std::string dtype = file_.text("training.dtype", "float32");
    const std::string mixed = file_.text("training.mixed_precision_param", "bfloat16");
    for (const auto& [key, value] : {std::pair("training.dtype", &dtype), {"training.mixed_precision_param", &mixed}})
      if (*value != "float32" && *value != "bfloat16") file_.fail(key, "float32 or bfloat16");
    if (const std::string reduce = file_.text("training.mixed_precision_reduce", "float32"); reduce != "float32")
      file_.fail("training.mixed_precision_reduce", "float32");
    // Tensor or pipeline parallelism alone has no mixed precision (distributed/utils.py, maybe_enable_amp, which
    // warns).
    const bool is_divided = tensor_ > 1 || pipeline_ > 1;
    const bool is_mixed = mixed == "bfloat16" && (!is_divided || shards() > 1);
    const bool is_fp32 = dtype == "float32" && !is_mixed;
    if (dtype == "bfloat16" && is_divided)
      not_implemented(fmt::format("training.dtype=bfloat16 beside parallelism.{}_parallel_degree",
                                  tensor_ > 1 ? "tensor" : "pipeline"));
    if (mixed == "bfloat16" && !is_mixed)
      job_.notes.push_back(
          "training.mixed_precision_param: torchtitan has no mixed precision of tensor or pipeline parallelism without "
          "FSDP.");
    is_autocast_ = dtype == "float32" && is_mixed && shards() == 1;
    if (is_float8_ && (is_fp32 || is_autocast_))
      not_implemented("model.converters (float8) without bf16 parameters of FSDP");
    job_.settings.push_back(is_fp32        ? "precision=fp32"
                            : is_autocast_ ? "precision=amp_bf16"
                            : is_float8_   ? "precision=fp8"
                                           : "precision=bf16");
    // fp32 shards are what the optimizer updates: as the copy that bf16 parameters need elsewhere.
    if (dtype == "float32" && is_mixed && !is_autocast_) job_.settings.push_back("master_parameters=true");
  }

  void read_optimizer() {
    const std::string name = file_.text("optimizer.name", "AdamW"),
                      kernels = file_.text("optimizer.implementation", "fused");
    if (name != "Adam" && name != "AdamW") file_.fail("optimizer.name", "Adam or AdamW");
    if (kernels == "for-loop") not_implemented("optimizer.implementation=for-loop");
    job_.settings.push_back(name == "Adam" ? "optimizer=adam" : "optimizer=adamw");
    job_.settings.push_back("optimizer_kernels=" + kernels);
    if (file_.flag("optimizer.early_step_in_backward", false)) job_.settings.push_back("optimizer_in_backward=true");
  }

  void read_checkpointing() {
    const std::string mode = file_.text("activation_checkpoint.mode", "selective");
    const std::string option = file_.text("activation_checkpoint.selective_ac_option", "2");
    const bool stops_early = file_.flag("activation_checkpoint.early_stop", false);
    file_.pass_over("activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns");
    if (mode == "none") return;
    if (mode == "memory_budget") {
      if (pipeline_ > 1)
        not_implemented("activation_checkpoint.mode=memory_budget beside parallelism.pipeline_parallel_degree");
      PolicyWords words("torch_budget");
      words.add("memory_budget", file_.text("activation_checkpoint.memory_budget", "0.5"));
      return job_.policies.push_back(words.text());
    }
    if (mode != "selective" && mode != "full")
      file_.fail("activation_checkpoint.mode", "selective, full, memory_budget or none");
    PolicyWords words("torchtitan");
    words.add("mode", mode);
    if (mode == "selective") words.add("selective_ac_option", option);
    words.add_flag("early_stop", stops_early);
    job_.policies.push_back(words.text());
  }

  void read_sharding() {
    const std::string reshard = file_.text("parallelism.fsdp_reshard_after_forward", "default");
    if (reshard != "default" && reshard != "always" && reshard != "never")
      file_.fail("parallelism.fsdp_reshard_after_forward", "default, always or never");
    const bool offloads = file_.flag("training.enable_cpu_offload", false);
    if (job_.ranks == 1) return job_.notes.push_back("One GPU shares nothing with others: no policy of [parallelism].");
    if (pipeline_ > 1) {  // FSDP2 is that of the generated stages, whose parameters stay whole from pass to pass
      if (reshard == "always") not_implemented("parallelism.fsdp_reshard_after_forward=always beside a pipeline");
      return;
    }
    if (data() == 1) return;
    if (shards() == 1) {
      PolicyWords words("ddp");
      words.add("ranks", job_.ranks);
      words.add("bucket_cap", "100MiB");  // parallelize.py, apply_ddp
      return job_.policies.push_back(words.text());
    }
    PolicyWords words("fsdp");
    words.add("version", 2);
    words.add("ranks", data());
    if (replicas_ > 1) words.add("replicate", replicas_);
    if (reshard != "default") words.add_flag("reshard_after_forward", reshard == "always");
    words.add("reduce_dtype", "fp32");
    if (offloads) words.add("offload", "cpu");
    if (clips_ && offloads)
      job_.notes.push_back("training.max_norm: the norm of gradients on the CPU is not implemented, and left out.");
    else if (clips_)
      words.add_flag("clip_grad_norm", true);
    job_.policies.push_back(words.text());
  }

  const ConfigurationFile& file_;
  const FrameworkSurroundings& surroundings_;
  FrameworkJob job_;
  std::int64_t replicas_ = 1, tensor_ = 1, pipeline_ = 1;
  bool is_autocast_ = false, is_float8_ = false, clips_ = false, compiles_ = false;
};

}  // namespace

FrameworkJob torchtitan_job(const ConfigurationFile& file, const FrameworkSurroundings& surroundings) {
  return TorchtitanReader(file, surroundings).run();
}

}  // namespace memwall
