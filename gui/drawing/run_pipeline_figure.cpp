// The view "pipeline": the passes of each stage over time.
#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/run_figure_parts.h"
#include "sim/error.h"
#include "traces/figure/axis.h"
#include "traces/figure/pipeline_figure.h"
#include "traces/run/analysis/pipeline_passes.h"
#include "traces/run/analysis/pipeline_summary.h"

namespace memwall::gui {
namespace {

std::uint32_t chunk_of(const Rank& rank, std::uint32_t stage) {
  for (std::size_t c = 0; c < rank.chunks.size(); ++c)
    if (rank.chunks[c].stage == stage) return static_cast<std::uint32_t>(c);
  return 0;
}

PipelineWork work_of_pass(PassSpan::Work work) {
  return work == PassSpan::Work::forward    ? PipelineWork::forward
         : work == PassSpan::Work::backward ? PipelineWork::backward
                                            : PipelineWork::update;
}

std::string title_of_pass(const PassSpan& pass) {
  const std::string length = format_time(pass.end - pass.begin);
  if (pass.work == PassSpan::Work::update) return "optimizer step, " + length;
  return fmt::format("{} of micro-batch {}, stage {}: {}, from {}",
                     pass.work == PassSpan::Work::forward ? "forward" : "backward", pass.microbatch, pass.stage, length,
                     format_time(pass.begin - Time{}));
}

PipelineRow row_of_rank(const Rank& rank, const RankPasses& its) {
  PipelineRow row;
  row.name = fmt::format("rank {}", rank.number);
  if (!rank.stands_for.empty()) row.name += fmt::format(" (for {})", rank.stands_for.size() + 1);
  row.note = layers_text(rank.chunks);
  for (const PassSpan& pass : its.passes)
    row.passes.push_back({work_of_pass(pass.work), chunk_of(rank, pass.stage), pass.microbatch, pass.begin, pass.end,
                          title_of_pass(pass)});
  for (const MessageSpan& message : its.messages) row.messages.push_back({message.begin, message.end});
  const auto begins_before = [](const auto& a, const auto& b) { return a.begin < b.begin; };
  std::stable_sort(row.passes.begin(), row.passes.end(), begins_before);
  std::stable_sort(row.messages.begin(), row.messages.end(), begins_before);
  return row;
}

}  // namespace

Figure pipeline_figure(const Run& run, const std::optional<TimeRange>& range) {
  const Trace& trace = run.trace;
  const std::vector<RankPasses> passes = pipeline_passes(run);
  if (!has_stages(trace) ||
      std::all_of(passes.begin(), passes.end(), [](const RankPasses& rank) { return rank.passes.empty(); }))
    throw UsageError(
        fmt::format("the view pipeline shows passes of stages; the run of {} says nothing of any. Expected a run of a "
                    "generated step "
                    "with pipeline=N.",
                    trace.name));
  const TimeRange window = window_of(run, range);
  PipelineChart chart{.title = "Pipeline" + range_suffix(range),
                      .subtitle = headline_of(run),
                      .begin = window.begin,
                      .end = window.end,
                      .chunks = 1,
                      .rows = {}};
  for (std::size_t r = 0; r < trace.rank_table.size(); ++r) {
    const Rank& rank = trace.rank_table[r];
    chart.chunks = std::max(chart.chunks, static_cast<std::uint32_t>(rank.chunks.size()));
    chart.rows.push_back(row_of_rank(rank, passes[r]));
  }
  return draw_pipeline(chart);
}

}  // namespace memwall::gui
