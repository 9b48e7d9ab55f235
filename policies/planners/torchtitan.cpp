// torchtitan's activation checkpointing, by its own names.
//
// torchtitan/distributed/activation_checkpoint.py, as a fork of its main branch has it (LambdaLabsML/torchtitan
// 0f3ad91c744b, of 2026; read, not copied):
//   full          every transformer block runs again: `checkpoint:early_stop=0`.
//   selective, N  every N-th block does, the N-th first (selective_ac_option=N; torchtitan 0.2 and before).
//   selective, op every block does, but for the results of a list of operators, as `selective` keeps them: products and
//                 convolutions, attention kernels, max, topk, reduce-scatters and all-to-alls, and copies to the host.
//                 Of mm and linear it keeps the first, third, fifth, ... of a block (in fp8, too: the policy sees
//                 torchao's mm of Float8Tensors, and not the scaled_mm that carries it out); products of a module with
//                 "moe.router.gate" in its name are neither kept nor counted.
// early_stop is False there, unlike in PyTorch. Blocks that tensor-parallel ranks share gather again what they
// gathered.
//
// Left out: mode=memory_budget, which is `torch_budget`; save_grouped_mm and lists of one's own (`selective:save=...`);
// other products of the router's shape, which torchtitan runs again, too; inductor's compiled regions, DeepEP.
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "policies/planners/kept_units.h"
#include "policies/planners/planner.h"
#include "policies/planners/unit_reruns.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/pipelined_passes.h"

namespace memwall {
namespace {

// Without namespace and underscores around.
constexpr auto kKept = std::to_array<std::string_view>(
    {"addmm", "bmm", "convolution", "convolution_backward", "efficient_attention_forward", "flash_attention_forward",
     "flex_attention", "max", "topk", "upsample_bilinear2d", "varlen_attn"});

// Async tensor parallelism: the pieces in which sums leave for other ranks, and what adds up those that arrive.
constexpr std::string_view kScatteredProduct = "fused_matmul_reduce_scatter";

bool is_kept_always(const Trace& t, const Op& op, const std::string& name) {
  if (op.kind == OpKind::collective)
    return op.collective == CollectiveKind::reduce_scatter || op.collective == CollectiveKind::all_to_all;
  if (op.kind == OpKind::copy && op.from != op.to) return t.places[op.to] == "host";
  return name == kScatteredProduct || std::ranges::find(kKept, name) != kKept.end() ||
         name.starts_with("scaled_dot_product_");
}

StorageId result_of(const Trace& t, const Op& op) {
  for (const Use& use : t.uses_of(op))
    if (use.access == Access::write) return use.storage;
  return kNoStorage;
}

// Of a block, ascending: what its op-level policy saves. Pieces of one result are one product.
std::vector<OpId> saved_ops(const Trace& t, const RecomputeUnit& unit) {
  std::vector<OpId> kept;
  std::size_t products = 0;
  std::map<StorageId, bool> is_product_kept;
  for (const OpId id : unit.ops) {
    const Op& op = t.ops[id];
    const std::string name = plain_operator_name(operator_of(t, op));
    if (name == "mm" || name == "linear" || name == "scaled_mm") {
      if (t.strings[op.module].find("moe.router.gate") != std::string::npos) continue;
      const StorageId result = result_of(t, op);
      if (result == kNoStorage || !is_product_kept.contains(result)) is_product_kept[result] = ++products % 2 == 1;
      if (is_product_kept[result]) kept.push_back(id);
    } else if (is_kept_always(t, op, name)) {
      kept.push_back(id);
    }
  }
  return kept;
}

// Of a generated network.
constexpr const char* kBlocks = "layers.*";
constexpr std::string_view kBlock = "layers.";

// Of "layers.12" or what is within it.
std::optional<std::uint64_t> block_number(std::string_view module) {
  if (!module.starts_with(kBlock)) return std::nullopt;
  std::uint64_t number = 0;
  const char* begin = module.data() + kBlock.size();
  if (std::from_chars(begin, module.data() + module.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

// The numbers of the blocks that a rank holds: torchtitan counts on over all its stages (_layer_sac_count).
std::set<std::uint64_t> blocks_of(const Trace& t) {
  std::set<std::uint64_t> numbers;
  for (const Op& op : t.ops)
    if (op.phase == Phase::forward)
      if (const auto number = block_number(t.strings[op.module])) numbers.insert(*number);
  return numbers;
}

std::vector<RecomputeUnit> every_nth_of(const std::set<std::uint64_t>& all, const std::vector<RecomputeUnit>& units,
                                        std::size_t n) {
  std::vector<RecomputeUnit> taken;
  for (const RecomputeUnit& unit : units) {
    const auto number = block_number(unit.name);
    if (!number) continue;
    const auto before = static_cast<std::size_t>(std::distance(all.begin(), all.find(*number)));
    if ((before + 1) % n == 0) taken.push_back(unit);
  }
  return taken;
}

Planner torchtitan_planner(const PolicyArguments& arguments) {
  UnitReruns reruns;
  reruns.units.policy = "torchtitan";
  reruns.units.mode = "full";
  reruns.early_stop = arguments.flag("early_stop");
  reruns.communicates = true;
  const bool full = arguments.choice("mode") == "full";
  const auto every = static_cast<std::size_t>(arguments.integer_or("selective_ac_option", 1));
  if (!full)
    reruns.taken = [every](const Pass&, const std::vector<RecomputeUnit>& units) { return every_nth(units, every); };
  const bool by_operator = !full && !arguments.is_set("selective_ac_option");
  return [reruns, by_operator, full, every](const StepProfile& profile, const Budget&, const Machine&, const Pricer&) {
    UnitReruns chosen = reruns;
    if (is_pipeline_stage(profile.trace())) {  // which may hold one block, or none
      if (blocks_of(profile.trace()).empty()) return MemoryPlan{};
      chosen.units.mode = "modules";
      chosen.units.patterns = {kBlocks};
      if (!full)
        chosen.taken = [every, all = blocks_of(profile.trace())](const Pass&, const std::vector<RecomputeUnit>& units) {
          return every_nth_of(all, units, every);
        };
    }
    if (by_operator) chosen.kept_ops = [&](const RecomputeUnit& unit) { return saved_ops(profile.trace(), unit); };
    return plan_of_unit_reruns(profile, chosen);
  };
}

const RegisterPlanner registered_torchtitan{
    {.name = "torchtitan",
     .sentence = "computes blocks again, all of them or but for a list of operators, as torchtitan's options say",
     .heeds_budget = false,
     .plans_each_pass = true,
     .parameters = {choice("mode", "selective", {"selective", "full"},
                           "full: every block; selective: as selective_ac_option says."),
                    integer("selective_ac_option", Unset{"op"}, {1, 1'000'000}, "blocks",
                            "op: every block, but for products, of which every second mm runs again, attention and "
                            "communication; a number N: every N-th block as a whole."),
                    flag("early_stop", false, "1: stop a re-run once all that is needed is back.")},
     .make = torchtitan_planner,
     .remark = rerun_units}};

}  // namespace
}  // namespace memwall
