// Accelerate 1.15: what `accelerate config` writes and `accelerate launch --config_file` reads. Keys:
// accelerate/commands/config/config_args.py, utils/launch.py.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "models/workload/frameworks/framework_files.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kAcceleratePassedOver[] = {"compute_environment",
                                                 "debug",
                                                 "downcast_bf16",
                                                 "enable_cpu_affinity",
                                                 "machine_rank",
                                                 "main_process_ip",
                                                 "main_process_port",
                                                 "main_training_function",
                                                 "rdzv_backend",
                                                 "same_network",
                                                 "tpu_env",
                                                 "tpu_use_cluster",
                                                 "tpu_use_sudo",
                                                 "tpu_name",
                                                 "tpu_zone",
                                                 "tpu_vm",
                                                 "gpu_ids",
                                                 "num_machines",
                                                 "use_cpu",
                                                 "command_file",
                                                 "commands",
                                                 "mpirun_config",
                                                 "deepspeed_config.deepspeed_hostfile",
                                                 "deepspeed_config.deepspeed_multinode_launcher",
                                                 "deepspeed_config.deepspeed_exclusion_filter",
                                                 "deepspeed_config.deepspeed_inclusion_filter",
                                                 "deepspeed_config.zero3_init_flag",
                                                 "deepspeed_config.zero3_save_16bit_model",
                                                 "deepspeed_config.deepspeed_moe_layer_cls_names",
                                                 "deepspeed_config.offload_optimizer_nvme_path",
                                                 "deepspeed_config.offload_param_nvme_path"};

class AccelerateReader {
 public:
  AccelerateReader(const ConfigurationFile& file, const FrameworkSurroundings& surroundings)
      : file_(file), surroundings_(surroundings) {}

  FrameworkJob run() {
    const std::int64_t processes = file_.integer("num_processes", 0, -1, kMostRanks);
    job_.ranks = ranks_of(file_, static_cast<std::uint32_t>(std::max<std::int64_t>(0, processes)), surroundings_);
    require_ranks(file_, job_);
    read_precision();
    read_distribution();
    for (const char* key : kAcceleratePassedOver) file_.pass_over(key);
    for (std::string& key : file_.unknown()) job_.unknown_keys.push_back(std::move(key));
    return std::move(job_);
  }

 private:
  [[noreturn]] void not_implemented(const std::string& what) const {
    throw UsageError(fmt::format("{}: {} is not implemented.", file_.name(), what));
  }

  void read_precision() {
    std::string type = file_.text("mixed_precision", "no");
    if (type == "false") type = "no";  // YAML 1.1 reads no as false
    if (type == "fp8") not_implemented("mixed_precision=fp8");
    if (type != "no" && type != "fp16" && type != "bf16") file_.fail("mixed_precision", "no, fp16, bf16 or fp8");
    precision_ = type;
  }

  void read_distribution() {
    std::string kind = file_.text("distributed_type", "NO");
    std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::toupper(c); });
    if (const std::string backend = file_.text("dynamo_config.dynamo_backend", "NO");
        backend != "NO" && backend != "no" && backend != "false")
      job_.settings.push_back("execution=compiled");
    file_.pass_over("dynamo_config");
    if (kind == "DEEPSPEED") return read_deepspeed();
    if (kind == "FSDP") return read_fsdp();
    if (precision_ != "no") job_.settings.push_back("precision=amp_" + precision_);
    if (kind == "MULTI_GPU") {
      if (job_.ranks > 1) job_.policies.push_back(fmt::format("ddp:ranks={}", job_.ranks));
      return;
    }
    if (kind != "NO" && kind != "FALSE") not_implemented("distributed_type=" + kind);
  }

  // FSDP's mixed precision: gathered parameters have that type, shards stay fp32 as they were loaded.
  void read_fsdp() {
    if (precision_ != "no")
      job_.settings.push_back("precision=" + precision_), job_.settings.push_back("master_parameters=true");
    add_fsdp(job_, file_, {"fsdp_config.fsdp_", 1, "FULL_SHARD"}, precision_ == "no");
  }

  void read_deepspeed() {
    const std::string place = "deepspeed_config.";
    if (const std::string named = file_.text(place + "deepspeed_config_file", ""); !named.empty() && named != "none") {
      const std::filesystem::path path = std::filesystem::path(file_.name()).parent_path() / named;
      take_over(job_, read_framework_job(Framework::deepspeed, path, {job_.ranks}));
      return;
    }
    const std::int64_t stage = file_.integer(place + "zero_stage", 2, 0, 3);
    job_.accumulation = file_.integer(place + "gradient_accumulation_steps", 1, 1, kMostAccumulation);
    set_number(job_, "accumulation", job_.accumulation);
    if (precision_ != "no")
      job_.settings.push_back("precision=" + precision_), job_.settings.push_back("master_parameters=true");
    if (file_.has(place + "gradient_clipping")) file_.number(place + "gradient_clipping", 0, 0, 1e30);
    PolicyWords words("deepspeed");
    words.add("stage", stage);
    words.add("ranks", job_.ranks);
    for (const char* what : {"offload_optimizer", "offload_param"})
      if (const std::string device = file_.text(place + what + "_device", "none"); device != "none")
        words.add(what, device);
    if (job_.ranks > 1) job_.policies.push_back(words.text());
  }

  const ConfigurationFile& file_;
  const FrameworkSurroundings& surroundings_;
  FrameworkJob job_;
  std::string precision_;
};

}  // namespace

FrameworkJob accelerate_job(const ConfigurationFile& file, const FrameworkSurroundings& surroundings) {
  return AccelerateReader(file, surroundings).run();
}

}  // namespace memwall
