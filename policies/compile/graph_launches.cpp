#include "policies/compile/graph_launches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

bool is_compiled_kernel(const Op& op) {
  return (op.kind == OpKind::kernel || op.kind == OpKind::memset) && op.dispatch == Dispatch::compiled &&
         !op.graph_member && !op.placed && op.wait_for == WaitFor::nothing;
}

bool is_lifetime(const Op& op) {
  return (op.kind == OpKind::alloc || op.kind == OpKind::free) && op.wait_for == WaitFor::nothing;
}

// Ops [first, last], of which the first and the last are kernels.
struct GraphRun {
  OpId first = 0, last = 0;
  std::size_t kernels = 0;
};

class GraphLaunches {
 public:
  GraphLaunches(const Trace& trace, const HostCosts& costs)
      : t_(trace), flow_(trace), costs_(costs), builder_(TraceBuilder::like(trace)), new_id_(trace.ops.size(), kNoOp) {}

  LaunchedGraphs run(std::size_t least) && {
    const std::vector<GraphRun> runs = find_runs(least);
    LaunchedGraphs result;
    for (const GraphRun& run : runs) result.pool = std::max(result.pool, most_within(run));
    if (result.pool > 0) builder_.add_storage(result.pool, StorageKind::workspace, "hbm", "cuda_graph.pool", true);
    OpId next = 0;
    for (const GraphRun& run : runs) {
      for (; next < run.first; ++next) append(next, t_.ops[next]);
      launch(run);
      next = run.last + 1;
      ++result.graphs;
      result.nodes += run.kernels;
    }
    for (; next < t_.ops.size(); ++next) append(next, t_.ops[next]);
    builder_.trace().steps = t_.steps;
    for (Step& step : builder_.trace().steps) step = {step.name, position(step.first), position(step.last)};
    for (StorageId s = 0; s < t_.storages.size(); ++s) {
      const OpId last = t_.storages[s].last_referenced;
      if (last != kNoOp) builder_.trace().storages[s].last_referenced = position(last);
    }
    result.trace = std::move(builder_).finish();
    return result;
  }

 private:
  std::vector<GraphRun> find_runs(std::size_t least) const {
    std::vector<GraphRun> runs;
    GraphRun open;
    const auto close = [&] {
      if (open.kernels >= least) runs.push_back(open);
      open = {};
    };
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (is_lifetime(op)) continue;
      const bool goes_on = is_compiled_kernel(op) && open.kernels > 0 && is_alike(t_.ops[open.first], op);
      if (!goes_on) close();
      if (!is_compiled_kernel(op)) continue;
      if (open.kernels == 0) open.first = id;
      open.last = id;
      ++open.kernels;
    }
    close();
    return runs;
  }

  static bool is_alike(const Op& a, const Op& b) {
    const auto in_backward = [](const Op& op) { return op.phase != Phase::forward; };
    return a.thread == b.thread && a.stream == b.stream && in_backward(a) == in_backward(b);
  }

  static bool is_in(const GraphRun& run, OpId id) { return id != kNoOp && id > run.first && id < run.last; }
  bool is_within(const GraphRun& run, StorageId id) const {
    return is_in(run, flow_.alloc(id)) && is_in(run, flow_.free(id));
  }

  // The most bytes that live at once of what lives within the run only.
  Bytes most_within(const GraphRun& run) const {
    Bytes now = 0, most = 0;
    for (OpId id = run.first; id <= run.last; ++id) {
      const Op& op = t_.ops[id];
      if (!is_lifetime(op) || !is_within(run, op.target)) continue;
      now += op.kind == OpKind::alloc ? t_.storages[op.target].bytes : -t_.storages[op.target].bytes;
      most = std::max(most, now);
    }
    return most;
  }

  OpId position(OpId id) {
    for (; id < new_id_.size(); ++id)
      if (new_id_[id] != kNoOp) return new_id_[id];
    return static_cast<OpId>(builder_.trace().ops.size());
  }

  void append(OpId id, Op op) {
    if (op.kind == OpKind::hand_over) op.target = new_id_[op.target];
    if (op.source != kNoOp) op.source = new_id_[op.source];
    uses_.assign(t_.uses_of(t_.ops[id]).begin(), t_.uses_of(t_.ops[id]).end());
    new_id_[id] = builder_.append_renewed(op, uses_);
  }

  void launch(const GraphRun& run) {
    for (OpId id = run.first; id <= run.last; ++id)
      if (t_.ops[id].kind == OpKind::alloc) {
        if (is_within(run, t_.ops[id].target)) builder_.trace().storages[t_.ops[id].target].bytes = 0;
        append(id, t_.ops[id]);
      }
    const Op& first = t_.ops[run.first];
    Op call;
    call.kind = OpKind::graph_launch;
    call.phase = first.phase;
    call.origin = Origin::modelled;
    call.thread = first.thread;
    call.stream = first.stream;
    call.dispatch = Dispatch::compiled;
    call.name = call.operator_name = builder_.trace().strings.intern("cudaGraphLaunch");
    call.host_gap = costs_.compiled_call;
    call.host_cost = costs_.launch;
    builder_.append(call);
    for (OpId id = run.first; id <= run.last; ++id) {
      if (is_lifetime(t_.ops[id])) continue;
      Op node = t_.ops[id];
      node.graph_member = true;
      node.host_gap = node.host_cost = node.return_delay = {};
      append(id, node);
    }
    for (OpId id = run.first; id <= run.last; ++id)
      if (t_.ops[id].kind == OpKind::free) append(id, t_.ops[id]);
  }

  const Trace& t_;
  const Dataflow flow_;
  const HostCosts& costs_;
  TraceBuilder builder_;
  std::vector<OpId> new_id_;
  std::vector<Use> uses_;
};

}  // namespace

LaunchedGraphs with_graph_launches(const Trace& trace, const HostCosts& costs, std::size_t least) {
  return GraphLaunches(trace, costs).run(least);
}

}  // namespace memwall
