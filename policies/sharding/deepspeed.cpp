// DeepSpeed's ZeRO as DeepSpeed runs it, which is not what the papers' volumes say: stages 1 and 2 all-reduce whole
// buckets by default, so that a rank sends 3 P (N-1)/N bytes per step in stage 1 and (2 GA + 1) P (N-1)/N in stage 2 of
// P bytes of 16-bit parameters and GA micro-batches, where `zero` sends 2 P and (GA + 1) P. Buffers, copies, streams,
// events and waits of the host are DeepSpeed's; what overlaps follows from them.
//
// One rank is simulated; the others run the same program (Trace::ranks). Source: deepspeedai/DeepSpeed, revision
// edaa7221, deepspeed/runtime/zero/. Rajbhandari et al. 2020, "ZeRO"; Ren et al. 2021, "ZeRO-Offload"; Rajbhandari et
// al. 2021, "ZeRO-Infinity"; Wang et al. 2023, "ZeRO++".
#include <algorithm>

#include <fmt/format.h>

#include "policies/sharding/deepspeed_fetch_plan.h"
#include "policies/sharding/deepspeed_fetches.h"
#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_partitioned_step.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_reduction.h"
#include "policies/sharding/deepspeed_scatter.h"
#include "policies/sharding/deepspeed_settings.h"
#include "policies/sharding/deepspeed_step.h"
#include "policies/sharding/deepspeed_update.h"
#include "policies/sharding/gradient_hooks.h"
#include "policies/sharding/zero_analysis.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/number_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

Bytes bytes_of_all(const Trace& trace, const std::vector<StorageId>& storages) {
  Bytes total = 0;
  for (const StorageId id : storages) total += trace.storages[id].bytes;
  return total;
}

class DeepSpeed : public Rewriter {
 public:
  explicit DeepSpeed(const PolicyArguments& arguments) : settings_(deepspeed_settings(arguments)) {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    require_machine(settings_, machine);
    const Dataflow flow(trace);
    ZeroAnalysis analysis = analyze_for_zero(trace, flow, settings_.stage, "deepspeed");
    refuse_zeroed_gradients(trace, flow, analysis, "deepspeed");
    order_by_hooks(trace, analysis);
    TraceEdit edit(trace, machine.host);
    DeepSpeedProgram program(edit, machine, pricer, settings_.ranks, settings_.hook, "deepspeed",
                             settings_.partition_ranks);
    take_out(edit, flow, analysis.replaced);
    if (settings_.stage == 3)
      run_partitioned(program, flow, analysis, machine, pricer);
    else
      run_flat(program, flow, analysis, pricer);
    edit.tables().ranks = settings_.ranks;
    note(edit.tables(), program, trace, analysis);
    return std::move(edit).apply();
  }

 private:
  void run_flat(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                const Pricer& pricer) const {
    const FlatLayout layout(program.base(), flow, analysis.trained, settings_.partition_ranks,
                            settings_.round_robin_gradients);
    ZenFlow zenflow(program, analysis, layout, settings_);
    const DeepSpeedReduction reduced = reduce_as_deepspeed(program, flow, analysis, layout, settings_, zenflow);
    program.edit().tables().notes.push_back(fmt::format("deepspeed: {} of gradients; bucket buffers take {}",
                                                        counted_text(reduced.buckets, "reduction"),
                                                        human_bytes(reduced.buffer_bytes)));
    if (settings_.stage == 0) return;
    std::int64_t elements = 0, own = 0;
    for (const FlatGroup& group : layout.groups()) {
      elements += group.elements;
      own += group.partition;
    }
    DeepSpeedUpdate update(program, flow, analysis, pricer, elements, own);
    step_flat_partition(program, layout, reduced, settings_, update, zenflow);
    if (settings_.zenflow.on)
      program.edit().tables().notes.push_back(fmt::format(
          "deepspeed: zenflow updates {} elements on each GPU after each micro-batch; their moments take {} "
          "{}; the host updates all after {}",
          grouped_text(static_cast<std::uint64_t>(zenflow.selected_elements())), human_bytes(zenflow.state_bytes()),
          settings_.zenflow.offload ? "on the host" : "on the GPU",
          counted_text(static_cast<std::uint64_t>(settings_.zenflow.update_interval), "micro-batch", "micro-batches")));
    note_master(program, update);
  }

  static void note_master(DeepSpeedProgram& program, const DeepSpeedUpdate& update) {
    if (update.added_master())
      program.edit().tables().notes.push_back(
          "deepspeed: keeps an fp32 copy of the rank's parameters, which the step "
          "did not have");
  }

  void run_partitioned(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                       const Machine& machine, const Pricer& pricer) const {
    const Trace& base = program.base();
    const FetchPlan plan = plan_fetches(base, flow, analysis, settings_);
    if (plan.calls.empty())
      throw UsageError("Policy 'deepspeed': trace '" + base.name +
                       "' has no op outside of the optimizer that uses a "
                       "parameter; expected forward and backward to read them.");
    const std::vector<DeepSpeedSubGroup> groups = sub_groups(analysis, plan, settings_);
    PartitionPlace place;
    std::int64_t elements = 0;
    for (const DeepSpeedSubGroup& group : groups) {
      place.own += group.elements;
      if (group.on_host) place.own_on_host += group.elements;
      for (const StorageId id : group.parameters) {
        place.on_host[id] = group.on_host;
        elements += plan.elements.at(id);
      }
    }
    const SwapBuffers buffers = swap_buffers(program, groups);
    Bytes swapped = 0;
    for (const DeepSpeedSubGroup& group : groups) swapped += group.swapped_gradients;
    GradientSwap gradient_swap(program, buffers, swapped, settings_.aio);
    if (!buffers.buffers.empty()) place.swap = &gradient_swap;
    SuperOffload super(program, groups, settings_);
    place.super = &super;
    const ScatteredGradients gradients =
        scatter_gradients(program, flow, analysis, place, settings_, std::max(machine.gpu_count, 1u));
    const DeepSpeedFetches fetches = fetch_as_deepspeed(program, analysis, plan, settings_);
    DeepSpeedUpdate update(program, flow, analysis, pricer, elements, place.own);
    step_partitions(program, groups, gradients, fetches, settings_, update, {&buffers, &gradient_swap}, super);
    note_master(program, update);
    Trace& tables = program.edit().tables();
    constexpr Bytes kElement = 2;
    tables.reuse_distance = std::min(settings_.max_reuse_distance, std::int64_t{1} << 60) * kElement;
    tables.notes.push_back(
        fmt::format("deepspeed: {} module calls in an order that was recorded before; at most {} elements are gathered "
                    "at once, {} of them stay ({}); {} of gradients, buffers take {}; {} in the step",
                    plan.calls.size(), grouped_text(static_cast<std::uint64_t>(plan.most_live)),
                    counted_text(plan.persistent.size(), "parameter"), "param_persistence_threshold",
                    counted_text(gradients.buckets, "reduction"), human_bytes(gradients.buffer_bytes),
                    counted_text(groups.size(), "sub-group")));
    if (settings_.module_granularity_threshold > 0)
      tables.notes.push_back(
          plan.finest_granularity == 0
              ? std::string("deepspeed: module_granularity_threshold has no effect: the step does not say of which "
                            "modules its ops are")
              : fmt::format(
                    "deepspeed: {} gathered whole (module_granularity_threshold); the finest that can be has {} "
                    "elements for each module in it",
                    counted_text(plan.leaf_modules, "module is", "modules are"),
                    grouped_text(static_cast<std::uint64_t>(plan.finest_granularity))));
  }

  // Of offload_optimizer=nvme; none otherwise.
  SwapBuffers swap_buffers(DeepSpeedProgram& program, const std::vector<DeepSpeedSubGroup>& groups) const {
    if (settings_.offload_optimizer != OffloadDevice::nvme) return {};
    std::int64_t largest = 0;
    for (const DeepSpeedSubGroup& group : groups) largest = std::max(largest, group.elements);
    return make_swap_buffers(program, largest, settings_.optimizer_buffer_count);
  }

  void note(Trace& result, const DeepSpeedProgram& program, const Trace& trace, const ZeroAnalysis& analysis) const {
    const auto add = [&](std::string text) { result.notes.push_back("deepspeed: " + std::move(text)); };
    add(fmt::format(
        "stage {} over {} ranks; at rest a rank keeps {} of parameters, {} of optimizer states of the step's "
        "{}",
        settings_.stage, settings_.ranks, human_bytes(bytes_of_all(result, analysis.parameters)),
        human_bytes(bytes_of_all(result, analysis.states)), human_bytes(bytes_of_all(trace, analysis.states))));
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::reduce, CollectiveKind::reduce_scatter,
          CollectiveKind::all_gather, CollectiveKind::broadcast, CollectiveKind::all_to_all})
      if (program.collectives(kind) > 0)
        add(fmt::format("{}, {} sent per rank", counted_text(program.collectives(kind), std::string(to_string(kind))),
                        human_bytes(program.bytes_sent(kind))));
    if (settings_.aio.use_gds && !settings_.reads_into_gpu())
      add("aio_use_gds has no effect: GPUDirect Storage reads parameters alone, and none are on NVMe");
    if (program.copied_out() + program.copied_in() > 0)
      add(fmt::format("{} copied to the host, {} back", human_bytes(program.copied_out()),
                      human_bytes(program.copied_in())));
  }

  DeepSpeedSettings settings_;
};

const RegisterPolicy registered_deepspeed{
    {.name = "deepspeed",
     .sentence = "ZeRO stages 0 to 3 as DeepSpeed runs them: its buckets, buffers, streams, prefetches and offloads",
     .kind = PolicyKind::sharding,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .ranks = RankRule::each_meeting,
     .parameters = deepspeed_parameters(),
     .answer = [](const Trace& trace) { return answer_for_zero(trace, "deepspeed"); },
     .make_rewriter = [](const PolicyArguments& arguments) { return std::make_unique<DeepSpeed>(arguments); }}};

}  // namespace
}  // namespace memwall
