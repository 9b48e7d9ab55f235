// DeepSpeed's ZeRO as DeepSpeed runs it, which is not what the papers' volumes say: stages 1 and 2 all-reduce whole
// buckets by default, so that a rank sends 3 P (N-1)/N bytes per step in stage 1 and (2 GA + 1) P (N-1)/N in stage 2 of
// P bytes of 16-bit parameters and GA micro-batches, where `zero` sends 2 P and (GA + 1) P. Buffers, copies, streams,
// events and waits of the host are DeepSpeed's; what overlaps follows from them.
//
// One rank is simulated; the others run the same program (Trace::ranks). Source: deepspeedai/DeepSpeed, revision
// edaa7221, deepspeed/runtime/zero/. Rajbhandari et al. 2020, "ZeRO"; Ren et al. 2021, "ZeRO-Offload"; Rajbhandari et
// al. 2021, "ZeRO-Infinity"; Wang et al. 2023, "ZeRO++".
#include <fmt/format.h>

#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_reduction.h"
#include "policies/sharding/deepspeed_settings.h"
#include "policies/sharding/deepspeed_step.h"
#include "policies/sharding/deepspeed_update.h"
#include "policies/sharding/zero_analysis.h"
#include "sim/error.h"
#include "sim/human_text.h"
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
    const ZeroAnalysis analysis = analyze_for_zero(trace, flow, settings_.stage, "deepspeed");
    TraceEdit edit(trace, machine.host);
    DeepSpeedProgram program(edit, pricer, settings_.ranks, settings_.hook);
    take_out(edit, flow, analysis.replaced);
    if (settings_.stage == 3) throw UsageError("Policy 'deepspeed': stage=3 is not implemented.");
    run_flat(program, flow, analysis, machine, pricer);
    edit.tables().ranks = settings_.ranks;
    note(edit.tables(), program, trace, analysis);
    return std::move(edit).apply();
  }

 private:
  void run_flat(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis, const Machine& machine,
                const Pricer& pricer) const {
    const FlatLayout layout(program.base(), flow, analysis.parameters, settings_.ranks,
                            settings_.round_robin_gradients);
    const DeepSpeedReduction reduced = reduce_as_deepspeed(program, flow, analysis, layout, settings_);
    program.edit().tables().notes.push_back(fmt::format("deepspeed: {} of gradients; bucket buffers take {}",
                                                        counted_text(reduced.buckets, "reduction"),
                                                        human_bytes(reduced.buffer_bytes)));
    if (settings_.stage == 0) return;
    std::int64_t elements = 0, own = 0;
    for (const FlatGroup& group : layout.groups()) {
      elements += group.elements;
      own += group.partition;
    }
    DeepSpeedUpdate update(program, flow, analysis, machine, pricer, elements, own);
    step_flat_partition(program, layout, reduced, settings_, update);
    if (update.added_master())
      program.edit().tables().notes.push_back(
          "deepspeed: keeps an fp32 copy of the rank's parameters, which the step "
          "did not have");
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
          CollectiveKind::all_gather, CollectiveKind::all_to_all})
      if (program.collectives(kind) > 0)
        add(fmt::format("{}, {} sent per rank", counted_text(program.collectives(kind), std::string(to_string(kind))),
                        human_bytes(program.bytes_sent(kind))));
    if (program.copied_out() + program.copied_in() > 0)
      add(fmt::format("{} copied to the host, {} back", human_bytes(program.copied_out()),
                      human_bytes(program.copied_in())));
  }

  DeepSpeedSettings settings_;
};

PolicyAnswer answer_of_deepspeed(const Trace& trace) {
  try {
    analyze_for_zero(trace, Dataflow(trace), 3, "deepspeed");
  } catch (const UsageError& error) {
    return {error.what(), {}, {}};
  }
  return {};
}

const RegisterPolicy registered_deepspeed{
    {.name = "deepspeed",
     .sentence = "ZeRO stages 0 to 3 as DeepSpeed runs them: its buckets, buffers, streams, prefetches and offloads",
     .kind = PolicyKind::sharding,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .ranks = RankRule::each_meeting,
     .parameters = deepspeed_parameters(),
     .answer = answer_of_deepspeed,
     .make_rewriter = [](const PolicyArguments& arguments) { return std::make_unique<DeepSpeed>(arguments); }}};

}  // namespace
}  // namespace memwall
