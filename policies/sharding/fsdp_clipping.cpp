#include "policies/sharding/fsdp_clipping.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "policies/trace/operator_name.h"
#include "sim/trace/group_names.h"

namespace memwall {
namespace {

constexpr Bytes kNorm = 4;  // of version 1: one number in fp32

bool is_norm_of_gradients(const Trace& trace, const Op& op) {
  const std::string name = plain_operator_name(operator_of(trace, op));
  if (name.find("norm") == std::string::npos) return false;
  return std::ranges::any_of(trace.uses_of(op), [&](const Use& use) {
    return use.access == Access::read && trace.storages[use.storage].kind == StorageKind::gradient;
  });
}

// The ranks that share each layer; of one where none do.
ShardingGroup ranks_of_layers(const Trace& trace) {
  for (std::size_t g = 0; g < trace.groups.size(); ++g)
    if (trace.groups[g].name == kTensorParallelGroup)
      return {static_cast<std::uint16_t>(g), trace.groups[g].ranks, trace.groups[g]};
  return {};
}

}  // namespace

NormSums sum_gradient_norms(FsdpProgram& program, const ZeroAnalysis& analysis, const FsdpLayout& layout,
                            const FsdpPrecision& precision, const FsdpSettings& settings, const ShardingGroup& shards,
                            std::uint16_t compute) {
  const Trace& t = program.base();
  const ShardingGroup layers = ranks_of_layers(t);
  NormSums sums;
  std::vector<StorageId> held;  // gradients since the last update, of a pass or several; each once
  for (std::size_t p = 0; p < analysis.passes.size(); ++p) {
    const BackwardPass& pass = analysis.passes[p];
    for (const GradientMade& made : pass.made)
      if (std::ranges::find(held, made.gradient) == held.end()) held.push_back(made.gradient);
    if (!pass.before_update || pass.last_backward == kNoOp) continue;
    const std::vector<StorageId> gradients = std::exchange(held, {});
    if (gradients.empty()) continue;  // a backward pass of inputs alone: there is nothing to clip
    const OpId end =
        p + 1 < analysis.passes.size() ? analysis.passes[p + 1].pass.begin : static_cast<OpId>(t.ops.size());
    const auto first = std::ranges::upper_bound(analysis.updates, pass.last_backward);
    if (first == analysis.updates.end() || *first >= end) continue;
    OpId own = kNoOp;
    for (auto update = first; update != analysis.updates.end() && *update < end; ++update)
      if (is_norm_of_gradients(t, t.ops[*update])) own = *update;
    if (own == kNoOp && !settings.clips) continue;
    const InsertionPoint point = own == kNoOp ? InsertionPoint{*first, false} : InsertionPoint{own, true};
    Bytes bytes = 0, norms = settings.version == 1 ? kNorm : 0;
    for (const StorageId gradient : gradients) {
      if (settings.version == 2) norms += precision.kept_element(layout.element(gradient));
      bytes += program.edit().tables().storages[gradient].bytes;
    }
    const std::uint16_t stream = program.stream("fsdp.norm");
    const StorageId norm = program.alloc(point, norms, StorageKind::workspace, gradients.front(), "fsdp.norm", compute);
    program.kernel(point, compute, own == kNoOp ? "fsdp.foreach_norm" : "fsdp.norm",
                   own == kNoOp ? bytes + norms : norms, own == kNoOp ? gradients : std::vector<StorageId>{}, {norm});
    program.wait_stream(point, stream, compute);
    program.collective(point, stream, "fsdp.all_reduce_norm", CollectiveKind::all_reduce, norms, shards, {norm},
                       {norm});
    // A step with norms of its own sums them over the ranks that share its layers by itself.
    if (layers.ranks > 1 && own == kNoOp)
      program.collective(point, stream, "fsdp.all_reduce_norm", CollectiveKind::all_reduce, norms, layers, {norm},
                         {norm});
    program.wait_stream(point, compute, stream);
    if (own == kNoOp) {
      std::vector<StorageId> reads = gradients;
      reads.push_back(norm);
      program.kernel(point, compute, "fsdp.foreach_mul_", 2 * bytes, reads, gradients);
    }
    program.free(point, norm);
    ++sums.over_shards;
    if (layers.ranks > 1) ++(own == kNoOp ? sums.over_layers : sums.of_step);
  }
  return sums;
}

}  // namespace memwall
