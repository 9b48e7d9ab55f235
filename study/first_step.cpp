#include "study/first_step.h"

#include <algorithm>
#include <set>

#include "sim/memory/allocator_settings.h"

namespace memwall {
namespace {

bool page_locks_in_a_step(const Trace& trace) {
  return std::any_of(trace.storages.begin(), trace.storages.end(),
                     [](const Storage& s) { return s.pinned && !s.preexisting; });
}

}  // namespace

Duration first_step(const Run& run, const std::function<Run()>& run_again) {
  if (!run.result.fits || !page_locks_in_a_step(run.trace)) return {};
  if (!parse_allocator_settings(run.allocator_settings).pinned_pool) return {};
  Duration longest{};
  std::set<std::uint16_t> seen;
  for (const StepWindow& window : step_windows(run_again()))
    if (seen.insert(window.rank).second) longest = std::max(longest, window.end - window.begin);
  return longest;
}

}  // namespace memwall
