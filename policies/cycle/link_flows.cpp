#include "policies/cycle/link_flows.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "sim/policy/memory_plan.h"

namespace memwall {

Bytes most_in(const StepCycle& cycle, const CyclePath& path) {
  if (!path.pinned) return path.room;
  std::vector<std::pair<double, Bytes>> sizes;  // taken per byte, bytes
  for (const CycleStorage& s : cycle.storages())
    if (s.moved > 0)
      sizes.emplace_back(static_cast<double>(path.held(s.moved)) / static_cast<double>(s.moved), s.moved);
  std::sort(sizes.begin(), sizes.end());
  double room = static_cast<double>(path.room), bytes = 0;
  for (const auto& [rounding, moved] : sizes) {
    const double taken = std::min(room, rounding * static_cast<double>(moved));
    bytes += taken / rounding;
    room -= taken;
  }
  return static_cast<Bytes>(bytes) + (room > 0 ? static_cast<Bytes>(room) : 0);
}

CycleLinks behind_first(const CycleLinks& links) {
  CycleLinks others;
  others.paths.assign(links.paths.begin() + 1, links.paths.end());
  for (const CyclePath& path : others.paths) {
    others.total_out += path.out_rate, others.total_in += path.in_rate;
    others.staged_out += path.is_staged() ? path.staged_out_rate : path.out_rate;
    others.staged_in += path.is_staged() ? path.staged_in_rate : path.in_rate;
  }
  others.total_out = std::min(others.total_out, links.total_out);
  others.total_in = std::min(others.total_in, links.total_in);
  if (links.staged_out > 0)
    others.staged_out = std::min(others.staged_out, links.staged_out),
    others.staged_in = std::min(others.staged_in, links.staged_in);
  return others;
}

std::vector<LinkFlow> flows_of(const StepCycle& cycle, const CycleLinks& links) {
  if (std::ranges::none_of(links.paths, &CyclePath::is_staged)) return {{links, 0}};
  std::vector<Bytes> largest;
  for (const CycleStorage& s : cycle.storages()) largest.push_back(s.moved);
  const std::size_t buffers = std::min<std::size_t>(TransferStyle{}.staging, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(buffers), largest.end(),
                    std::greater<>());
  CycleLinks beside = links;
  for (CyclePath& path : beside.paths)
    if (path.is_staged()) path.out_rate = path.staged_out_rate, path.in_rate = path.staged_in_rate;
  beside.total_out = links.staged_out, beside.total_in = links.staged_in;
  return {{links, std::accumulate(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(buffers), Bytes{0})},
          {beside, 0}};
}

}  // namespace memwall
