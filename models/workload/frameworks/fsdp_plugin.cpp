// FSDP as Accelerate's FullyShardedDataParallelPlugin takes it (accelerate 1.15, utils/dataclasses.py), which
// Transformers' Trainer fills in, too.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "models/workload/frameworks/framework_files.h"
#include "sim/error.h"

namespace memwall {
namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

class FsdpPlugin {
 public:
  FsdpPlugin(const ConfigurationFile& file, const FsdpKeys& keys) : file_(file), keys_(keys) {}

  // "" with one rank.
  std::string policy(std::uint32_t ranks, bool is_fp32) {
    version_ = file_.integer(path("version"), keys_.version, 1, 2);
    if (version_ == 1 && strategy() == "no_shard") {
      pass_over();
      return fmt::format("ddp:ranks={}", ranks);
    }
    PolicyWords words("fsdp");
    words.add("version", version_);
    words.add("ranks", ranks);
    if (version_ == 2)
      add_version_2(words);
    else
      add_version_1(words);
    if (!is_fp32) words.add("reduce_dtype", "bf16");
    const bool offloads = file_.flag(path(file_.has(path("offload_params")) ? "offload_params" : "cpu_offload"), false);
    if (offloads) words.add("offload", "cpu");
    if (keys_.clips && !offloads) words.add_flag("clip_grad_norm", true);
    read_wrapping();
    pass_over();
    return words.text();
  }

  bool checkpoints() const {
    const bool does = file_.flag(path("activation_checkpointing"), false);
    if (file_.flag(path("activation_checkpointing_offload"), false))
      throw UsageError(
          fmt::format("{}: activation_checkpointing_offload is not implemented as a setting; give --policy "
                      "checkpoint --policy offload:what=activations.",
                      file_.name()));
    return does;
  }

 private:
  std::string path(const char* key) const { return keys_.prefix + key; }

  void add_version_2(PolicyWords& words) const {
    if (file_.has(path("forward_prefetch")) && file_.flag(path("forward_prefetch"), false))
      file_.refuse("Accelerate refuses it: forward_prefetch is not yet implemented in FSDP2");
    file_.pass_over(path("backward_prefetch"));
    file_.pass_over(path("backward_prefetch_policy"));
    file_.pass_over(path("sharding_strategy"));
    words.add_flag("reshard_after_forward", file_.flag(path("reshard_after_forward"), true));
  }

  void add_version_1(PolicyWords& words) const {
    const std::string name = strategy();
    words.add("strategy", name);
    if (name.starts_with("hybrid")) words.add("replicate", nodes());
    words.add("backward_prefetch", backward_prefetch());
    words.add_flag("forward_prefetch", file_.flag(path("forward_prefetch"), false));
    words.add_flag("limit_all_gathers", file_.flag(path("limit_all_gathers"), true));
    words.add_flag("use_orig_params", file_.flag(path("use_orig_params"), false));
  }

  // Hybrid sharding shards in a node and replicates across them.
  std::int64_t nodes() const {
    const std::int64_t count = file_.integer("num_machines", 1, 1, kMostRanks);
    if (count < 2)
      throw UsageError(
          fmt::format("{}: hybrid sharding replicates across nodes, and num_machines is {}; give --policy "
                      "fsdp:version=1,strategy=hybrid,replicate=N.",
                      file_.name(), count));
    return count;
  }

  std::string strategy() const {
    constexpr std::array<const char*, 5> kNames{"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                                "HYBRID_SHARD_ZERO2"};
    const char* key = file_.has(path("sharding_strategy")) ? "sharding_strategy" : "reshard_after_forward";
    std::string name = upper(file_.text(path(key), keys_.sharding));
    // Accelerate takes their numbers in torch's enum, from 1 on.
    if (name.size() == 1 && name[0] >= '1' && name[0] <= '5') name = kNames[static_cast<std::size_t>(name[0] - '1')];
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end())
      file_.fail(path(key), "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD or HYBRID_SHARD_ZERO2");
    return name == "FULL_SHARD"      ? "full"
           : name == "SHARD_GRAD_OP" ? "grad_op"
           : name == "NO_SHARD"      ? "no_shard"
           : name == "HYBRID_SHARD"  ? "hybrid"
                                     : "hybrid_grad_op";
  }

  std::string backward_prefetch() const {
    const char* key = file_.has(path("backward_prefetch_policy")) ? "backward_prefetch_policy" : "backward_prefetch";
    const std::string name = upper(file_.text(path(key), "NO_PREFETCH"));
    if (name == "BACKWARD_PRE" || name == "1") return "pre";
    if (name == "BACKWARD_POST" || name == "2") return "post";
    if (name != "NO_PREFETCH" && name != "3" && name != "NONE")
      file_.fail(path(key), "BACKWARD_PRE, BACKWARD_POST or NO_PREFETCH");
    return "none";
  }

  // Units are the policy's repeated blocks, as TRANSFORMER_BASED_WRAP of a model's layers makes them.
  void read_wrapping() const {
    const std::string wrap = upper(file_.text(path("auto_wrap_policy"), "TRANSFORMER_BASED_WRAP"));
    if (wrap == "SIZE_BASED_WRAP" || wrap == "NO_WRAP")
      throw UsageError(
          fmt::format("{}: {}={} is not implemented; units are blocks (TRANSFORMER_BASED_WRAP), or what "
                      "--policy fsdp:units=… names.",
                      file_.name(), path("auto_wrap_policy"), wrap));
    if (wrap != "TRANSFORMER_BASED_WRAP")
      file_.fail(path("auto_wrap_policy"), "TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP or NO_WRAP");
  }

  void pass_over() const {
    for (const char* key :
         {"transformer_layer_cls_to_wrap", "transformer_cls_names_to_wrap", "min_num_params", "state_dict_type",
          "sync_module_states", "use_orig_params", "cpu_ram_efficient_loading", "ignored_modules", "param_init_fn",
          "xla", "xla_fsdp_v2", "xla_fsdp_grad_ckpt", "xla_fsdp_settings"})
      file_.pass_over(path(key));
  }

  const ConfigurationFile& file_;
  const FsdpKeys& keys_;
  std::int64_t version_ = 2;
};

}  // namespace

void add_fsdp(FrameworkJob& job, const ConfigurationFile& file, const FsdpKeys& keys, bool is_fp32) {
  FsdpPlugin plugin(file, keys);
  std::string policy = plugin.policy(job.ranks, is_fp32);
  if (job.ranks > 1)
    job.policies.push_back(std::move(policy));
  else
    job.notes.push_back("One GPU shares nothing with others: FSDP is left out.");
  if (plugin.checkpoints()) job.policies.push_back("checkpoint:mode=full");
}

}  // namespace memwall
