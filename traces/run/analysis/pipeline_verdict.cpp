#include "traces/run/analysis/pipeline_verdict.h"

#include <algorithm>
#include <cctype>

#include "sim/human_text.h"
#include "sim/words.h"
#include "traces/run/analysis/verdict_advice.h"

namespace memwall {
namespace {

std::string slowest_words(const PipelineSummary& pipeline) {
  const StageSummary& slowest = pipeline.stages[*pipeline.slowest];
  std::string name = stage_name(slowest);
  name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
  const bool several = slowest.chunks.size() > 1;
  return name + " (rank " + std::to_string(slowest.rank) +
         (several ? ") are the slowest, they work " : ") is the slowest, it works ") + human_time(slowest.work()) +
         " of a step, " + human_time(pipeline.slowest_cost) + " (" +
         share_words(share_of_time(pipeline.slowest_cost, slowest.step_time)) +
         " of it) more than the stages' mean, and the others wait for that. ";
}

std::string straggler_words(const PipelineSummary& pipeline) {
  const StageSummary& slow = pipeline.stages[*pipeline.straggler];
  return "Rank " + std::to_string(slow.rank) + " is a straggler: it computes " + human_time(pipeline.straggles) +
         " longer per step than its equals (" + stage_name(slow) + "), which wait for it. ";
}

std::string bubble_words(const PipelineSummary& pipeline) {
  std::string text = "The pipeline's bubble takes " + share_words(pipeline.bubble_share) + " of the GPUs' time";
  if (pipeline.ideal_bubble_share > 0) {
    const std::size_t chunks = pipeline.stages.front().chunks.size();
    text += "; equal passes of " + counted_text(pipeline.microbatches, "micro-batch", "micro-batches") +
            (chunks > 1 ? " in " + std::to_string(chunks) + " chunks per rank" : "") +
            " and messages without time would make it " + share_words(pipeline.ideal_bubble_share) + " of theirs";
  }
  return text + ".";
}

}  // namespace

std::string stage_of_tier(const RunSummary& s, const TierSummary& tier) {
  if (!s.pipeline || !s.pipeline->has_several()) return "";
  for (const StageSummary& stage : s.pipeline->stages)
    if (stage.tier < s.tiers.size() && &s.tiers[stage.tier] == &tier)
      return "rank " + std::to_string(stage.rank) +
             (stage.chunks.empty() ? "" : " (" + stage_text(*s.pipeline, stage) + ")");
  return "";
}

std::string other_stages_missing(const RunSummary& s, const TierSummary& worst) {
  const auto& stages = s.pipeline->stages;
  const auto missing = std::count_if(stages.begin(), stages.end(), [&](const StageSummary& stage) {
    return s.tiers[stage.tier].missing > 0 && &s.tiers[stage.tier] != &worst;
  });
  if (missing == 0) return "";
  if (static_cast<std::size_t>(missing) + 1 == stages.size()) return "; all others lack memory, too";
  return "; of " + std::to_string(stages.size() - 1) + " others " + std::to_string(missing) +
         by_number(static_cast<std::uint64_t>(missing), " lacks memory, too", " lack memory, too");
}

std::vector<std::pair<double, std::string>> communication_waits(const RunSummary& s) {
  std::vector<std::pair<double, std::string>> waits;
  if (!s.pipeline) return waits;
  double all = 0;
  std::vector<double> exposed(s.pipeline->groups.size(), 0);
  for (const StageSummary& stage : s.pipeline->stages) {
    all += stage.ranks * to_seconds(stage.step_time);
    for (std::size_t g = 0; g < exposed.size(); ++g) exposed[g] += stage.ranks * to_seconds(stage.exposed[g]);
  }
  if (all <= 0) return waits;
  waits.emplace_back(s.pipeline->bubble_share, "for other stages");
  for (std::size_t g = 0; g < exposed.size(); ++g)
    waits.emplace_back(exposed[g] / all, "for communication (" + s.pipeline->groups[g] + ")");
  std::erase_if(waits, [](const auto& wait) { return wait.first < kWorthSaying; });
  std::stable_sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return waits;
}

std::string stages_sentence(const RunSummary& s) {
  if (!s.pipeline || !s.pipeline->has_several() || s.times.total().count() == 0) return "";
  const PipelineSummary& pipeline = *s.pipeline;
  const bool worth = pipeline.slowest &&
                     share_of_time(pipeline.slowest_cost, pipeline.stages[*pipeline.slowest].step_time) >= kWorthSaying;
  return (pipeline.straggler ? straggler_words(pipeline) : "") +
         (worth ? slowest_words(pipeline) : "No stage is slower than the mean by 1 % of the step. ") +
         bubble_words(pipeline);
}

}  // namespace memwall
