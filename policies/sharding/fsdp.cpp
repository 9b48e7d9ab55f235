// PyTorch's Fully Sharded Data Parallel as it runs, not as the ZeRO papers have it: units, streams, events, buffers
// and what the host waits for. Version 2 is `fully_shard`, version 1 the class FullyShardedDataParallel.
//
// One rank is simulated, the one with the largest shards; the others run the same program (Trace::ranks). What
// overlaps follows from streams, events and the host, and from no setting.
//
// Gathers, waits, reductions and the rate limiter were compared with the source of PyTorch 2.15; which collectives are
// called with how many bytes, with what it calls (tests/oracle/recorded_collectives_test.cpp).
//
// Deviations. A reduction's output is one storage per gradient, where PyTorch has one for all of a unit's: the bytes
// differ by the allocator's rounding. The optimizer's kernels do 1/N of their work, as many as they are. Units are
// single modules. Not modelled: output_dtype, cast_forward_inputs, unshard_async_op, hooks of the user's on
// collectives.
#include <fmt/format.h>

#include "policies/sharding/fsdp_layout.h"
#include "policies/sharding/fsdp_offload.h"
#include "policies/sharding/fsdp_precision.h"
#include "policies/sharding/fsdp_settings.h"
#include "policies/sharding/fsdp_step.h"
#include "policies/sharding/zero_analysis.h"
#include "policies/sharding/zero_settings.h"
#include "policies/sharding/zero_update.h"
#include "policies/trace/described.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

class Fsdp : public Rewriter {
 public:
  explicit Fsdp(const PolicyArguments& arguments) : settings_(fsdp_settings(arguments)) {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    require_fabric(machine);
    const Dataflow flow(trace);
    const ZeroAnalysis analysis = analyze_for_zero(trace, flow, 3, "fsdp");
    const FsdpUnits units(trace, flow, analysis, settings_.units);
    require_uniform_types(trace, flow, units);
    const FsdpLayout layout = settings_.version == 1
                                  ? FsdpLayout(trace, flow, analysis, units, settings_.shards(), settings_.alignment)
                                  : FsdpLayout(trace, flow, analysis, settings_.shards());
    TraceEdit edit(trace, machine.host);
    const FsdpPrecision precision(trace, flow, analysis, settings_.param_dtype, !settings_.reduces_each_pass);
    const SplitUpdate split = split_update(edit, of_shards(analysis, layout, precision),
                                           layout.partition(trace, analysis), 3, settings_.shards(), machine, pricer);
    take_over(edit, flow, analysis.replaced);
    for (const StorageId g : analysis.gradients)
      edit.resize(g, layout.shard_elements(g) * precision.kept_element(layout.element(g)));
    precision.apply(edit);
    if (settings_.offloads) offload_to_cpu(edit, analysis, precision, settings_.pins_memory, pricer);
    const FsdpSummary summary = apply_fsdp(edit, flow, analysis, units, layout, precision, settings_, pricer);
    edit.tables().ranks = settings_.ranks;
    edit.tables().reuse_distance = 0;
    note(edit.tables(), trace, split, analysis, precision, summary);
    return std::move(edit).apply();
  }

 private:
  void require_fabric(const Machine& machine) const {
    if (machine.fabric(settings_.ranks) != nullptr) return;
    std::string reach = machine.fabrics.empty() ? "it has no fabric at all" : "";
    for (const Fabric& fabric : machine.fabrics)
      reach += (reach.empty() ? "" : ", ") + fabric.name + " reaches " + std::to_string(fabric.max_ranks);
    throw UsageError("Policy 'fsdp': ranks=" + std::to_string(settings_.ranks) + " is more than machine '" +
                     machine.name + "' connects: " + reach + ".");
  }

  // Source: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _init_mp_dtypes (of what is trained);
  // torch/distributed/fsdp/_flat_param.py, _validate_tensors_to_flatten.
  void require_uniform_types(const Trace& trace, const Dataflow& flow, const FsdpUnits& units) const {
    const bool flat = settings_.version == 1;
    for (const FsdpUnit& unit : units.all()) {
      StorageId first = kNoStorage;
      for (const StorageId p : unit.parameters) {
        if (!flat && flow.writers(p).empty()) continue;  // frozen
        if (first == kNoStorage) first = p;
        const Bytes one = sharded_element(trace, flow, first), other = sharded_element(trace, flow, p);
        if (one == other) continue;
        throw UsageError(
            "Policy 'fsdp': PyTorch " +
            std::string(flat ? "flattens tensors of one type only" : "shards parameters of one type per unit") +
            ", and " + described_storage(trace, p) + " of unit '" + unit.module + "' has elements of " +
            std::to_string(other) + " bytes, " + described_storage(trace, first) + " of " + std::to_string(one) +
            "; expected other units=.");
      }
    }
  }

  // Where a pass adds to what the one before has kept whole, autograd's kernel goes on to read it; not so what is kept
  // in another type.
  ZeroAnalysis of_shards(ZeroAnalysis analysis, const FsdpLayout& layout, const FsdpPrecision& precision) const {
    const Bytes cast = bytes_of(settings_.reduce_dtype);
    const auto keeps_type = [&](Bytes own) {
      if (cast > 0) return cast == own;
      return settings_.version == 1 || precision.kept_element(own) == own;
    };
    bool kept = false;
    for (BackwardPass& pass : analysis.passes) {
      for (GradientMade& made : pass.made)
        made.accumulates = made.accumulates && !(kept && keeps_type(layout.element(made.gradient)));
      kept = !settings_.reduces_each_pass && !pass.before_update;
    }
    return analysis;
  }

  static void take_over(TraceEdit& edit, const Dataflow& flow, const ReplacedReduction& before) {
    for (const OpId id : before.ops) edit.remove(id);
    for (const StorageId id : before.buckets) {
      edit.tables().storages[id].preexisting = false;
      for (const OpId end : {flow.alloc(id), flow.free(id)})
        if (end != kNoOp) edit.remove(end);
    }
  }

  void note(Trace& result, const Trace& trace, const SplitUpdate& split, const ZeroAnalysis& analysis,
            const FsdpPrecision& precision, const FsdpSummary& summary) const {
    const auto add = [&](std::string text) { result.notes.push_back("fsdp: " + std::move(text)); };
    const auto sum = [](const Trace& t, const std::vector<StorageId>& storages) {
      Bytes bytes = 0;
      for (const StorageId id : storages) bytes += t.storages[id].bytes;
      return bytes;
    };
    const auto kept = [&](const std::vector<StorageId>& storages) {
      return fmt::format("{} of {}", human_bytes(sum(result, storages)), human_bytes(sum(trace, storages)));
    };
    std::vector<StorageId> shards, states;
    for (const StorageId p : analysis.parameters) shards.push_back(precision.at_rest(p));
    for (const StorageId s : analysis.states)
      if (result.storages[s].kind == StorageKind::optimizer_state) states.push_back(s);
    add(
        fmt::format("version {}, {} over {} ranks{}; at rest a rank keeps {} of parameters, {} of gradients, {} of "
                    "optimizer states",
                    settings_.version, counted_text(summary.units, "unit"), settings_.shards(),
                    settings_.replicas > 1 ? fmt::format(", {} replicas", settings_.replicas) : "", kept(shards),
                    kept(analysis.gradients), kept(states)));
    if (precision.has_copies())
      add("the optimizer's fp32 copies of parameters are what is sharded; the parameters in 16 bit live while "
          "gathered");
    if (precision.drops_casts()) add("parameters are cast before they are gathered: autocast's casts of them go");
    add(fmt::format("{}, {} sent per rank; largest buffer {}", counted_text(summary.gathers, "all-gather"),
                    human_bytes(summary.gathers_sent), human_bytes(summary.largest_gather)));
    add(fmt::format("{}, {} sent per rank; largest buffer {}", counted_text(summary.reduce_scatters, "reduce-scatter"),
                    human_bytes(summary.reduce_scatters_sent), human_bytes(summary.largest_reduction)));
    if (summary.all_reduces > 0)
      add(fmt::format("{} over replicas, {} sent per rank", counted_text(summary.all_reduces, "all-reduce"),
                      human_bytes(summary.all_reduces_sent)));
    if (const NormSums& norms = summary.norms; norms.over_shards > 0)
      add(fmt::format(
          "{} of the gradients' norm{}{}", counted_text(norms.over_shards, "all-reduce"),
          norms.over_layers > 0 ? fmt::format(", and {} over the ranks that share layers", norms.over_layers) : "",
          norms.of_step > 0
              ? fmt::format(", beside {} of the step's own over the ranks that share layers", norms.of_step)
              : ""));
    if (split.of_unknown_work > 0)
      add(fmt::format("{} without a known size: the time stays as it was",
                      counted_text(split.of_unknown_work, "optimizer kernel")));
    if (const ReplacedReduction& before = analysis.replaced; !before.all_reduces.empty())
      add(fmt::format("takes the place of the step's own data parallelism: {} of gradients and {} of buckets go",
                      counted_text(before.all_reduces.size(), "all-reduce"), human_bytes(sum(trace, before.buckets))));
    if (!analysis.replicated.empty())
      add(fmt::format("{} of {} that no optimizer step updates, or other ops write, too: whole on every rank",
                      counted_text(analysis.replicated.size(), "parameter"),
                      human_bytes(sum(trace, analysis.replicated))));
    add(fmt::format("each hook of a unit takes the host {:g} us besides the driver's calls: assumed (hook_us=)",
                    to_seconds(settings_.hook) * 1e6));
  }

  FsdpSettings settings_;
};

// To its defaults.
PolicyAnswer answer_of_fsdp(const Trace& trace) {
  try {
    analyze_for_zero(trace, Dataflow(trace), 3, "fsdp");
  } catch (const UsageError& error) {
    return {error.what(), {}, {}};
  }
  return {};
}

const RegisterPolicy registered_fsdp{
    {.name = "fsdp",
     .sentence = "shards parameters, gradients and optimizer states as PyTorch's FSDP does (fully_shard)",
     .kind = PolicyKind::sharding,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .modules = true},
     .ranks = RankRule::each_meeting,
     .parameters = fsdp_parameters(),
     .answer = answer_of_fsdp,
     .make_rewriter = [](const PolicyArguments& arguments) { return std::make_unique<Fsdp>(arguments); }}};

}  // namespace
}  // namespace memwall
