#include "cli/print/batch_advice_tables.h"

#include <fmt/format.h>

#include "cli/print/answer.h"
#include "cli/print/given_size.h"
#include "cli/print/largest_batch_tables.h"
#include "cli/print/table_cells.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

std::string samples_text(std::int64_t samples) { return counted_text(static_cast<std::uint64_t>(samples), "sample"); }

std::string taken(const PlannedBatch& batch) {
  return fmt::format("a step takes {} ({:.4g} samples/s) with --policy {} --policy {}",
                     human_time(batch.probe.step_time), samples_per_second(batch.probe), batch.scenario.policies.back(),
                     batch.policy);
}

std::vector<std::string> batch_answer(const BatchAdvice& a) {
  const std::string each = a.largest.probe.ranks > 1 ? " per step and rank" : " per step";
  if (a.largest.probe.samples == 0)
    return {fmt::format("No plan was found for any batch within {}: not even {}{} fits.",
                        given_size(a.given_budget, a.budget), samples_text(a.found.refused), each)};
  std::vector<std::string> sentences{fmt::format("The largest batch that a plan was found for within {} is {}{}: {}.",
                                                 given_size(a.given_budget, a.budget),
                                                 samples_text(a.largest.probe.samples), each, taken(a.largest))};
  if (a.fastest.probe.samples == a.largest.probe.samples)
    sentences.push_back("Of the sizes tried it also has the most samples per second.");
  else
    sentences.push_back(fmt::format("Of the sizes tried {} have the most samples per second: {}.",
                                    samples_text(a.fastest.probe.samples), taken(a.fastest)));
  if (a.is_cut_short)
    sentences.push_back(
        fmt::format("{} do not fit; sizes in between were not all tried.", samples_text(a.found.refused)));
  return sentences;
}

Table batch_table(const BatchAdvice& a) {
  Table t{.name = "batches",
          .title = "The largest batch and the one with the most samples per second, with plans that were searched for",
          .columns = {"what", "samples", "step_time_s", "samples_per_second", "policy"},
          .headings = {"", "samples", "step time", "samples/s", "plan"},
          .rows = {}};
  const auto row = [&](const char* what, const PlannedBatch& batch) {
    const double rate = samples_per_second(batch.probe);
    t.rows.push_back({cell(what), count_cell(static_cast<std::uint64_t>(batch.probe.samples)),
                      time_cell(batch.probe.step_time), number_cell(fmt::format("{:.4g}", rate), plain_number(rate)),
                      cell(batch.policy)});
  };
  if (a.largest.probe.samples == 0) return t;
  row("largest", a.largest);
  row("most samples per second", a.fastest);
  return t;
}

}  // namespace

std::vector<Table> batch_advice_tables(const BatchAdvice& advice) {
  std::vector<Table> tables{answer_table("", batch_answer(advice))};
  if (advice.largest.probe.samples > 0) tables.push_back(batch_table(advice));
  for (Table& table : largest_batch_tables(advice.found, "")) {
    if (table.name == "verdict") continue;
    if (table.name == "probes")
      table.title = "The sizes that were tried, each with the first plan that keeps to the budget (search=0)";
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace memwall
