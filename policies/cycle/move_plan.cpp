#include "policies/cycle/move_plan.h"

#include <algorithm>
#include <limits>

namespace memwall {

bool is_sound(const StepCycle& cycle, const MovePlan& plan) {
  // By version: slots between its write and its copy.
  std::vector<std::int64_t> copied(cycle.versions(), std::numeric_limits<std::int64_t>::max());
  std::vector<bool> moved(cycle.gaps().size(), false);
  for (const PlannedMove& move : plan.moves) {
    const CycleGap& gap = cycle.gaps()[move.gap];
    if (moved[move.gap] || move.drop < gap.begin || move.drop >= move.fetch || move.fetch > gap.end) return false;
    moved[move.gap] = true;
    if (move.copy == PlannedMove::kNoCopy) continue;
    if (move.copy <= gap.written || copied[gap.version] != std::numeric_limits<std::int64_t>::max()) return false;
    copied[gap.version] = move.copy - gap.written;
  }
  return std::all_of(plan.moves.begin(), plan.moves.end(), [&](const PlannedMove& move) {
    const CycleGap& gap = cycle.gaps()[move.gap];
    return !gap.needs_copy || copied[gap.version] <= move.drop - gap.written;
  });
}

std::vector<Bytes> live_under(const StepCycle& cycle, const MovePlan& plan) {
  const auto turn = static_cast<std::int32_t>(cycle.size());
  std::vector<Bytes> change(cycle.size() + 1, 0);
  const auto away = [&](std::int32_t begin, std::int32_t end, Bytes bytes) {
    change[static_cast<std::size_t>(begin)] -= bytes;
    change[static_cast<std::size_t>(end)] += bytes;
  };
  for (const PlannedMove& move : plan.moves) {
    const Bytes held = cycle.storages()[cycle.gaps()[move.gap].storage].held;
    for (const std::int32_t shift : {0, turn}) {
      const std::int32_t begin = std::max(0, move.drop - shift), end = std::min(turn, move.fetch - shift);
      if (begin < end) away(begin, end, held);
    }
  }
  std::vector<Bytes> live = cycle.live();
  Bytes sum = 0;
  for (std::size_t k = 0; k < live.size(); ++k) live[k] += sum += change[k];
  return live;
}

}  // namespace memwall
