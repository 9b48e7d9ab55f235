// Transformers 5.23: TrainingArguments as JSON or YAML (to_json_string(), or a file for HfArgumentParser). Keys and
// defaults: transformers/training_args.py; FSDP: _process_fsdp_args there; DeepSpeed: integrations/deepspeed.py.
#include <fmt/format.h>

#include <filesystem>

#include "models/workload/frameworks/framework_files.h"
#include "sim/error.h"

namespace memwall {
namespace {

// TrainingArguments has some two hundred keys, nearly all of which say nothing about a step's work.
constexpr const char* kDecide[] = {"tp_size", "parallelism_config",   "use_liger_kernel",    "torch_empty_cache_steps",
                                   "galore",  "auto_find_batch_size", "optim_target_modules"};

class TransformersReader {
 public:
  TransformersReader(const ConfigurationFile& file, const FrameworkSurroundings& surroundings)
      : file_(file), surroundings_(surroundings) {}

  FrameworkJob run() {
    job_.ranks =
        ranks_of(file_, static_cast<std::uint32_t>(file_.integer("world_size", 0, 0, kMostRanks)), surroundings_);
    job_.batch = file_.integer("per_device_train_batch_size", 8, 1, kMostSamples);
    job_.accumulation = file_.integer("gradient_accumulation_steps", 1, 1, kMostAccumulation);
    const bool by_deepspeed = file_.has_any("deepspeed");
    if (!by_deepspeed) set_number(job_, "batch", job_.batch), set_number(job_, "accumulation", job_.accumulation);
    read_optimizer();
    if (file_.flag("torch_compile", false)) job_.settings.push_back("execution=compiled");
    if (file_.flag("gradient_checkpointing", false)) job_.policies.push_back("checkpoint:mode=full");
    if (by_deepspeed)
      read_deepspeed();
    else if (is_fsdp())
      read_fsdp();
    else
      read_data_parallel();
    for (const char* key : kDecide)
      if (file_.has(key) && file_.text(key, "") != "false")
        job_.notes.push_back(fmt::format("{}={} is not followed.", key, file_.text(key, "")));
    return std::move(job_);
  }

 private:
  std::string half() const { return file_.flag("bf16", false) ? "bf16" : file_.flag("fp16", false) ? "fp16" : ""; }

  void read_optimizer() {
    const std::string name = file_.text("optim", "adamw_torch_fused");
    if (name == "adamw_torch_fused" || name == "adamw_torch") {
      job_.settings.push_back("optimizer=adamw");
      job_.settings.push_back(name == "adamw_torch_fused" ? "optimizer_kernels=fused" : "optimizer_kernels=foreach");
    } else if (name == "sgd") {
      job_.settings.push_back("optimizer=sgd");
    } else if (name == "adamw_bnb_8bit" || name == "adamw_8bit" || name == "adamw_torch_8bit") {
      job_.settings.push_back("optimizer=adamw_8bit");
    } else {
      job_.notes.push_back(fmt::format("optim={} is not followed: the step's optimizer stays.", name));
    }
  }

  bool is_fsdp() const {
    const std::string fsdp = file_.text("fsdp", "");
    return !fsdp.empty() && fsdp != "false" && fsdp != "False";
  }

  void read_fsdp() {
    require_ranks(file_, job_);
    const bool clips = file_.number("max_grad_norm", 1, 0, 1e30) > 0;
    if (!half().empty())
      job_.settings.push_back("precision=" + half()), job_.settings.push_back("master_parameters=true");
    const bool with_prefix = file_.has("fsdp_config.fsdp_version") ||
                             file_.has("fsdp_config.fsdp_reshard_after_forward") ||
                             file_.has("fsdp_config.fsdp_transformer_layer_cls_to_wrap");
    add_fsdp(job_, file_, {with_prefix ? "fsdp_config.fsdp_" : "fsdp_config.", 2, "FULL_SHARD", clips}, half().empty());
  }

  void read_data_parallel() {
    if (!half().empty()) job_.settings.push_back("precision=amp_" + half());
    require_ranks(file_, job_);
    if (job_.ranks < 2) return;
    PolicyWords words("ddp");
    words.add("ranks", job_.ranks);
    if (file_.has("ddp_bucket_cap_mb"))
      words.add("bucket_cap", fmt::format("{}MiB", file_.integer("ddp_bucket_cap_mb", 25, 1, 1'000'000)));
    job_.policies.push_back(words.text());
  }

  // What DeepSpeed's file leaves to Transformers ("auto") is filled in from here.
  void read_deepspeed() {
    if (!file_.has("deepspeed"))
      throw UsageError(
          fmt::format("{}: a DeepSpeed configuration inside of the arguments is not implemented; put it into a "
                      "file of its own, and name that.",
                      file_.name()));
    const std::filesystem::path path = std::filesystem::path(file_.name()).parent_path() / file_.text("deepspeed", "");
    FrameworkJob inner = read_framework_job(Framework::deepspeed, path, {job_.ranks});
    require_same(inner.batch, job_.batch, "train_micro_batch_size_per_gpu", "per_device_train_batch_size");
    require_same(inner.accumulation, job_.accumulation, "gradient_accumulation_steps", "gradient_accumulation_steps");
    if (inner.batch == 0) set_number(job_, "batch", job_.batch);
    if (inner.accumulation == 0) set_number(job_, "accumulation", job_.accumulation);
    bool has_type = false;
    for (const std::string& setting : inner.settings) has_type = has_type || setting.starts_with("precision=");
    if (!has_type && !half().empty())
      job_.settings.push_back("precision=" + half()), job_.settings.push_back("master_parameters=true");
    take_over(job_, std::move(inner));
  }

  // As HfTrainerDeepSpeedConfig's fill_match refuses it.
  void require_same(std::int64_t theirs, std::int64_t ours, const char* key, const char* argument) const {
    if (theirs > 0 && theirs != ours)
      file_.refuse(fmt::format("Transformers refuses it: DeepSpeed's {}={} and {}={} do not match", key, theirs,
                               argument, ours));
  }

  const ConfigurationFile& file_;
  const FrameworkSurroundings& surroundings_;
  FrameworkJob job_;
};

}  // namespace

FrameworkJob transformers_job(const ConfigurationFile& file, const FrameworkSurroundings& surroundings) {
  return TransformersReader(file, surroundings).run();
}

}  // namespace memwall
