#include "cli/print/layout_tables.h"

#include <fmt/format.h>

#include "cli/print/answer.h"
#include "cli/print/table_cells.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

std::string counted(std::size_t n, const char* one) { return counted_text(n, one); }

std::string with_settings(const std::string& workload, const std::string& settings) {
  return fmt::format("{}{}{}", workload, workload.find(':') == std::string::npos ? ":" : ",", settings);
}

std::vector<std::string> layout_answer(const LayoutSearch& s, const LayoutRequest& request, const std::string& workload) {
  if (s.best.empty())
    return {fmt::format("No layout of {} over {} fits: {} were looked at, and {} are missing at least in each GPU.",
                        workload, counted(request.gpus, "GPU"), counted(s.layouts, "layout"),
                        human_bytes(s.least_missing))};
  const Layout& best = s.best.front();
  const double step = to_seconds(best.outcome.step_time);
  const std::int64_t sequence =
      request.job.recipe.sequence ? request.job.recipe.sequence : request.job.model.longest;
  const double tokens = static_cast<double>(request.global_batch * sequence) / step;
  std::vector<std::string> sentences{
      fmt::format("The shortest step takes {} ({:.4g} tokens/s, MFU {}): {}.", human_time(best.outcome.step_time),
                  tokens, percent_text(best.model_flops_share), with_settings(workload, layout_settings(best, request.fixed))),
      fmt::format("{} divide {} and a batch of {}: {} do not fit in {} of a GPU, {} cannot be among the best {} even "
                  "with no wait between passes, {} were simulated{}.",
                  counted(s.layouts, "layout"), counted(request.gpus, "GPU"), request.global_batch, s.too_large,
                  human_bytes(request.budget), s.slower, request.best, s.simulated,
                  s.refused > 0 ? fmt::format(", {} are refused by the framework or not implemented", s.refused) : "")};
  return sentences;
}

Cell number(std::int64_t n) { return count_cell(static_cast<std::uint64_t>(n)); }

Table best_table(const LayoutSearch& s) {
  Table t{.name = "layouts",
          .title = "The best layouts (micro: sequences of a micro-batch; waiting: the slowest stage runs no pass; peak: "
                   "of the fullest stage, bytes without the allocator's rounding and cache)",
          .columns = {"number", "tensor", "pipeline", "interleave", "data_parallel", "micro_batch", "microbatches",
                      "checkpoint", "step_time_s", "mfu", "waiting_share", "peak_bytes", "fullest_stage"},
          .headings = {"", "TP", "PP", "VP", "DP", "micro", "micro-batches", "checkpoint", "step time", "MFU",
                       "waiting", "peak", "stage"},
          .rows = {}};
  const char* const again[] = {"none", "full", "selective"};
  for (const Layout& l : s.best) {
    const ModelParallel& p = l.recipe.parallel;
    const FoldedStage& fullest = l.outcome.stages[l.outcome.fullest()];
    t.rows.push_back({count_cell(t.rows.size() + 1), number(p.tensor), number(p.pipeline), number(p.interleave),
                      number(l.recipe.data_parallel), number(p.micro_batch), number(l.outcome.microbatches),
                      cell(again[static_cast<std::size_t>(l.recipe.checkpoint)]), time_cell(l.outcome.step_time),
                      share_cell(l.model_flops_share), share_cell(l.waiting_share), bytes_cell(fullest.peak),
                      count_cell(l.outcome.fullest())});
  }
  return t;
}

Table reason_table(const LayoutSearch& s, const LayoutRequest& request) {
  Table t{.name = "reasons",
          .title = "Why, and the settings of each, as they go behind the workload's name",
          .columns = {"reason"},
          .headings = {},
          .rows = {},
          .prose = true};
  for (const Layout& l : s.best)
    t.rows.push_back({cell(fmt::format("{}: {}. {}", t.rows.size() + 1, l.why, layout_settings(l, request.fixed)))});
  return t;
}

}  // namespace

std::vector<Table> layout_tables(const LayoutSearch& search, const LayoutRequest& request, const std::string& workload) {
  std::vector<Table> tables{answer_table("", layout_answer(search, request, workload))};
  if (search.best.empty()) return tables;
  tables.push_back(best_table(search));
  tables.push_back(reason_table(search, request));
  return tables;
}

}  // namespace memwall
