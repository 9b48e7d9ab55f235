#include "study/smallest_budget.h"

#include <algorithm>

namespace memwall {

SmallestBudget find_smallest_budget(Bytes fails, Bytes fits, Bytes resolution, Bytes unit, const FitsWithin& fit) {
  constexpr Bytes kParts = 4;
  SmallestBudget found{.bytes = fits, .tries = 0};
  while (fits - fails > std::max(resolution, unit)) {
    std::vector<Bytes> tried;
    for (Bytes part = 1; part < kParts; ++part) {
      const Bytes at = (fails + (fits - fails) / kParts * part) / unit * unit;
      if (at > fails && at < fits && (tried.empty() || at > tried.back())) tried.push_back(at);
    }
    if (tried.empty()) break;
    const std::vector<bool> answers = fit(tried);
    found.tries += tried.size();
    const auto first = std::find(answers.begin(), answers.end(), true);
    const auto index = static_cast<std::size_t>(first - answers.begin());
    if (first != answers.end()) fits = tried[index];
    if (index > 0) fails = tried[index - 1];
  }
  found.bytes = fits;
  return found;
}

}  // namespace memwall
