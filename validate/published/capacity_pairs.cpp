#include "validate/published/capacity_pairs.h"

#include <algorithm>

namespace memwall {
namespace {

void add(CapacityPairs& pairs, const PublishedResult& peak) {
  const double larger = peak.measured / (1 - kCapacityMargin), smaller = peak.measured / (1 + kCapacityMargin);
  ++pairs.rows;
  pairs.fit_right += peak.predicted <= larger ? 1 : 0;
  pairs.no_fit_right += peak.predicted > smaller ? 1 : 0;
}

}  // namespace

std::vector<CapacityPairs> capacity_pairs(const std::vector<PublishedResult>& results) {
  std::vector<CapacityPairs> all;
  CapacityPairs together;
  for (const PublishedResult& r : results) {
    if (!is_peak(r.metric) || !r.why_not.empty()) continue;
    auto found = std::ranges::find(all, r.table, &CapacityPairs::table);
    if (found == all.end()) {
      found = all.emplace(all.end());
      found->table = r.table;
    }
    add(*found, r);
    add(together, r);
  }
  if (together.rows > 0) all.push_back(together);
  return all;
}

}  // namespace memwall
