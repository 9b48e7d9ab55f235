#include "study/layout/pass_path.h"

#include <utility>

#include "sim/engine/simulation.h"
#include "study/layout/chunk_costs.h"
#include "study/layout/chunk_step.h"

namespace memwall {
namespace {

std::vector<OpShare> shares_of(const Run& run, const std::vector<PathSegment>& path, const PassPlace& pass) {
  std::vector<OpShare> shares;
  const Trace& trace = run.trace;
  for (const PathSegment& segment : path) {
    if (segment.op == kNoOp || segment.op < pass.begin || segment.op >= pass.end) continue;
    const Op& op = trace.ops[segment.op];
    shares.push_back({op, trace.shapes[op.shape], segment.time_class, segment.part, segment.end - segment.begin});
  }
  return shares;
}

double gap_share_of(const Trace& trace, const PassPlace& there, const PassPlace& back) {
  double gaps = 0, calls = 0;
  for (OpId id = there.begin; id < back.end; ++id) {
    gaps += to_seconds(trace.ops[id].host_gap);
    calls += to_seconds(trace.ops[id].host_cost);
  }
  return gaps + calls > 0 ? gaps / (gaps + calls) : 0;
}

}  // namespace

PassPath pass_path(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, const JobPricing& pricing) {
  ChunkStep step = priced(chunk_program(job, rank, chunk, drains(job)), pricing);
  PassPath passes;
  passes.gap_share = gap_share_of(step.trace, step.forward(), step.backward());
  Run run;
  run.trace = without_host(std::move(step.trace));
  run.machine = machine_of_ranks(pricing.machine, run.trace);
  SimulationOptions options;
  options.allocator = "ideal";
  run.result = simulate(run.trace, run.machine, options);
  const std::vector<PathSegment> path = critical_path_of_rank(run, 0);
  passes.forward = shares_of(run, path, step.forward());
  passes.backward = shares_of(run, path, step.backward());
  return passes;
}

}  // namespace memwall
