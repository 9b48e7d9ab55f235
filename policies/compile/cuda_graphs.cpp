// Compiled code launched by CUDA graphs: torch.compile's mode="reduce-overhead" (torch/_inductor/cudagraph_trees.py).
//
// A graph is launched by one call of the host, whatever it holds, and its memory comes from a pool that it keeps. What
// a graph cannot hold (numbers read on the host, copies, collectives, events, hand-overs between threads) ends one, as
// it ends a graph in PyTorch; so this stands behind all policies that add such things.
#include <fmt/format.h>

#include <algorithm>

#include "policies/compile/graph_launches.h"
#include "policies/trace/described.h"
#include "policies/trace/live_profile.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

std::string no_graphs_of(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'cuda_graphs' has no meaning for trace '{}': {}", trace.name, why);
}

std::string graphs_refusal(const Trace& trace) {
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].graph_member)
      return no_graphs_of(trace, described_op(trace, id) + " is in a CUDA graph already.");
  const auto is_compiled = [](const Op& op) { return op.kind == OpKind::kernel && op.dispatch == Dispatch::compiled; };
  if (std::ranges::none_of(trace.ops, is_compiled))
    return no_graphs_of(trace, "no kernel of it is compiled code; give compile beside it, or a step that is compiled.");
  return "";
}

// What memory plans were to keep to, which did not know of the graphs' pool.
void keep_budgets(const Trace& before, Trace& after) {
  after.budgets = before.budgets;
  const Bytes peak = LiveProfile(after).peak();
  for (MemoryBudget& budget : after.budgets) budget.over = std::max(budget.over, peak - budget.bytes);
}

class CudaGraphs : public Rewriter {
 public:
  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer&) const override {
    if (const std::string refusal = graphs_refusal(trace); !refusal.empty()) throw UsageError(refusal);
    constexpr std::size_t kLeast = 2;  // a graph of one kernel saves nothing
    LaunchedGraphs graphs = with_graph_launches(trace, machine.host, kLeast);
    if (graphs.graphs == 0) throw UsageError(no_graphs_of(trace, "no two kernels in a row of it are compiled code."));
    graphs.trace.notes.push_back(fmt::format("cuda_graphs: {} launch {}; their pool holds {} throughout.",
                                             counted_text(graphs.graphs, "CUDA graph"),
                                             counted_text(graphs.nodes, "kernel"), human_bytes(graphs.pool)));
    keep_budgets(trace, graphs.trace);
    return std::move(graphs.trace);
  }
};

const RegisterPolicy registered_cuda_graphs{
    {.name = "cuda_graphs",
     .sentence = "launches compiled code by CUDA graphs (torch.compile's mode=reduce-overhead)",
     .kind = PolicyKind::launches,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .answer = [](const Trace& trace) -> PolicyAnswer {
       return {.refusal = graphs_refusal(trace), .setting = {}, .reason = {}};
     },
     .make_rewriter = [](const PolicyArguments&) { return std::make_unique<CudaGraphs>(); }}};

}  // namespace
}  // namespace memwall
