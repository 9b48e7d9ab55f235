#include "policies/sharding/fsdp_settings.h"

#include "sim/error.h"

namespace memwall {
namespace {

DataType type_of(const std::string& word) {
  if (word == "bf16") return DataType::bf16;
  if (word == "fp16") return DataType::fp16;
  return word == "fp32" ? DataType::fp32 : DataType::unknown;
}

[[noreturn]] void refuse(const std::string& sentence) { throw UsageError("Policy 'fsdp': " + sentence); }

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
             "type of reductions; step = that of the step's gradients"),
      integer("reshard_after_forward", Unset{"auto"}, {0, 1 << 20}, "ranks",
              "0 = no, 1 = yes, more = over so many ranks; auto = the root no, other units yes"),
      choice("accumulation", "sync", {"sync", "no_sync"},
             "several passes per step: sync = each reduces, no_sync = the last one does, the others keep whole "
             "gradients"),
      integer("forward_prefetch", 0, {0, 64}, "units",
              "gathered ahead explicitly; 0 = a unit is gathered when the host comes to it"),
      integer("backward_prefetch", 1, {0, 64}, "units", "gathered ahead in backward"),
      number("hook_us", 100, {0, 1e6}, "us", "host time of one hook of a unit besides the driver's calls; assumed")};
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
  if (arguments.is_set("reshard_after_forward")) {
    const std::int64_t over = arguments.integer("reshard_after_forward");
    if (over > 1 && s.shards() % over != 0)
      refuse("reshard_after_forward=" + std::to_string(over) + " is no factor of the " + std::to_string(s.shards()) +
             " ranks that share the parameters, as fully_shard demands.");
    s.forward_shards = over == 1 ? s.shards() : static_cast<std::uint32_t>(over);
    s.root_forward_shards = s.forward_shards;
  }
  s.reduces_each_pass = arguments.choice("accumulation") == "sync";
  s.forward_prefetch = static_cast<int>(arguments.integer("forward_prefetch"));
  s.backward_prefetch = static_cast<int>(arguments.integer("backward_prefetch"));
  s.hook = from_seconds(arguments.number("hook_us") * 1e-6);
  return s;
}

}  // namespace memwall
