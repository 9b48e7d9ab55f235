#include "policies/sharding/fsdp_settings.h"

#include <initializer_list>

#include "sim/error.h"

namespace memwall {
namespace {

DataType type_of(const std::string& word) {
  if (word == "bf16") return DataType::bf16;
  if (word == "fp16") return DataType::fp16;
  return word == "fp32" ? DataType::fp32 : DataType::unknown;
}

[[noreturn]] void refuse(const std::string& sentence) { throw UsageError("Policy 'fsdp': " + sentence); }

void refuse_those_set(const PolicyArguments& arguments, std::initializer_list<const char*> names, int version) {
  for (const char* name : names)
    if (arguments.is_set(name))
      refuse(std::string(name) + "=" + arguments.text(name) + " is no setting of version " + std::to_string(version) +
             ".");
}

void read_version2(FsdpSettings& s, const PolicyArguments& arguments) {
  refuse_those_set(
      arguments,
      {"strategy", "backward_prefetch", "forward_prefetch", "limit_all_gathers", "use_orig_params", "wrapping"}, 2);
  s.gives_back_between_passes = arguments.flag_or("reshard_after_backward", true);
  if (arguments.is_set("keep")) s.kept = arguments.list("keep");
  s.forward_prefetch = static_cast<int>(arguments.integer_or("forward_ahead", 0));
  s.backward_prefetch = static_cast<int>(arguments.integer_or("backward_ahead", 1));
  if (!arguments.is_set("reshard_after_forward")) return;
  const std::int64_t over = arguments.integer("reshard_after_forward");
  if (over > 1 && s.shards() % over != 0)
    refuse("reshard_after_forward=" + std::to_string(over) + " is no factor of the " + std::to_string(s.shards()) +
           " ranks that share the parameters, as fully_shard demands.");
  s.forward_shards = over == 1 ? s.shards() : static_cast<std::uint32_t>(over);
  s.root_forward_shards = s.forward_shards;
}

void read_version1(FsdpSettings& s, const PolicyArguments& arguments) {
  refuse_those_set(arguments,
                   {"reshard_after_forward", "reshard_after_backward", "keep", "forward_ahead", "backward_ahead"}, 1);
  const std::string strategy = arguments.is_set("strategy") ? arguments.choice("strategy")
                               : s.replicas > 1             ? "hybrid"
                                                            : "full";
  if (strategy == "no_shard")
    refuse("strategy=no_shard is data parallelism, and deprecated by PyTorch in favour of it: --policy ddp.");
  if (strategy.starts_with("hybrid") != (s.replicas > 1))
    refuse("strategy=" + strategy + " with replicate=" + std::to_string(s.replicas) +
           "; expected hybrid or hybrid_grad_op with replicas, full or grad_op without.");
  if (strategy.ends_with("grad_op")) {
    s.forward_shards = 0;
    s.frees_without_reduction = false;
  }
  const std::string prefetch = arguments.is_set("backward_prefetch") ? arguments.choice("backward_prefetch") : "pre";
  s.backward_prefetch = prefetch == "none" ? 0 : 1;
  s.prefetches_after_backward = prefetch == "post";
  s.forward_prefetch = arguments.flag_or("forward_prefetch", false) ? 1 : 0;
  s.limits_gathers = arguments.flag_or("limit_all_gathers", true);
  constexpr Bytes kAligned = 16;  // Source: torch/distributed/fsdp/_flat_param.py, _get_aligned_numel
  s.alignment = arguments.flag_or("use_orig_params", false) ? kAligned : 1;
  const std::string wrapping = arguments.is_set("wrapping") ? arguments.choice("wrapping") : "none";
  s.wraps = wrapping != "none";
  s.broadcasts_states = wrapping == "sync";
}

}  // namespace

std::vector<ParameterInfo> fsdp_parameters() {
  return {
      integer("version", 2, {1, 2}, "", "2 = fully_shard, 1 = FullyShardedDataParallel"),
      integer("ranks", kRequired, {2, 1 << 20}, "ranks", "data-parallel ranks, all replicas together"),
      integer("replicate", 1, {1, 1 << 20}, "replicas",
              "groups of ranks that each hold all shards (HSDP); gradients are summed over them"),
      patterns("units", Unset{"blocks"}, "modules that are wrapped; by default the repeated blocks"),
      choice("param_dtype", "step", {"step", "bf16", "fp16", "fp32"},
             "type in which parameters are gathered and used; step = as the step reads them"),
      choice("reduce_dtype", "step", {"step", "fp32", "bf16", "fp16"},
             "type of reductions; step = that of the parameters at rest (version 1: of gathered ones)"),
      choice("accumulation", "sync", {"sync", "no_all_reduce", "no_sync"},
             "several passes per step: sync = each reduces; no_all_reduce = likewise, but only the last one sums over "
             "replicas (version 2); no_sync = the last one reduces, the others keep whole gradients"),
      choice("offload", "none", {"none", "cpu"},
             "cpu = shards, their gradients and the optimizer are the host's (CPUOffloadPolicy, CPUOffload)"),
      flag("pin_memory", true, "offload=cpu: 1 = shards and gradients are in page-locked memory"),
      flag("clip_grad_norm", false,
           "1 = gradients are clipped by their norm before each optimizer step; of a step that does so itself the "
           "norms are summed over the ranks in any case"),
      number("hook_us", 100, {0, 1e6}, "us", "host time of one hook of a unit besides the driver's calls; assumed"),
      integer_or_flag("reshard_after_forward", Unset{"auto"}, {0, 1 << 20}, "ranks",
                      "version 2: false (0) = no, true (1) = yes, more = over so many ranks; auto = the root no, other "
                      "units yes"),
      flag("reshard_after_backward", Unset{"auto"},
           "version 2: 0 = parameters stay whole from pass to pass of a step, as under pipelines; auto = 1"),
      patterns(
          "keep", Unset{"auto"},
          "version 2: units that stay whole between forward and backward, as torchtitan has its last; auto = the root"),
      integer("forward_ahead", Unset{"auto"}, {0, 64}, "units",
              "version 2: gathered ahead explicitly (set_modules_to_forward_prefetch); auto = 0: a unit is gathered "
              "when the host comes to it"),
      integer("backward_ahead", Unset{"auto"}, {0, 64}, "units",
              "version 2: gathered ahead in backward (set_modules_to_backward_prefetch); auto = 1"),
      choice("strategy", Unset{"auto"}, {"full", "grad_op", "hybrid", "hybrid_grad_op", "no_shard"},
             "version 1: full = parameters are given back after forward, grad_op = after backward, hybrid = likewise "
             "with replicas; auto = full, or hybrid with replicate="),
      choice("backward_prefetch", Unset{"auto"}, {"pre", "post", "none"},
             "version 1: the next unit is gathered before or after the present one's backward, or not; auto = pre"),
      flag("forward_prefetch", Unset{"auto"}, "version 1: 1 = gather one unit ahead in forward; auto = 0"),
      flag("limit_all_gathers", Unset{"auto"},
           "version 1: 1 = the host waits where two units have been given back and not waited for; auto = 1"),
      flag("use_orig_params", Unset{"auto"},
           "version 1: 1 = parameters begin at multiples of 16 bytes in the flat one; auto = 0"),
      choice(
          "wrapping", Unset{"auto"}, {"none", "move", "sync"},
          "version 1: what wrapping leaves in the allocator's cache before the first step: move = parameters came to "
          "the GPU unit by unit and were joined (device_id), sync = likewise and were broadcast "
          "(sync_module_states); auto = none")};
}

FsdpSettings fsdp_settings(const PolicyArguments& arguments) {
  FsdpSettings s;
  s.version = static_cast<int>(arguments.integer("version"));
  s.ranks = static_cast<std::uint32_t>(arguments.integer("ranks"));
  s.replicas = static_cast<std::uint32_t>(arguments.integer("replicate"));
  if (s.ranks % s.replicas != 0 || s.shards() < 2)
    refuse("replicate=" + std::to_string(s.replicas) + " does not divide ranks=" + std::to_string(s.ranks) +
           " into groups of two ranks or more.");
  if (arguments.is_set("units")) s.units = arguments.list("units");
  s.param_dtype = type_of(arguments.choice("param_dtype"));
  s.reduce_dtype = type_of(arguments.choice("reduce_dtype"));
  s.forward_shards = s.shards();
  s.reduces_each_pass = arguments.choice("accumulation") != "no_sync";
  s.all_reduces_each_pass = arguments.choice("accumulation") != "no_all_reduce";
  if (!s.all_reduces_each_pass && (s.version == 1 || s.replicas == 1))
    refuse("accumulation=no_all_reduce is for version 2 with replicas; expected replicate=2 or more, or no_sync.");
  s.offloads = arguments.choice("offload") == "cpu";
  s.pins_memory = arguments.flag("pin_memory");
  s.clips = arguments.flag("clip_grad_norm");
  if (s.clips && s.offloads)
    refuse("clip_grad_norm=1 with offload=cpu is not implemented: the norms would be the CPU's.");
  s.hook = from_seconds(arguments.number("hook_us") * 1e-6);
  s.version == 2 ? read_version2(s, arguments) : read_version1(s, arguments);
  return s;
}

}  // namespace memwall
