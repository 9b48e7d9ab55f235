#include "gui/drawing/run_tiers.h"

#include "gui/drawing/run_figures.h"

namespace memwall::gui {

namespace {

Bytes rounding_at_peak(const TierResult& tier) {
  Bytes requested = 0;
  for (const Bytes bytes : tier.peak_by_kind) requested += bytes;
  return tier.peak_allocated - requested;
}

}  // namespace

TiersChart tiers_chart(const Run& run) {
  TiersChart chart{.title = "Memory hierarchy",
                   .subtitle = headline_of(run) + "; peaks by the allocator's (host) clock",
                   .tiers = {},
                   .links = {}};
  for (std::size_t t = 0; t < run.machine.tiers.size(); ++t) {
    const Tier& tier = run.machine.tiers[t];
    TierRow row{tier.name, tier.capacity, tier.capacity - tier.holds(), {}, run.trace->knowledge.allocations};
    if (!row.recorded) {
      chart.tiers.push_back(std::move(row));
      continue;
    }
    for (int k = 0; k < kStorageKinds && t < run.result.tiers.size(); ++k)
      if (const Bytes bytes = run.result.tiers[t].peak_by_kind[k]; bytes > 0)
        row.parts.push_back({std::string(to_string(static_cast<StorageKind>(k))), bytes});
    // As in tables: the peak in blocks.
    if (const Bytes rounding = t < run.result.tiers.size() ? rounding_at_peak(run.result.tiers[t]) : 0; rounding > 0)
      row.parts.push_back({"rounding", rounding});
    chart.tiers.push_back(std::move(row));
  }
  const double seconds = to_seconds(run.result.end);
  for (std::size_t l = 0; l < run.machine.links.size() && l < run.result.links.size(); ++l) {
    const Link& link = run.machine.links[l];
    const Bytes bytes = run.result.links[l].bytes;
    const double could = link.bandwidth * seconds;
    if (bytes > 0)
      chart.links.push_back({link.name, bytes, could > 0 ? static_cast<double>(bytes) / could : 0, link.bandwidth});
  }
  return chart;
}

}  // namespace memwall::gui
