#include "study/layout/layout_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "models/workload/generate/network.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/machine/arithmetic.h"
#include "study/layout/folded_path.h"
#include "study/layout/layout_candidates.h"
#include "study/layout/no_layout.h"
#include "study/layout/reserved_memory.h"
#include "study/layout/sharing_job.h"
#include "study/parallel_tasks.h"

namespace memwall {
namespace {

constexpr std::size_t kAtOnce = 32;  // simulated before the next bounds are looked at: the same for any number of threads

struct Estimate {
  const LayoutCandidate* candidate = nullptr;
  Duration bound{};  // no step is shorter
  Bytes peak = 0;    // messages not counted
};

Bytes sum(const BytesByKind& bytes) {
  Bytes total = 0;
  for (const Bytes b : bytes) total += b;
  return total;
}

// What passes in flight keep at most, along the order of one rank.
Bytes activation_peak(const ParallelJob& job, std::int64_t rank, ChunkCostCache& costs) {
  PipelineShape few = job.pipeline;
  const std::int64_t group = in_a_row(few);
  if (job.recipe.parallel.schedule != PipelineSchedule::gpipe)
    few.microbatches = std::min(few.microbatches, 2 * few.ranks + (few.chunks > 1 ? 2 * group : 0));
  if (few.chunks > 1) few.microbatches -= few.microbatches % group;
  if (few.in_rounds && job.pipeline.microbatches % few.ranks != 0) few = job.pipeline;
  Bytes now = 0, most = 0;
  for (const PipelinePass& pass : pipeline_order(job.recipe.parallel.schedule, few, rank)) {
    const FoldedChunk& chunk = costs.of(job, rank, pass.chunk).memory;
    most = std::max(most, now + sum(pass.backward ? chunk.backward.peak : chunk.forward.peak));
    now += (pass.backward ? -1 : 1) * sum(chunk.forward.after);
    most = std::max(most, now);
  }
  return most;
}

// A rank's first pass comes when the ranks before it have run theirs once, and behind its last one they run once more.
Duration time_bound(const ParallelJob& job, ChunkCostCache& costs) {
  Duration bound{}, before{};
  for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank) {
    Duration busy{};
    for (std::int64_t chunk = 0; chunk < job.pipeline.chunks; ++chunk) {
      const ChunkCosts& c = costs.of(job, rank, chunk);
      busy += job.pipeline.microbatches * (c.forward.device + c.backward.device);
    }
    bound = std::max(bound, before + busy);
    const ChunkCosts& first = costs.of(job, rank, 0);
    before += first.forward.device + first.backward.device;
  }
  return bound;
}

Estimate estimate(const LayoutCandidate& candidate, ChunkCostCache& costs) {
  const ParallelJob& job = candidate.job;
  Estimate e{&candidate, time_bound(job, costs), 0};
  for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank)
    e.peak = std::max(e.peak, activation_peak(job, rank, costs));
  e.peak += state_bytes(candidate);
  return e;
}

// Does the workload's file leave what is searched as it is by default?
bool is_plain(const Recipe& r) {
  const ModelParallel& p = r.parallel;
  return r.accumulation == 1 && r.checkpoint == ActivationCheckpoint::none && p.interleave == 1 &&
         !p.sequence_parallel && !p.distributed_optimizer && !p.overlap_grad_reduce && !p.overlap_param_gather;
}

Layout layout_of(const LayoutCandidate& candidate, const FoldedJob& outcome, const LayoutRequest& request) {
  const ParallelJob& job = candidate.job;
  Layout layout{job.recipe, outcome, 0, 0, "", is_plain(request.job.recipe)};
  if (candidate.replicas > 1) {
    layout.recipe.data_parallel = candidate.replicas;
    layout.policy = sharing_policy(candidate.replicas);
  }
  ModelParallel& p = layout.recipe.parallel;
  p.micro_batch = layout.recipe.batch;
  p.global_batch = request.global_batch;
  layout.recipe.accumulation = 1;
  const double step = to_seconds(outcome.step_time);
  const Precision precision = job.recipe.precision;
  const bool in_fp8 = precision == Precision::fp8 || precision == Precision::fp8_transformer_engine;
  const double peak =
      peak_flops(request.machine->gpu, in_fp8 ? DataType::fp8 : parameter_type(precision), OperatorClass::gemm);
  const FoldedStage &slowest = outcome.stages[outcome.slowest()], &fullest = outcome.stages[outcome.fullest()];
  if (peak > 0) layout.model_flops_share = outcome.flops / step / peak;
  layout.waiting_share = 1 - std::min(1.0, to_seconds(slowest.passes) / step);
  const double bubble = static_cast<double>(job.pipeline.ranks - 1) /
                        static_cast<double>(job.pipeline.chunks * job.pipeline.microbatches + job.pipeline.ranks - 1);
  layout.why = fmt::format("stage {} is the fullest with {}", outcome.fullest(), human_bytes(fullest.peak));
  if (job.pipeline.ranks > 1) layout.why += fmt::format(", the bubble takes {:.1f} % at least", 100 * bubble);
  if (job.recipe.checkpoint == ActivationCheckpoint::full) layout.why += ", layers are computed again";
  if (job.recipe.checkpoint == ActivationCheckpoint::selective) layout.why += ", attention is computed again";
  return layout;
}

// The layouts in order of their bounds, in batches, until no further one can be among the best.
class Race {
 public:
  Race(const LayoutRequest& request, ChunkCostCache& costs, LayoutSearch& result, Watch* watch)
      : request_(request), costs_(costs), result_(result), watch_(watch) {}

  void run(std::vector<Estimate> open) {
    std::stable_sort(open.begin(), open.end(), [](const Estimate& a, const Estimate& b) { return a.bound < b.bound; });
    for (std::size_t from = 0; from < open.size(); from += kAtOnce) {
      if (result_.best.size() == request_.best && open[from].bound > result_.best.back().outcome.step_time) {
        result_.slower += open.size() - from;
        break;
      }
      run_all({open.begin() + static_cast<std::ptrdiff_t>(from),
                open.begin() + static_cast<std::ptrdiff_t>(std::min(open.size(), from + kAtOnce))});
    }
  }

 private:
  void run_all(const std::vector<Estimate>& few) {
    std::vector<std::optional<SharingJob>> outcomes(few.size());
    std::vector<std::string> refusals(few.size());
    std::vector<std::function<void()>> tasks;
    for (std::size_t i = 0; i < few.size(); ++i)
      tasks.push_back([this, &few, &outcomes, &refusals, i] {
        try {
          const LayoutCandidate& one = *few[i].candidate;
          outcomes[i] = one.replicas > 1 ? sharing_job(one.job, one.replicas, costs_)
                                         : SharingJob{folded_job(one.job, costs_), std::nullopt};
        } catch (const UsageError& error) {  // as of too many ranks in unequal places (sim/machine/rank_machine.h)
          refusals[i] = error.what();
        }
      });
    run_tasks(tasks, request_.jobs, watch_);
    for (std::size_t i = 0; i < few.size(); ++i)
      outcomes[i] ? take(few[i], *outcomes[i]) : result_.refused.add(refusals[i]);
  }

  void take(const Estimate& e, const SharingJob& simulated) {
    ++result_.simulated;
    const FoldedJob* const outcome = &simulated.outcome;
    const Bytes peak = outcome->stages[outcome->fullest()].peak;
    if (peak > request_.budget) {
      ++result_.simulated_too_large;
      result_.least_missing = std::min(result_.least_missing, peak - request_.budget);
      return;
    }
    std::vector<Layout>& best = result_.best;
    const auto place = std::upper_bound(best.begin(), best.end(), outcome->step_time, [](Duration t, const Layout& l) {
      return t < l.outcome.step_time;
    });
    best.insert(place, layout_of(*e.candidate, *outcome, request_))->interval = simulated.interval;
    if (best.size() > request_.best) best.pop_back();
  }

  const LayoutRequest& request_;
  ChunkCostCache& costs_;
  LayoutSearch& result_;
  Watch* watch_;
};

// As Reason::sentence compares.
std::string without_numbers(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !result.ends_with('#')) result += digit ? '#' : c;
  }
  return result;
}

void add_intervals(const LayoutRequest& request, ChunkCostCache& costs, LayoutSearch& result, Watch* watch) {
  std::vector<std::function<void()>> tasks;
  for (Layout& layout : result.best)
    if (layout.policy.empty())
      tasks.push_back([&] {
        const ParallelJob job = parallel_job(request.job.model, layout.recipe);
        layout.interval = layout_interval(job, folded_path(job, costs, layout.outcome), layout.outcome);
      });
  run_tasks(tasks, request.jobs, watch);
}

}  // namespace

// All that was searched, as a workload's file may say something else.
std::string layout_settings(const Layout& layout, const std::vector<std::string>& said) {
  const Recipe& r = layout.recipe;
  const ModelParallel& p = r.parallel;
  const bool by_policy = !layout.policy.empty();
  constexpr const char* kAgain[] = {"none", "full", "selective"};
  constexpr const char* kGradients[] = {"automatic", "none", "fp32", "fp32_fused", "bf16_fused"};
  std::vector<std::string> words{
      fmt::format("tensor={}", p.tensor),
      fmt::format("pipeline={}", p.pipeline),
      fmt::format("interleave={}", p.interleave),
      fmt::format("data_parallel={}", by_policy ? 1 : r.data_parallel),
      fmt::format("micro_batch={}", p.micro_batch),
      fmt::format("global_batch={}", p.global_batch / (by_policy ? r.data_parallel : 1)),
      "accumulation=1",
      fmt::format("checkpoint={}", kAgain[static_cast<std::size_t>(r.checkpoint)]),
      fmt::format("sequence_parallel={}", p.sequence_parallel),
      fmt::format("distributed_optimizer={}", p.distributed_optimizer),
      fmt::format("overlap_grad_reduce={}", p.overlap_grad_reduce),
      fmt::format("overlap_param_gather={}", p.overlap_param_gather),
      fmt::format("main_gradients={}", kGradients[static_cast<std::size_t>(p.main_gradients)])};
  if (by_policy && p.tensor == 1) words.push_back("master_parameters=true");  // divided jobs have them by themselves
  if (p.embedding_in_split) words.push_back("embedding_in_split=true");
  if (p.loss_in_split) words.push_back("loss_in_split=true");
  // What is said stays; what is the default of a job of one GPU goes without saying, unless the workload's file differs.
  const bool plain = layout.of_plain_file;
  std::erase_if(words, [&](const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    if (std::find(said.begin(), said.end(), name) != said.end()) return true;
    if (name == "main_gradients" && p.tensor * p.pipeline > 1) return true;  // as by themselves
    return plain && (word == "interleave=1" || word == "accumulation=1" || word == "checkpoint=none" ||
                     word.ends_with("=false"));
  });
  return fmt::format("{}", fmt::join(words, ","));
}

void LayoutRefusals::add(const std::string& sentence) {
  const std::string without = without_numbers(sentence);
  const auto at =
      std::ranges::find_if(reasons, [&](const Reason& known) { return without_numbers(known.sentence) == without; });
  if (at == reasons.end())
    reasons.push_back({sentence, 1});
  else
    ++at->layouts;
}

std::size_t LayoutRefusals::layouts() const {
  std::size_t sum = 0;
  for (const Reason& reason : reasons) sum += reason.layouts;
  return sum;
}

const Layout* LayoutSearch::recommended() const {
  const auto fits = std::find_if(best.begin(), best.end(), [](const Layout& l) { return l.reserved && l.reserved->fits; });
  return fits == best.end() ? nullptr : &*fits;
}

LayoutSearch search_layouts(const LayoutRequest& request, Watch* watch) {
  if (request.job.recipe.launch_blocking)
    throw UsageError(
        "launch_blocking: layouts are simulated with each pass as one kernel, which waits for no other; expected the "
        "search without it (memwall run simulates a layout with it).");
  if (request.job.recipe.parallel.async_tensor_parallel)
    throw UsageError(
        "async_tensor_parallel: torchtitan refuses it without torch.compile, and layouts are searched without; "
        "expected "
        "the search without it (memwall run simulates a layout with it and --policy compile:modules=layers.*).");
  LayoutCandidates candidates = layout_candidates(request);
  LayoutSearch result;
  result.layouts = candidates.jobs.size() + candidates.refused.layouts();
  result.refused = candidates.refused;
  if (candidates.jobs.empty() && !candidates.refused.reasons.empty()) return result;
  if (candidates.jobs.empty()) throw UsageError(why_no_layout(request));
  std::vector<const LayoutCandidate*> small;
  result.least_missing = std::numeric_limits<Bytes>::max();
  const auto missing = [&](Bytes bytes) {
    ++result.too_large;
    result.least_missing = std::min(result.least_missing, bytes - request.budget);
  };
  for (const LayoutCandidate& one : candidates.jobs)
    state_bytes(one) > request.budget ? missing(state_bytes(one)) : small.push_back(&one);
  ChunkCostCache costs(*request.machine);
  std::vector<std::optional<Estimate>> estimates(small.size());
  std::vector<std::string> refusals(small.size());
  std::vector<std::function<void()>> tasks;
  for (std::size_t i = 0; i < small.size(); ++i)
    tasks.push_back([&, i] {
      try {
        estimates[i] = estimate(*small[i], costs);
      } catch (const UsageError& error) {
        refusals[i] = error.what();
      }
    });
  run_tasks(tasks, request.jobs, watch);
  std::vector<Estimate> open;
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    const std::optional<Estimate>& e = estimates[i];
    if (!e)
      result.refused.add(refusals[i]);
    else
      e->peak > request.budget ? missing(e->peak) : open.push_back(*e);
  }
  Race(request, costs, result, watch).run(std::move(open));
  if (result.too_large + result.simulated_too_large == 0) result.least_missing = 0;
  add_intervals(request, costs, result, watch);
  for (Layout& layout : result.best) {
    layout.reserved = reserved_memory(request, layout, costs);
    if (layout.reserved->fits) break;
  }
  return result;
}

}  // namespace memwall
