#include "study/layout/folded_scenarios.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/parallel/parallel_job.h"
#include "sim/error.h"
#include "study/device_budget.h"
#include "study/layout/folded_path.h"
#include "study/scale_text.h"
#include "study/step_text.h"
#include "study/workload_file.h"

namespace memwall {
namespace {

// Settings of which costs of chunks know by themselves: those that the search of layouts changes. Of steps that are
// equal without them, on equal machines, costs are shared.
constexpr std::array<std::string_view, 16> kOfLayout = {"tensor",
                                                        "pipeline",
                                                        "interleave",
                                                        "data_parallel",
                                                        "micro_batch",
                                                        "global_batch",
                                                        "batch",
                                                        "accumulation",
                                                        "checkpoint",
                                                        "sequence_parallel",
                                                        "distributed_optimizer",
                                                        "overlap_grad_reduce",
                                                        "overlap_param_gather",
                                                        "main_gradients",
                                                        "embedding_in_split",
                                                        "loss_in_split"};

bool is_plain(const Scenario& s) {
  const auto is_of_rank = [](const std::string& text) {  // rank[7].gpu.clock=0.9; rank=7,kernels=1.1
    return text.starts_with("rank[") || text.starts_with("rank=") || text.find(",rank=") != std::string::npos;
  };
  return s.step.size() == 1 && s.execution_traces.empty() && s.onto.empty() && s.second_size.empty() &&
         s.measured_on.empty() && !s.machine.empty() && s.policies.empty() && s.plan.empty() && s.executable.empty() &&
         s.pager.empty() && s.repeat == 1 && s.allocator_settings.empty() &&
         (s.allocator == "pytorch" || s.allocator == "ideal") && std::ranges::none_of(s.settings, is_of_rank) &&
         std::ranges::none_of(s.scale, is_of_rank);
}

Bytes device_bytes(const Machine& machine, const std::string& budget) {
  const int tier = machine.tier("hbm");
  if (tier < 0) throw UsageError("The machine has no memory \"hbm\".");
  const Bytes whole = machine.tiers[static_cast<std::size_t>(tier)].holds();
  return budget.empty() ? whole : parse_device_budget(budget).of(whole);
}

void set_reserved(const ReservedJob& reserved, FoldedFigures& figures) {
  for (const ReservedStage& stage : reserved.stages) {
    figures.peak_allocated = std::max(figures.peak_allocated, stage.allocated);
    figures.peak_reserved = std::max(figures.peak_reserved, stage.reserved);
    figures.missing = std::max(figures.missing, stage.missing);
  }
}

}  // namespace

bool FoldedScenarios::takes(const Study& study, const Scenario& s) {
  if (!is_plain(s) || study.has_added_step(s.step.front())) return false;
  try {
    if (!is_generated_step(s.step.front())) return false;
    const TrainingJob job = load_training_job(s.step.front());
    return is_parallel(job.recipe) &&
           !job.recipe.launch_blocking &&               // folded passes launch without waiting for each kernel
           !job.recipe.parallel.async_tensor_parallel;  // which somebody must compile
  } catch (const std::exception&) {  // whoever runs it says so
    return false;
  }
}

std::shared_ptr<FoldedScenarios::Costs> FoldedScenarios::costs_of(const Scenario& s) {
  const std::string plain = without_settings(s.step.front(), kOfLayout);
  const std::string key = to_text({.step = {plain}, .machine = s.machine, .settings = s.settings, .scale = s.scale});
  return *costs_.get(key, [&] {
    const auto programs = *programs_.get(plain, [] { return std::make_shared<ChunkPrograms>(); });
    return std::make_shared<Costs>(study_.machine(s), combined(parse_scales(s.scale)), programs);
  });
}

std::optional<ReservedJob> FoldedScenarios::reserved_of(const Scenario& s, const ParallelJob& job,
                                                        ChunkCostCache& costs, Bytes capacity) {
  return *reserved_.get(fmt::format("{} {}", capacity, s.step.front()),
                        [&] { return reserved_job(job, costs, capacity); });
}

std::optional<FoldedFigures> FoldedScenarios::figures(const Scenario& s, bool with_path) {
  const std::shared_ptr<const ParallelJob> known = jobs_.get(s.step.front(), [&] {
    const TrainingJob training = load_training_job(s.step.front());
    ParallelJob made = parallel_job(training.model, training.recipe);
    made.name = s.step.front();
    return made;
  });
  const ParallelJob& job = *known;
  const std::shared_ptr<Costs> costs = costs_of(s);
  const Bytes capacity = device_bytes(*costs->machine, s.budget);
  const FoldedJob folded = folded_job(job, costs->cache);
  FoldedFigures figures{.step_time = folded.mean_end, .total = folded.step_time};
  const Recipe& r = job.recipe;
  figures.samples_per_step = static_cast<double>(r.batch * r.accumulation * job.data());
  figures.tokens_per_step = figures.samples_per_step * static_cast<double>(r.sequence ? r.sequence : job.model.longest);
  if (s.allocator == "pytorch") {
    const std::optional<ReservedJob> reserved = reserved_of(s, job, costs->cache, capacity);
    if (!reserved || reserved->microbatches < job.pipeline.microbatches) return std::nullopt;
    set_reserved(*reserved, figures);
  } else {
    figures.peak_allocated = figures.peak_reserved = folded.stages[folded.fullest()].peak;
    figures.missing = std::max<Bytes>(0, figures.peak_allocated - capacity);
  }
  if (!with_path) return figures;
  const FoldedPath path = folded_path(job, costs->cache, folded);
  for (int c = 0; c < kTimeClasses; ++c)
    figures.path.emplace_back(static_cast<TimeClass>(c), path.time_of(static_cast<TimeClass>(c)));
  return figures;
}

}  // namespace memwall
