#include "study/generated_step.h"

#include <algorithm>
#include <utility>

#include "models/workload/generate/generate.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

bool on_device(const Trace& t, const Storage& s) { return t.places[s.place] == "hbm"; }

void count_storages(const Trace& t, GeneratedFigures& f) {
  for (const Storage& s : t.storages) {
    if (!on_device(t, s)) continue;
    if (s.kind == StorageKind::parameter) f.parameter_bytes += s.bytes;
    if (s.kind == StorageKind::gradient) f.gradient_bytes += s.bytes;
    if (s.kind == StorageKind::optimizer_state) f.optimizer_bytes += s.bytes;
  }
}

void follow_ops(const Trace& t, GeneratedFigures& f) {
  Bytes live = 0, activations = 0;
  for (const Storage& s : t.storages) {
    if (!s.preexisting || !on_device(t, s)) continue;
    live += s.bytes;
    if (s.kind == StorageKind::activation) activations += s.bytes;  // of programs that allocate once for all steps
  }
  f.peak_bytes = live;
  bool in_forward = true;
  for (const Op& op : t.ops) {
    f.flops += op.flops;
    f.framework_calls += op.framework_calls;
    f.operators += runs_on_device(op.kind) ? 1 : 0;
    if (op.kind == OpKind::mark && t.strings[op.name] == "loss" && std::exchange(in_forward, false))
      f.activation_bytes = activations;
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    const Storage& s = t.storages[op.target];
    if (!on_device(t, s)) continue;
    const Bytes change = op.kind == OpKind::alloc ? s.bytes : -s.bytes;
    live += change;
    if (s.kind == StorageKind::activation) activations += change;
    f.peak_bytes = std::max(f.peak_bytes, live);
  }
}

}  // namespace

GeneratedStep generated_step(const std::string& what, const std::vector<std::string>& settings) {
  TrainingJob job = load_training_job(what);
  if (!settings.empty()) set_all(job, settings);
  GeneratedStep step;
  step.trace = generate_step(job.model, job.recipe);
  step.trace.notes.insert(step.trace.notes.begin(), job.notes.begin(), job.notes.end());
  require_sound(step.trace, what);
  step.files = std::move(job.files);
  step.figures.parameters = parameter_count(job.model);
  count_storages(step.trace, step.figures);
  follow_ops(step.trace, step.figures);
  return step;
}

}  // namespace memwall
