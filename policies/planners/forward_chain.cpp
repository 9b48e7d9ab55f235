#include "policies/planners/forward_chain.h"
#include "policies/trace/passes_in_turn.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

Bytes saved_by(const StepProfile& p, const Pass& pass, const RecomputeUnit& unit) {
  Bytes bytes = 0;
  for (const OpId id : unit.ops)
    for (const Use& use : p.trace().uses_of(p.trace().ops[id]))
      if (use.access == Access::write && use.version == 1 &&
          is_saved_activation(p.trace(), p.flow(), pass, use.storage))
        bytes += p.held(use.storage);
  return bytes;
}

// What another policy has moved cannot be computed again beside it.
void refuse_moved(const Trace& trace, const Pass& pass) {
  for (OpId id = pass.begin; id < pass.backward; ++id) {
    const Op& op = trace.ops[id];
    if (op.added && op.kind == OpKind::copy && trace.places[op.from] == "hbm" && op.from != op.to)
      throw UsageError("Trace '" + trace.name + "' has activations that another policy copies to " +
                       trace.places[op.to] +
                       "; a planner that computes segments of forward again cannot take it. Give one of both, or "
                       "--policy checkpoint, which goes before offload.");
  }
}

}  // namespace

std::vector<ForwardChain> forward_chains_of(const StepProfile& p) {
  std::vector<ForwardChain> chains;
  for (const Pass& pass : passes_in_turn(p.trace())) {
    refuse_moved(p.trace(), pass);
    ForwardChain chain{pass, forward_ops(p.trace(), pass), segment_units(p.trace(), p.flow(), pass), {}};
    if (p.trace().knowledge.modules) {
      std::vector<RecomputeUnit> blocks = block_units(p.trace(), p.flow(), pass);
      if (blocks.size() > chain.units.size()) chain.units = std::move(blocks);
    }
    for (const RecomputeUnit& unit : chain.units) chain.saved.push_back(saved_by(p, pass, unit));
    chains.push_back(std::move(chain));
  }
  return chains;
}

std::vector<RecomputeUnit> joined_units(const ForwardChain& chain, const std::vector<std::size_t>& sizes) {
  if (std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) != chain.units.size() ||
      std::find(sizes.begin(), sizes.end(), std::size_t{0}) != sizes.end())
    throw std::logic_error(fmt::format("A planner joins {} units of a chain of {}; expected sizes above 0 that add up.",
                                       fmt::join(sizes, " + "), chain.units.size()));
  std::vector<RecomputeUnit> joined;
  std::size_t next = 0;
  for (const std::size_t size : sizes) {
    const RecomputeUnit &first = chain.units[next], &last = chain.units[next + size - 1];
    next += size;
    RecomputeUnit unit;
    unit.name = size == 1 ? first.name : first.name + ".." + last.name;
    unit.ops.assign(std::lower_bound(chain.ops.begin(), chain.ops.end(), first.ops.front()),
                    std::upper_bound(chain.ops.begin(), chain.ops.end(), last.ops.back()));
    joined.push_back(std::move(unit));
  }
  return joined;
}

}  // namespace memwall
