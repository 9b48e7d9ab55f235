// ZeRO: data parallelism whose ranks share optimizer states, gradients and parameters out instead of
// each keeping all. Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models", with the volumes of its section 7: of 16-bit parameters and gradients of P bytes,
// a rank sends 2 P (N-1)/N per step in stages 0 to 2, 3 P (N-1)/N in stage 3.
//
// One rank is simulated; the others run the same program (Trace::ranks). Stage 0 follows PyTorch's
// DistributedDataParallel. DeepSpeed's and FSDP's departures from the paper (all-reduce instead of
// reduce-scatter in stages 1 and 2, persistent small parameters, copy-in and copy-out) are not modelled.
#include <fmt/format.h>

#include "policies/sharding/zero_analysis.h"
#include "policies/sharding/zero_gathers.h"
#include "policies/sharding/zero_reduction.h"
#include "policies/sharding/zero_settings.h"
#include "policies/sharding/zero_update.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

Bytes sum(const Trace& trace, const std::vector<StorageId>& storages) {
  Bytes total = 0;
  for (const StorageId id : storages) total += trace.storages[id].bytes;
  return total;
}

class Zero : public Rewriter {
 public:
  explicit Zero(const PolicyArguments& arguments) : settings_(zero_settings(arguments)) {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    require_fabric(settings_, machine);
    const Dataflow flow(trace);
    const ZeroAnalysis analysis = analyze_for_zero(trace, flow, settings_.stage);
    const Partition partition = partition_for_zero(trace, flow, analysis, settings_.stage, settings_.ranks);
    const Partition messages = partition_for_messages(trace, flow, analysis, settings_.stage, settings_.ranks);
    TraceEdit edit(trace, machine.host);
    SplitUpdate split;
    if (settings_.stage > 0)
      split = split_update(edit, analysis, partition, settings_.stage, settings_.ranks, machine, pricer);
    for (const OpId id : analysis.all_reduces) edit.remove(id);
    const ReductionSummary reduced = reduce_gradients(edit, flow, analysis, messages, settings_, pricer);
    GatherSummary gathered;
    if (settings_.stage == 1 || settings_.stage == 2)
      gathered = gather_updated(edit, analysis, messages, settings_, pricer);
    if (settings_.stage == 3) gathered = gather_before_use(edit, analysis, messages, settings_, pricer);
    edit.tables().ranks = settings_.ranks;
    note(edit.tables(), trace, split, analysis, reduced, gathered);
    return std::move(edit).apply();
  }

 private:
  void note(Trace& result, const Trace& trace, const SplitUpdate& split, const ZeroAnalysis& analysis,
            const ReductionSummary& reduced, const GatherSummary& gathered) const {
    const auto add = [&](std::string text) { result.notes.push_back("zero: " + std::move(text)); };
    add(
        fmt::format("stage {} over {} ranks; at rest a rank keeps {} of {} bytes of parameters, {} of {} of gradients, "
                    "{} of {} of optimizer states",
                    settings_.stage, settings_.ranks, sum(result, analysis.parameters), sum(trace, analysis.parameters),
                    sum(result, analysis.gradients), sum(trace, analysis.gradients), sum(result, analysis.states),
                    sum(trace, analysis.states)));
    add(fmt::format("{} reductions of gradients send {} bytes per rank; largest buffer {} bytes", reduced.buckets,
                    reduced.bytes_sent, reduced.largest_buffer));
    if (settings_.stage > 0)
      add(fmt::format("{} gathers of parameters send {} bytes per rank; at most {} bytes at once", gathered.gathers,
                      gathered.bytes_sent, gathered.largest_unit));
    if (split.scaled > 0) add(fmt::format("{} optimizer kernels do 1/{} of their work", split.scaled, settings_.ranks));
    if (split.of_unknown_work > 0)
      add(fmt::format("{} optimizer kernels keep their time: their size is not known", split.of_unknown_work));
    if (!analysis.all_reduces.empty())
      add(fmt::format("{} all-reduces of gradients in the capture were replaced", analysis.all_reduces.size()));
    if (!analysis.replicated.empty())
      add(fmt::format("{} parameters that are written outside of the optimizer stay on every rank",
                      analysis.replicated.size()));
    if (trace.untracked_bytes > 0)
      add(fmt::format("{} bytes from before the capture are of unknown kind and stay on every rank",
                      trace.untracked_bytes));
  }

  ZeroSettings settings_;
};

const RegisterPolicy registered_zero{
    {.name = "zero",
     .sentence = "splits optimizer states, gradients and parameters over data-parallel ranks (ZeRO stages 0 to 3)",
     .kind = PolicyKind::sharding,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .ranks = RankRule::one_program,
     .parameters = zero_parameters(),
     .make_rewriter = [](const PolicyArguments& arguments) { return std::make_unique<Zero>(arguments); }}};

}  // namespace
}  // namespace memwall
