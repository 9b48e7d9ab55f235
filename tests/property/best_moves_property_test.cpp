// How near do the bound and the search of policies/cycle come to the true optimum? On small random cycles, whose fastest
// plan of whole-storage moves is found by trying all (tests/support/best_moves.h) and carried out by a checker written
// apart (tests/support/turn_replay.h).
//
// How instances are drawn: 5 to 10 slots with log-uniform times of a factor of 10; storages until 3 to 6 gaps can be moved at a
// cost: half live within the turn (written first, then read), a quarter across turns and updated, a quarter across turns
// and only read; each touched in 2 to 4 random slots. Sizes are log-uniform over a factor of 30, the budget uniform
// between the least that any plan keeps to and the peak, the links' rate (one for both directions in half of all cases,
// two independent ones in the others) such that all gaps' bytes take between a fifth of a turn and 3 turns. Kept are those
// that some plan fits and whose best plan waits at most half a turn. Instances that trying takes more than kMostReplays
// replays are left out, whatever they look like, and counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "policies/cycle/move_search.h"
#include "tests/support/best_moves.h"
#include "tests/support/random_cycle.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace {

constexpr long kMostReplays = 2'000'000;

struct SmallInstance {
  StepCycle cycle;
  CycleLinks links;
  Bytes budget;
};

CycleStorage small_storage(RandomNumbers& r, std::uint32_t slots) {
  CycleStorage s;
  s.held = s.moved = static_cast<Bytes>(r.log_uniform(1e8, 3e9));
  const std::size_t kind = r.below(4);
  s.across = s.from_before = s.to_next = kind >= 2;
  std::vector<std::uint32_t> touched(slots);
  std::iota(touched.begin(), touched.end(), 0u);
  std::shuffle(touched.begin(), touched.end(), r.engine);
  touched.resize(r.between(2, 4));
  std::sort(touched.begin(), touched.end());
  for (const std::uint32_t slot : touched) s.touches.push_back({slot, true, kind == 2 && r.one_in(2)});
  if (kind < 2) s.touches.front() = {touched.front(), false, true};
  if (kind == 2) s.touches.back().writes = true;
  s.first = s.across ? 0 : touched.front();
  s.last = s.across ? slots - 1 : touched.back();
  return s;
}

SmallInstance small_instance(RandomNumbers& r) {
  CycleProgram program;
  const auto slots = static_cast<std::uint32_t>(r.between(5, 10));
  for (std::uint32_t k = 0; k < slots; ++k) {
    const Duration work = from_seconds(r.log_uniform(0.02, 0.2));
    program.slots.push_back({work, work});
  }
  for (std::size_t gaps = r.between(3, 6);;) {
    program.storages.push_back(small_storage(r, slots));
    const std::size_t found = StepCycle(program).gaps().size();
    if (found > gaps) program.storages.pop_back();
    if (found >= gaps) break;
  }
  StepCycle cycle(program);
  double bytes = 0;
  for (const CycleGap& gap : cycle.gaps()) bytes += static_cast<double>(cycle.storages()[gap.storage].moved);
  const auto rate = [&] { return bytes / (to_seconds(cycle.turn()) * r.log_uniform(0.2, 3)); };
  CyclePath path;
  path.out_rate = rate();
  path.in_rate = r.one_in(2) ? path.out_rate : rate();
  path.room = Bytes{1} << 60;
  const std::vector<Bytes> least = cycle.least();
  const Bytes lowest = *std::max_element(least.begin(), least.end());
  const Bytes budget = lowest + static_cast<Bytes>(r.part() * static_cast<double>(cycle.peak() - lowest));
  return {std::move(cycle), {{path}, path.out_rate, path.in_rate}, budget};
}

// Over instances whose best plan waits more than 1 % of the turn, and over all.
struct Nearness {
  std::vector<double> of_bound;  // (bound - ideal) / (best - ideal)
  int instances = 0, within = 0, unfit = 0, reached_bound = 0, given_up = 0;
  double worst = 1;
  std::uint64_t worst_seed = 0;
  std::vector<std::pair<double, std::uint64_t>> farther;
};

void compare(std::uint64_t seed, Nearness& all) {
  RandomNumbers r(seed);
  const SmallInstance i = small_instance(r);
  const auto best = best_moves(i.cycle, i.links, i.budget, kMostReplays);
  if (!best) return;
  if (best->given_up) {
    ++all.given_up;
    return;
  }
  const MovesBound bound = moves_bound(i.cycle, i.links, i.budget);
  if (best->seconds > 1.5 * bound.ideal_seconds || bound.excess <= 0) return;
  SCOPED_TRACE(seed);
  ++all.instances;
  const ReplayedTurns checked = replay_turns(turn_of(i.cycle, best->plan), i.links);
  EXPECT_EQ(checked.faults, std::vector<std::string>{});
  EXPECT_LE(checked.highest, i.budget);
  EXPECT_NEAR(checked.seconds, best->seconds, 1e-6 * best->seconds);
  EXPECT_TRUE(is_sound(i.cycle, best->plan));
  EXPECT_LE(bound.seconds, best->seconds * (1 + 1e-9));
  if (best->seconds > 1.01 * bound.ideal_seconds)
    all.of_bound.push_back((bound.seconds - bound.ideal_seconds) / (best->seconds - bound.ideal_seconds));

  const FoundMoves found = find_moves(i.cycle, i.links, i.budget, bound);
  double slower = 10;
  if (found.fits) {
    const ReplayedTurns replayed = replay_turns(turn_of(i.cycle, found.plan), i.links);
    EXPECT_EQ(replayed.faults, std::vector<std::string>{});
    EXPECT_LE(replayed.highest, i.budget);
    EXPECT_GE(replayed.seconds, best->seconds * (1 - 1e-6)) << "the exhaustive search missed a plan";
    slower = replayed.seconds / best->seconds;
  } else {
    ++all.unfit;
  }
  all.within += slower <= 1.02 ? 1 : 0;
  if (slower > 1.02) all.farther.emplace_back(slower, seed);
  if (slower > all.worst) all.worst = slower, all.worst_seed = seed;
}

TEST(BestMovesProperty, TheSearchAndTheBoundComeNearTheOptimum) {
  Nearness all;
  const char* named = std::getenv("MEMWALL_BEST_MOVES");
  const int instances = named != nullptr ? std::atoi(named) : 200;
  const auto begun = std::chrono::steady_clock::now();
  for (std::uint64_t seed = 0; all.instances < instances; ++seed) compare(seed, all);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::sort(all.of_bound.begin(), all.of_bound.end());
  const double median = all.of_bound[all.of_bound.size() / 2];
  std::printf("%d instances in %.0f s (%d left out): %zu wait; the bound explains in the median %.3f of the wait (10th "
              "percentile %.3f, mean %.3f)\n",
              all.instances, took.count(), all.given_up, all.of_bound.size(), median, all.of_bound[all.of_bound.size() / 10],
              std::accumulate(all.of_bound.begin(), all.of_bound.end(), 0.0) / static_cast<double>(all.of_bound.size()));
  std::printf("found plans within 2 %% of the optimum: %d of %d; none found: %d; worst %.4f (seed %llu)\n", all.within,
              all.instances, all.unfit, all.worst, static_cast<unsigned long long>(all.worst_seed));
  std::sort(all.farther.rbegin(), all.farther.rend());
  for (const auto& [slower, seed] : all.farther) if (slower < 9) std::printf("  %.4f seed %llu\n", slower, static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace memwall
