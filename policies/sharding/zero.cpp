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
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "sim/trace/step_count.h"

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
    take_out(edit, flow, analysis.replaced);
    const ReductionSummary reduced = reduce_gradients(edit, flow, analysis, messages, settings_, pricer);
    GatherSummary gathered;
    if (settings_.stage == 1 || settings_.stage == 2)
      gathered = gather_updated(edit, analysis, messages, settings_, pricer);
    if (settings_.stage == 3) gathered = gather_before_use(edit, analysis, messages, settings_, pricer);
    edit.tables().ranks = settings_.ranks;
    edit.tables().reuse_distance = settings_.stage == 3 ? settings_.reuse_distance : 0;
    note(edit.tables(), trace, split, analysis, reduced, gathered);
    return std::move(edit).apply();
  }

 private:
  void note(Trace& result, const Trace& trace, const SplitUpdate& split, const ZeroAnalysis& analysis,
            const ReductionSummary& reduced, const GatherSummary& gathered) const {
    const auto add = [&](std::string text) { result.notes.push_back("zero: " + std::move(text)); };
    const auto kept_of = [&](const std::vector<StorageId>& storages, std::size_t times) {
      const auto once = static_cast<Bytes>(times);  // each step of a capture has gradients of its own
      return fmt::format("{} of {}", human_bytes(sum(result, storages) / once), human_bytes(sum(trace, storages) / once));
    };
    add(
        fmt::format("stage {} over {} ranks; at rest a rank keeps {} of parameters, {} of gradients, {} of optimizer "
                    "states",
                    settings_.stage, settings_.ranks, kept_of(analysis.parameters, 1),
                    kept_of(analysis.gradients, step_count(trace)), kept_of(analysis.states, 1)));
    add(fmt::format("{} of gradients, {} sent per rank; largest buffer {}", counted_text(reduced.buckets, "reduction"),
                    human_bytes(reduced.bytes_sent), human_bytes(reduced.largest_buffer)));
    if (settings_.stage > 0)
      add(fmt::format("{} of parameters, {} sent per rank; at most {} at once",
                      counted_text(gathered.gathers, "gather"), human_bytes(gathered.bytes_sent),
                      human_bytes(gathered.largest_unit)));
    if (gathered.kept_distance > 0)
      add(
          fmt::format("parameters are gathered for forward, for recompute and for backward where these are apart. With "
                      "reuse_distance={} "
                      "backward finds what recompute has gathered: {} sent per rank instead of {}",
                      typed_bytes(gathered.kept_distance), human_bytes(gathered.kept_bytes_sent),
                      human_bytes(gathered.bytes_sent)));
    if (split.scaled > 0)
      add(fmt::format("{} {} 1/{} of {} work", counted_text(split.scaled, "optimizer kernel"),
                      split.scaled == 1 ? "does" : "do", settings_.ranks, split.scaled == 1 ? "its" : "their"));
    if (split.of_unknown_work > 0)
      add(fmt::format("{} without a known size: the time stays as it was",
                      counted_text(split.of_unknown_work, "optimizer kernel")));
    if (const ReplacedReduction& before = analysis.replaced; !before.all_reduces.empty())
      add(fmt::format("takes the place of the step's own data parallelism{}: {} of gradients and {} of buckets go",
                      trace.ranks > 1 ? fmt::format(" over {} ranks", trace.ranks) : "",
                      counted_text(before.all_reduces.size(), "all-reduce"), human_bytes(sum(trace, before.buckets))));
    if (const std::size_t own = analysis.own_collectives.size(); own > 0)
      add(fmt::format("{} of activations {} as captured, between as many ranks", counted_text(own, "collective"),
                      own == 1 ? "stays" : "stay"));
    if (!analysis.table_states.empty())
      add(fmt::format("{} of optimizer states that no optimizer step uses (of tables that are this rank's): whole",
                      human_bytes(sum(trace, analysis.table_states))));
    if (!analysis.replicated.empty())
      add(fmt::format("{} of {} that no optimizer step updates, or other ops write, too: whole on every rank",
                      counted_text(analysis.replicated.size(), "parameter"),
                      human_bytes(sum(trace, analysis.replicated))));
    if (trace.untracked_bytes > 0)
      add(fmt::format("{} from before the capture are of unknown kind and stay on every rank",
                      human_bytes(trace.untracked_bytes)));
  }

  // As the option is typed: "1B", "437MB".
  static std::string typed_bytes(Bytes bytes) {
    return bytes % 1'000'000 == 0 ? fmt::format("{}MB", bytes / 1'000'000) : fmt::format("{}B", bytes);
  }

  ZeroSettings settings_;
};

const RegisterPolicy registered_zero{
    {.name = "zero",
     .sentence = "splits optimizer states, gradients and parameters over data-parallel ranks (ZeRO stages 0 to 3)",
     .kind = PolicyKind::sharding,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .ranks = RankRule::each_meeting,
     .parameters = zero_parameters(),
     .answer = [](const Trace& trace) { return answer_for_zero(trace, "zero"); },
     .make_rewriter = [](const PolicyArguments& arguments) { return std::make_unique<Zero>(arguments); }}};

}  // namespace
}  // namespace memwall
