#include "cli/print/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "cli/print/table_cells.h"
#include "sim/words.h"

namespace memwall {
namespace {

std::string rate_of_flops(double per_second) {
  constexpr double kTera = 1e12, kPeta = 1e15;
  return per_second < kPeta ? fmt::format("{:.4g} TFLOP/s", per_second / kTera)
                            : fmt::format("{:.4g} PFLOP/s", per_second / kPeta);
}

std::string bytes_words(double bytes) {
  constexpr double kMost = 9e18;  // that human_bytes takes
  return human_bytes(std::llround(std::min(bytes, kMost)));
}

void add_row(Table& t, std::string what, std::string value, double raw, std::string includes) {
  t.rows.push_back(
      {cell(std::move(what)), number_cell(std::move(value), plain_number(raw)), cell(std::move(includes))});
}

void add_flops(Table& t, const JobTotals& job) {
  if (job.model_flops_per_second <= 0) return;
  const double all = job.model_flops_per_second + job.recomputed_flops_per_second;
  std::string includes = fmt::format("of the model: {} per GPU", rate_of_flops(job.model_flops_per_second / job.ranks));
  if (job.recomputed_flops_per_second > 0)
    includes +=
        fmt::format("; with what is computed again {}, {} per GPU", rate_of_flops(all), rate_of_flops(all / job.ranks));
  add_row(t, "computation", rate_of_flops(job.model_flops_per_second), job.model_flops_per_second, std::move(includes));
}

std::string kinds_of(const JobTier& tier) {
  std::vector<std::pair<double, std::size_t>> kinds;
  for (std::size_t k = 0; k < kStorageKinds; ++k)
    if (tier.by_kind[k] > 0) kinds.emplace_back(tier.by_kind[k], k);
  std::ranges::stable_sort(kinds, std::greater{}, &std::pair<double, std::size_t>::first);
  std::string text;
  for (const auto& [bytes, kind] : kinds)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(static_cast<StorageKind>(kind)), bytes_words(bytes));
  return text;
}

std::string links_text(const JobLink& link) {
  return fmt::format("over the step, {} in all, {}; {} while something crosses it", bytes_words(link.bytes),
                     counted_text(static_cast<std::uint64_t>(std::llround(link.count)), "such link"),
                     human_rate(link.busy_bytes_per_second));
}

}  // namespace

Table job_table(const RunSummary& s) {
  Table t{.name = "job",
          .title = "",
          .columns = {"what", "value", "includes"},
          .headings = {"", "", ""},
          .rows = {},
          .wrap = true};
  if (!s.job) return t;
  const bool has_drives =
      std::any_of(s.job->links.begin(), s.job->links.end(), [](const JobLink& link) { return link.leads_to_storage; });
  t.title = fmt::format("The whole job, {} (memory when most is in use{})", counted_text(s.job->ranks, "rank"),
                        has_drives ? "; rates of all drives together" : "");
  add_flops(t, *s.job);
  for (const JobTier& tier : s.job->tiers)
    add_row(t, tier.name, bytes_words(tier.peak_bytes), tier.peak_bytes,
            fmt::format("of {}: {}", bytes_words(tier.usable_bytes), kinds_of(tier)));
  for (const JobLink& link : s.job->links)
    if (link.leads_to_storage)
      add_row(t, link.name, human_rate(link.bytes_per_second), link.bytes_per_second, links_text(link));
  return t;
}

}  // namespace memwall
