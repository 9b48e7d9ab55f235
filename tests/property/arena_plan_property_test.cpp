// Do two storages that live at the same time ever share a byte of a planned arena?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "sim/memory/arena_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Goes through time with the offsets that are taken, so that a case of thousands costs little.
void require_sound(const std::vector<Lifetime>& lifetimes, const ArenaPlan& plan, Bytes alignment) {
  struct Change {
    std::uint64_t at;
    bool begins;
    std::size_t index;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    RC_ASSERT(plan.offsets[i] >= 0);
    RC_ASSERT(plan.offsets[i] % alignment == 0);
    if (lifetimes[i].begin == lifetimes[i].end || lifetimes[i].bytes == 0) continue;
    RC_ASSERT(plan.offsets[i] + lifetimes[i].bytes <= plan.size);
    changes.push_back({lifetimes[i].begin, true, i});
    changes.push_back({lifetimes[i].end, false, i});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.begins < b.begins; });
  std::map<Bytes, Bytes> taken;  // offset -> end
  Bytes live = 0, most = 0;
  for (const Change& change : changes) {
    const Bytes begin = plan.offsets[change.index], end = begin + lifetimes[change.index].bytes;
    const Bytes rounded = (lifetimes[change.index].bytes + alignment - 1) / alignment * alignment;
    live += change.begins ? rounded : -rounded;
    most = std::max(most, live);
    if (!change.begins) {
      taken.erase(begin);
      continue;
    }
    const auto next = taken.upper_bound(begin);
    // As a value of its own: RC_ASSERT looks at both sides of `||`.
    const bool apart =
        (next == taken.end() || end <= next->first) && (next == taken.begin() || std::prev(next)->second <= begin);
    RC_ASSERT(apart);
    taken.emplace(begin, end);
  }
  RC_ASSERT(plan.lower_bound == most);
  RC_ASSERT(plan.size >= plan.lower_bound);
}

void check(std::size_t most, std::uint64_t instants, std::uint64_t longest) {
  const auto count = *rc::gen::inRange<std::size_t>(0, most);
  const Bytes alignment = Bytes{1} << *rc::gen::inRange(0, 10);
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, instants);
    const auto length = *rc::gen::inRange<std::uint64_t>(0, longest);
    const auto bytes = *rc::gen::oneOf(rc::gen::inRange<Bytes>(0, 2000), rc::gen::inRange<Bytes>(0, Bytes{1} << 40));
    lifetimes.push_back({begin, begin + length, bytes});
  }
  const ArenaPlan plan = plan_arena(lifetimes, alignment);
  RC_ASSERT(plan.offsets.size() == count);
  require_sound(lifetimes, plan, alignment);
  const ArenaPlan again = plan_arena(lifetimes, alignment);
  RC_ASSERT(again.offsets == plan.offsets);
  RC_ASSERT(again.size == plan.size);
}

RC_GTEST_PROP(ArenaPlan, FewLives, ()) { check(12, 10, 8); }
RC_GTEST_PROP(ArenaPlan, ManyThatMeetOften, ()) { check(150, 1000, 1000); }
RC_GTEST_PROP(ArenaPlan, ManyThatMeetSeldom, ()) { check(150, 1000, 20); }

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
