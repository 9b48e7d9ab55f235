#include "cli/print/drive_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/print/table_cells.h"
#include "sim/words.h"

namespace memwall {
namespace {

Cell written_cell(double bytes) {
  constexpr double kMost = 9e18;  // that human_bytes takes
  return number_cell(human_bytes(std::llround(std::min(bytes, kMost))), plain_number(bytes));
}

Cell life_cell(const DriveWrites& writes) {
  return writes.life_days ? number_cell(span_words(*writes.life_days * 86400), plain_number(*writes.life_days))
                          : number_cell("not known", "");
}

Cell full_after_cell(const DriveWrites& writes) {
  return writes.full_after_steps
             ? number_cell(counted_text(*writes.full_after_steps, "step"), std::to_string(*writes.full_after_steps))
             : number_cell("-", "");
}

}  // namespace

Table drive_table(const RunSummary& s) {
  Table t{.name = "drives",
          .title =
              "Writes to drives, of all GPUs that share them, day and night at this step time (life: not known "
              "where the machine file states no endurance; full: from when on writes fall off, - = never)",
          .columns = {"tier", "written_bytes", "written_bytes_per_day", "drive_writes_per_day", "drive_life_days",
                      "cache_full_after_steps", "steady_step_time_s"},
          .headings = {"tier", "per step", "per day", "drive writes/day", "life", "cache full after", "a step then"},
          .rows = {},
          .wrap = true};
  for (const TierSummary& tier : s.tiers) {
    if (!tier.writes) continue;
    const DriveWrites& writes = *tier.writes;
    char per_day[32];
    std::snprintf(per_day, sizeof per_day, "%.3g", writes.drive_writes_per_day);
    t.rows.push_back(
        {cell(tier.name), written_cell(writes.bytes), written_cell(writes.per_day),
         number_cell(per_day, plain_number(writes.drive_writes_per_day)), life_cell(writes), full_after_cell(writes),
         writes.falls_off && s.steady_step_time > Duration{} ? time_cell(s.steady_step_time) : number_cell("-", "")});
  }
  return t;
}

}  // namespace memwall
