#include "cli/print/rank_tables.h"

#include <fmt/format.h>

#include "cli/print/table_cells.h"

namespace memwall {
namespace {

Cell rank_cell(std::uint32_t number) { return number_cell(std::to_string(number), std::to_string(number)); }
Cell rank_cell(const std::optional<std::uint32_t>& number) {
  return number ? rank_cell(*number) : number_cell("-", "");
}

std::string title_of(const RunSummary& s) {
  const std::string present = s.job_ranks > s.by_rank.size()
                                  ? fmt::format("{} of {} ranks of the job", s.by_rank.size(), s.job_ranks)
                                  : fmt::format("{} ranks", s.by_rank.size());
  return present + " (held up others: by how much later it came to collectives than the one before)";
}

}  // namespace

Table rank_table(const RunSummary& s) {
  Table t{.name = "ranks",
          .title = title_of(s),
          .columns = {"rank", "node", "step_time_s", "gpu_span_s", "peer_wait_s", "peer_wait_share", "waits_most_for",
                      "waits_most_for_s", "collectives", "last", "last_share", "held_up_s"},
          .headings = {"rank", "node", "step time", "GPU span", "waits for peers", "of its span", "most for rank",
                       "of it", "collectives", "came last", "share", "held up others"},
          .rows = {},
          .wrap = true};
  for (const RankSummary& r : s.by_rank)
    t.rows.push_back({rank_cell(r.number), rank_cell(r.node), time_cell(r.step_time), time_cell(r.gpu_span),
                      time_cell(r.peer_wait), share_cell(to_seconds(r.peer_wait), to_seconds(r.gpu_span)),
                      rank_cell(r.waits_for), time_cell(r.waits_for_time), count_cell(r.collectives),
                      count_cell(r.last), share_cell(static_cast<double>(r.last), static_cast<double>(r.collectives)),
                      time_cell(r.held_up)});
  return t;
}

}  // namespace memwall
