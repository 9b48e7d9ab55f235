#include "validate/report/pytorch_prediction.h"

#include <algorithm>
#include <array>
#include <map>

#include "models/hw/traffic.h"
#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "study/study.h"

namespace memwall {
namespace {

constexpr std::size_t kPhases = static_cast<std::size_t>(Phase::optimizer) + 1;

// First start to last end of the device work of a phase, in seconds. A recomputed op belongs to backward,
// as it does for who measures from outside.
std::array<double, kPhases> phase_spans(const Trace& trace, const SimulationResult& result) {
  std::array<Time, kPhases> first, last;
  first.fill(kNever);
  last.fill(Time{});
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const OpRecord& record = result.records[id];
    if (record.start == kNever) continue;
    const Phase phase = trace.ops[id].phase == Phase::recompute ? Phase::backward : trace.ops[id].phase;
    const auto p = static_cast<std::size_t>(phase);
    first[p] = std::min(first[p], record.start);
    last[p] = std::max(last[p], record.end);
  }
  std::array<double, kPhases> spans{};
  for (std::size_t p = 0; p < kPhases; ++p)
    if (first[p] != kNever) spans[p] = to_seconds(last[p] - first[p]);
  return spans;
}

}  // namespace

std::optional<std::vector<std::string>> policies_of_variant(const std::string& variant) {
  using Policies = std::vector<std::string>;
  static const std::map<std::string, Policies> known{
      {"baseline", {}},
      {"checkpoint=full", {"checkpoint:mode=full"}},
      {"checkpoint=every2", {"checkpoint:mode=every,every=2"}},
      // save_on_cpu moves whatever autograd saves, large or small, and fetches at use.
      {"offload=pinned", {"offload:what=activations,to=host,stream=compute,min_bytes=0"}},
      {"offload=pageable", {"offload:what=activations,to=host,pinned=0,min_bytes=0"}},
      {"optimizer=cpu", {"offload:what=optimizer,to=host"}},
  };
  const auto found = known.find(variant);
  if (found == known.end()) return std::nullopt;
  return found->second;
}

Trace captured_baseline(const std::filesystem::path& folder, const std::string& model, const Machine& machine) {
  const TimedCapture capture = read_kineto(folder / (model + ".kineto.json.gz"));
  ImportedTrace imported = import_timed_capture(capture);
  imported.trace.machine = machine.name;
  const std::filesystem::path execution = folder / (model + ".et.json.gz");
  if (std::filesystem::exists(execution)) join_execution_trace(imported, capture, read_execution_trace(execution));
  return with_possible_traffic(std::move(imported.trace), machine);
}

PytorchPrediction predict(const SharedTrace& baseline, const Machine& machine,
                          const std::vector<std::string>& policies) {
  Study study;
  study.add_step(baseline->name, baseline);
  study.add_machine(machine.name, machine);
  const Run run = study.run({.step = {baseline->name}, .machine = machine.name, .policies = policies},
                            {.record = false})
                      .run;
  const SimulationResult& result = run.result;
  PytorchPrediction p;
  double steps = 0;
  for (const StepResult& step : result.steps) steps += to_seconds(step.step_time);
  p.step = result.steps.empty() ? to_seconds(result.end) : steps / static_cast<double>(result.steps.size());
  const auto spans = phase_spans(run.trace, result);
  p.forward = spans[static_cast<std::size_t>(Phase::forward)];
  p.backward = spans[static_cast<std::size_t>(Phase::backward)];
  p.optimizer = spans[static_cast<std::size_t>(Phase::optimizer)];
  const int device = machine.tier("hbm");
  p.peak_allocated = result.tiers[static_cast<std::size_t>(device)].peak_allocated;
  p.peak_reserved = result.tiers[static_cast<std::size_t>(device)].peak_reserved;
  return p;
}

}  // namespace memwall
