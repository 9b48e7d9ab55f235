#include "cli/print/device_clock_table.h"

#include "cli/print/table_cells.h"

namespace memwall {

Table device_clock_table(const RunSummary& s) {
  Table t{.name = "device_clock",
          .title =
              "Peaks on two clocks, as requested (allocator: from the host's call that allocates to the one that "
              "frees; device: from the first write to the end of the last use, when these run)",
          .columns = {"tier", "allocator_bytes", "allocator_time_s", "device_bytes", "device_time_s", "unnamed_bytes"},
          .headings = {"tier", "by the allocator's (host) clock", "at", "by the device's clock", "at",
                       "of storages that no op names"},
          .rows = {},
          .wrap = true};
  for (const TierSummary& tier : s.tiers)
    if (tier.device_peak && (tier.peak.requested > 0 || tier.device_peak->bytes > 0))
      t.rows.push_back({cell(tier.name), bytes_cell(tier.peak.requested), time_cell(tier.peak.time),
                        bytes_cell(tier.device_peak->bytes), time_cell(tier.device_peak->time),
                        bytes_cell(tier.device_peak->unnamed)});
  return t;
}

}  // namespace memwall
