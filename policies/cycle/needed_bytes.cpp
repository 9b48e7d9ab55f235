#include "policies/cycle/needed_bytes.h"

#include <numeric>

namespace memwall {
namespace {

void add_needed(const CycleStorage& s, std::vector<Bytes>& change) {
  const auto lives = [&](std::uint32_t first, std::uint32_t last) {
    change[first] += s.moved;
    change[last + 1] -= s.moved;
  };
  if (s.fixed && s.first != s.last)
    for (const CycleTouch& touch : s.touches) lives(touch.slot, touch.slot);
  else if (s.from_before ? !(s.across && s.touches.empty()) : s.fixed)
    lives(s.first, s.last);
  else if (!s.touches.empty())
    lives(s.touches.front().slot, s.last);
}

}  // namespace

std::vector<Bytes> needed_bytes(const StepCycle& cycle) {
  std::vector<Bytes> change(cycle.size() + 1, 0);
  for (const CycleStorage& s : cycle.storages()) add_needed(s, change);
  std::partial_sum(change.begin(), change.end(), change.begin());
  change.pop_back();
  return change;
}

}  // namespace memwall
