#include "study/generated_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/workload/generate/configuration/model_size.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/trace/trace_check.h"
#include "traces/run/analysis/longest_sequence.h"

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

bool is_hugging_face_config(const TrainingJob& job) {
  return std::ranges::any_of(job.files, [](const std::filesystem::path& file) { return file.extension() == ".json"; });
}

// What a model can take at most is seldom what it is trained at.
void say_longest(Trace& trace) {
  for (RecipeItem& item : trace.recipe)
    if (item.what == "batch" && trace.tokens_per_step > 0) item.value += std::string(", ") + kLongestSequence;
}

}  // namespace

GeneratedStep generated_step(const std::string& what, const std::vector<std::string>& settings) {
  TrainingJob job = load_training_job(what);
  if (!settings.empty()) set_all(job, settings);
  GeneratedStep step;
  step.trace = generate_step(job.model, job.recipe);
  const std::int64_t sequence = job.recipe.sequence != 0 ? job.recipe.sequence : job.model.longest;
  const Model& m = job.model;
  std::int64_t windows = 0;
  for (std::int64_t i = 0; i < m.layers; ++i) windows += has_window(m, i);
  const bool in_mask = m.modules != Modules::plain && job.recipe.attention == Attention::plain;
  if (windows > 0 && m.sliding_window < sequence && !in_mask)
    job.notes.push_back(fmt::format("Attention slides over {} tokens{}; beyond that many it is generated as full.",
                                    m.sliding_window,
                                    windows == m.layers ? "" : fmt::format(" in {} of {} layers", windows, m.layers)));
  if (m.attention_softcapping && job.recipe.attention != Attention::plain)
    job.notes.push_back(
        "Scores are capped inside the kernel of attention (flash_attention_2); without it transformers keeps them in "
        "memory (attention=plain).");
  step.trace.notes.insert(step.trace.notes.begin(), job.notes.begin(), job.notes.end());
  if (job.recipe.sequence == 0 && is_hugging_face_config(job)) say_longest(step.trace);
  require_sound(step.trace, what);
  step.files = std::move(job.files);
  step.figures.parameters = parameter_count(job.model);
  step.figures.active_parameters = active_parameter_count(job.model);
  count_storages(step.trace, step.figures);
  follow_ops(step.trace, step.figures);
  return step;
}

}  // namespace memwall
