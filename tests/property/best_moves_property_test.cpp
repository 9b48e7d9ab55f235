// How near do the bounds and the search of policies/cycle come to the true optimum? On small random cycles, whose
// fastest plan of whole-storage moves is found by trying all (tests/support/best_moves.h) and carried out by a checker
// written apart (tests/support/turn_replay.h).
//
// How instances are drawn: 5 to 10 slots with log-uniform times of a factor of 10; storages until there are 3 to 6
// gaps: half live within the turn (written first, then read), a quarter across turns and updated, a quarter across
// turns and only read; each touched in 2 to 4 random slots. Sizes are log-uniform over a factor of 30. The links' rate
// (one for both directions in half of all cases, two independent ones in the others) is log-uniform, such that all
// gaps' bytes take between a fifth of a turn and three turns. The budget is uniform between the least that any plan
// keeps to and the peak; or, in the second half of the tests, what is left where a random choice of whole storages is
// away from each slot, so that no part of a storage more than needed has to go. Kept are those over their budget whose
// best plan waits at most half a turn. Those that trying all takes more than kMostReplays replays for are left out,
// whatever they look like, and counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "policies/cycle/whole_moves.h"
#include "tests/support/best_moves.h"
#include "tests/support/ended_search.h"
#include "tests/support/random_cycle.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

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

// What a random choice of gaps that are away leaves at most.
Bytes budget_of_wholes(RandomNumbers& r, const StepCycle& cycle) {
  const MovePlan plan = random_sound_plan(r, cycle, 1);
  const std::vector<Bytes> live = live_under(cycle, plan);
  return *std::max_element(live.begin(), live.end());
}

SmallInstance small_instance(RandomNumbers& r, bool wholes) {
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
  const Bytes budget = wholes ? budget_of_wholes(r, cycle)
                              : lowest + static_cast<Bytes>(r.part() * static_cast<double>(cycle.peak() - lowest));
  return {std::move(cycle), {{path}, path.out_rate, path.in_rate}, budget};
}

// Of many instances.
struct Nearness {
  // Of those whose best plan waits more than 1 % of the turn: (bound - ideal) / (best - ideal), and of what counts
  // bytes.
  std::vector<double> of_bound, of_bytes;
  int instances = 0, within = 0, none_found = 0, given_up = 0, not_proved = 0;
  std::vector<std::pair<double, std::uint64_t>> slower;  // of plans found and not within 2 %: times the best, seed

  static double part_of(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
  }
  double worst() const {
    double most = 1;
    for (const auto& one : slower) most = std::max(most, one.first);
    return most;
  }
};

// No random plan is faster than the best: a check of the search that tries all.
void expect_best(const SmallInstance& i, const BestMoves& best, RandomNumbers& r) {
  for (int n = 0; n < 100; ++n) {
    const MovePlan plan = random_sound_plan(r, i.cycle, 1);
    const std::vector<Bytes> live = live_under(i.cycle, plan);
    if (*std::max_element(live.begin(), live.end()) > i.budget) continue;
    EXPECT_GE(replay_turns(turn_of(i.cycle, plan), i.links).seconds, best.seconds * (1 - 1e-6));
  }
}

void expect_carried_out(const SmallInstance& i, const MovePlan& plan, ReplayedTurns& replayed) {
  replayed = replay_turns(turn_of(i.cycle, plan), i.links);
  EXPECT_EQ(replayed.faults, std::vector<std::string>{});
  EXPECT_LE(replayed.highest, i.budget);
}

void compare(std::uint64_t seed, bool wholes, Nearness& all) {
  SCOPED_TRACE(seed);
  RandomNumbers r(seed);
  const SmallInstance i = small_instance(r, wholes);
  const MovesBound bound = moves_bound(i.cycle, i.links, i.budget);
  if (bound.excess <= 0) return;
  const auto best = best_moves(i.cycle, i.links, i.budget, kMostReplays);
  ASSERT_TRUE(best) << "the budget is at least that of a plan";
  all.given_up += best->given_up ? 1 : 0;
  if (best->given_up || best->seconds > 1.5 * bound.ideal_seconds) return;
  ++all.instances;
  ReplayedTurns replayed;
  expect_carried_out(i, best->plan, replayed);
  EXPECT_NEAR(replayed.seconds, best->seconds, 1e-6 * best->seconds);
  EXPECT_TRUE(is_sound(i.cycle, best->plan));
  if (all.instances % 10 == 0) expect_best(i, *best, r);
  EXPECT_LE(bound.seconds, best->seconds * (1 + 1e-9));
  const double least = whole_moves_bound_seconds(i.cycle, i.links, i.budget);
  EXPECT_LE(least, best->seconds * (1 + 1e-9)) << "no plan of whole storages is faster than its bound";
  all.not_proved += std::max(least, bound.ideal_seconds) < best->seconds * (1 - 1e-6) ? 1 : 0;
  if (best->seconds > 1.01 * bound.ideal_seconds) {
    const auto part = [&](double seconds) {
      return (seconds - bound.ideal_seconds) / (best->seconds - bound.ideal_seconds);
    };
    all.of_bytes.push_back(part(bound.seconds));
    all.of_bound.push_back(part(std::max(least, bound.seconds)));
  }

  const FoundMoves found = ended_search(i.cycle, i.links, i.budget, bound);
  all.none_found += found.fits ? 0 : 1;
  if (!found.fits) return;
  expect_carried_out(i, found.plan, replayed);
  EXPECT_GE(replayed.seconds, best->seconds * (1 - 1e-6)) << "trying all has missed a plan";
  const double slower = replayed.seconds / best->seconds;
  if (slower <= 1.02)
    ++all.within;
  else
    all.slower.emplace_back(slower, seed);
}

Nearness nearness_of(bool wholes) {
  Nearness all;
  const char* named = std::getenv("MEMWALL_BEST_MOVES");
  const int instances = named != nullptr ? std::atoi(named) : 1000;
  for (std::uint64_t seed = 0; all.instances < instances && !testing::Test::HasFailure(); ++seed)
    compare(seed, wholes, all);
  for (const auto& [what, parts] : {std::pair("bytes", &all.of_bytes), std::pair("whole storages", &all.of_bound)})
    std::printf("of %zu that wait, the bound of %s explains %.3f of the wait in the median, %.3f in a tenth\n",
                parts->size(), what, Nearness::part_of(*parts, 0.5), Nearness::part_of(*parts, 0.1));
  std::printf("%d instances, %d left out; the best plan is not proved to be it for %d\n", all.instances, all.given_up,
              all.not_proved);
  std::printf("plans found: %d within 2 %% of the best of all, none for %d, the worst %.3f times the best\n",
              all.within, all.none_found, all.worst());
  std::sort(all.slower.rbegin(), all.slower.rend());
  for (std::size_t n = 0; n < std::min<std::size_t>(5, all.slower.size()); ++n)
    std::printf("  %.3f: seed %llu\n", all.slower[n].first, static_cast<unsigned long long>(all.slower[n].second));
  return all;
}

// The aim is a bound that explains 0.9 of the wait in the median, and a search within 2 % of the best nearly always.
// The best of all drops before it fetches, in a slot; the bound holds for plans that do not, too, which may be faster.
void expect_nearness(const Nearness& all) {
  EXPECT_EQ(all.none_found, 0);
  EXPECT_GE(all.within, all.instances * 99 / 100);
  EXPECT_LE(all.not_proved, all.instances * 2 / 5);
  EXPECT_GE(Nearness::part_of(all.of_bound, 0.5), 0.99);
  EXPECT_GE(Nearness::part_of(all.of_bound, 0.1), 0.7);
  EXPECT_LE(Nearness::part_of(all.of_bytes, 0.5), 0.6) << "bytes alone would do: these cycles show nothing";
}

TEST(BestMovesProperty, WithAnyBudget) { expect_nearness(nearness_of(false)); }

TEST(BestMovesProperty, WithTheBudgetOfWholeStorages) { expect_nearness(nearness_of(true)); }

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
