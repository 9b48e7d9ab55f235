#include "validate/published/steady_passes.h"

#include <cassert>
#include <cmath>
#include <vector>

namespace memwall {

StepGrowth step_growth(std::int64_t passes, std::int64_t first, std::int64_t apart,
                       const std::function<double(std::int64_t)>& seconds) {
  assert(first >= 1 && apart >= 1 && passes >= 1);
  std::vector<double> seen;
  for (std::int64_t few = first; few < passes; few += apart) {
    seen.push_back(seconds(few));
    if (seen.size() < 3) continue;
    const double now = seen.back() - seen[seen.size() - 2], before = seen[seen.size() - 2] - seen[seen.size() - 3];
    if (std::abs(now - before) <= kSteadyShare * std::abs(now))
      return {few, seen.back(), now / static_cast<double>(apart)};
  }
  return {passes, seconds(passes), 0};
}

}  // namespace memwall
