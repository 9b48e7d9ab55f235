#include "study/steady_writes.h"

#include <algorithm>
#include <cmath>

#include "traces/run/analysis/drive_writes.h"

namespace memwall {
namespace {

constexpr int kMostTurns = 8;

// What a step finds in each write cache after many steps like the run, as a first guess: all that it can hold where it
// grows from step to step, else what the run has left.
std::vector<double> found_later(const Run& run) {
  std::vector<double> cached(run.machine.links.size(), 0);
  for (std::size_t l = 0; l < cached.size(); ++l) {
    const Link& link = run.machine.links[l];
    if (!link.falls_off() || run.result.links[l].bytes == 0) continue;
    cached[l] = cache_growth(run, l) > 0 ? static_cast<double>(link.write_cache) : run.result.links[l].cached;
  }
  return cached;
}

std::vector<double> left_by(const Run& run) {
  std::vector<double> cached;
  for (const LinkResult& link : run.result.links) cached.push_back(link.cached);
  return cached;
}

bool same_bytes(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) <= 1 + 1e-9 * std::max(x, y); });
}

bool writes_to_falling_drives(const Run& run) {
  for (std::size_t l = 0; l < run.machine.links.size(); ++l)
    if (run.machine.links[l].falls_off() && run.result.links[l].bytes > 0) return true;
  return false;
}

}  // namespace

Duration steady_step(const Run& run, const std::function<Run(std::vector<double> cached)>& run_again) {
  if (!writes_to_falling_drives(run)) return {};
  std::vector<double> found = found_later(run);
  Duration step = mean_step(run);
  if (std::all_of(found.begin(), found.end(), [](double bytes) { return bytes == 0; })) return step;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const Run next = run_again(found);
    step = mean_step(next);
    std::vector<double> left = left_by(next);
    if (same_bytes(found, left)) break;
    found = std::move(left);
  }
  return step;
}

}  // namespace memwall
