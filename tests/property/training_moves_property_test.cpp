// How near do the bound and the search of policies/cycle come to the optimum on cycles as training steps are
// (tests/support/training_cycle.h: 8 to 16 layers forward and backward, their weights, optimizer states, activations)?
// The optimum lies between what a linear program proves (tests/support/moves_program.h) and the plan that is found:
// both are held against the end that is worse for them, so that what is asserted holds for the optimum, too. A linear
// program takes half a second, so that every run of the tests asks for two fifths of them (tests/support/long_run.h).
//
// With MEMWALL_TRAINING_MOVES=cbc gaps are away as a whole in the program, which CBC then solves: minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "policies/cycle/move_search.h"
#include "policies/cycle/whole_moves.h"
#include "tests/support/ended_search.h"
#include "tests/support/long_run.h"
#include "tests/support/moves_program.h"
#include "tests/support/training_cycle.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr int kWaiting = 200;       // instances whose plan waits
constexpr double kWaits = 1.01;     // times the ideal
constexpr double kCbcSeconds = 20;  // for one instance

struct TrainingNearness {
  int instances = 0, none_found = 0, not_solved = 0;
  int within = 0, waiting_within = 0;  // plans within 2 % of what is proved
  // (bound - ideal) / (plan - ideal), and the same of the program's optimum, which no plan is below.
  std::vector<double> of_plan, of_program;
  std::vector<std::pair<double, std::uint64_t>> slower;  // times the program, seed
};

double part_of(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

void compare_training(std::uint64_t seed, MovesWhole whole, TrainingNearness& all) {
  SCOPED_TRACE(seed);
  RandomNumbers r(seed);
  const TrainingCycle t = training_cycle(r);
  const StepCycle cycle(t.program);
  const MovesBound bound = moves_bound(cycle, t.links, t.budget);
  const double ideal = bound.ideal_seconds;
  const FoundMoves found = find_moves(cycle, t.links, t.budget, bound);
  ++all.instances;
  if (!found.fits) {
    ++all.none_found;
    return;
  }
  EXPECT_GE(found.seconds, bound.seconds * (1 - 1e-9));
  if (t.links.paths.front().out_latency == Duration{}) {
    const ReplayedTurns replayed = replay_turns(turn_of(cycle, found.plan), t.links);
    EXPECT_EQ(replayed.faults, std::vector<std::string>{});
    EXPECT_LE(replayed.highest, t.budget);
    EXPECT_NEAR(replayed.seconds, found.seconds, 1e-3 * found.seconds);
  }
  if (found.seconds > kWaits * ideal) all.of_plan.push_back((bound.seconds - ideal) / (found.seconds - ideal));
  if (!LinearProgram::is_available()) return;
  const MovesProgramAnswer program = solve_moves(cycle, t.links, t.budget, whole, {.seconds = kCbcSeconds});
  if (program.status != SolverStatus::optimal) {
    ++all.not_solved;
    return;
  }
  EXPECT_LE(bound.seconds, program.seconds * (1 + 1e-6)) << "what is proved in closed form is proved by the program";
  EXPECT_GE(found.seconds, program.seconds * (1 - 1e-6)) << "no plan is faster than what is proved";
  if (program.seconds > kWaits * ideal) all.of_program.push_back((bound.seconds - ideal) / (program.seconds - ideal));
  const double slower = found.seconds / program.seconds;
  all.within += slower <= 1.02 ? 1 : 0;
  if (found.seconds > kWaits * ideal) all.waiting_within += slower <= 1.02 ? 1 : 0;
  if (slower > 1.02) all.slower.emplace_back(slower, seed);
}

void print(const char* what, const std::vector<double>& parts) {
  if (parts.empty()) return;
  std::printf("the bound explains of the wait of %s (%zu instances):", what, parts.size());
  for (int tenth = 1; tenth < 10; ++tenth) std::printf(" %.3f", part_of(parts, tenth / 10.0));
  std::printf(" (by tenths)\n");
}

TEST(TrainingMovesProperty, BoundAndSearchComeNearTheOptimum) {
  const char* const named = std::getenv("MEMWALL_TRAINING_MOVES");
  const MovesWhole whole = named != nullptr && std::string(named) == "cbc" ? MovesWhole::gaps : MovesWhole::nothing;
  TrainingNearness all;
  const std::size_t waiting = cases(kWaiting * 2 / 5, kWaiting);
  for (std::uint64_t seed = 0; all.of_plan.size() < waiting && !HasFailure(); ++seed)
    compare_training(seed, whole, all);
  print("the plan that is found", all.of_plan);
  print("what the program proves", all.of_program);
  std::printf(
      "%d instances, none found for %d, %d not solved; within 2 %% of what is proved: %d, of those that wait %d\n",
      all.instances, all.none_found, all.not_solved, all.within, all.waiting_within);
  std::sort(all.slower.rbegin(), all.slower.rend());
  for (std::size_t n = 0; n < std::min<std::size_t>(5, all.slower.size()); ++n)
    std::printf("  %.3f times what is proved: seed %llu\n", all.slower[n].first,
                static_cast<unsigned long long>(all.slower[n].second));
  EXPECT_GE(part_of(all.of_plan, 0.5), 0.9);
  EXPECT_LE(all.none_found, all.instances * 3 / 100) << "the aim is 0";
  if (all.of_program.empty()) return;
  EXPECT_GE(part_of(all.of_program, 0.5), 0.95);
  EXPECT_GE(all.within, (all.instances - all.none_found) * 75 / 100) << "the aim is all of them";
}

// Plans do not have to drop before they fetch: exchanged one by one, what is carried out within the budget is not
// faster than the bound. Returns how many were faster than the plan.
int expect_no_exchange_beats(double whole, const StepCycle& cycle, const TrainingCycle& t, const FoundMoves& found) {
  const Turn turn = turn_of(cycle, found.plan);
  int faster = 0;
  for (std::size_t i = 1; i < turn.events.size(); ++i) {
    if (turn.events[i].kind != TurnEvent::Kind::fetch || turn.events[i - 1].kind != TurnEvent::Kind::drop) continue;
    Turn exchanged = turn;
    std::swap(exchanged.events[i], exchanged.events[i - 1]);
    const ReplayedTurns replayed = replay_turns(exchanged, t.links);
    if (!replayed.faults.empty() || replayed.highest > t.budget) continue;
    EXPECT_GE(replayed.seconds, whole * (1 - 1e-9)) << "event " << i;
    faster += replayed.seconds < found.seconds * 0.999 ? 1 : 0;
  }
  return faster;
}

// Of plans that wait, of steps of so many layers.
struct WholeNearness {
  std::vector<double> of_bytes, of_whole;  // (bound - ideal) / (plan - ideal)
  int proved = 0;                          // plans as fast as what is proved
  int exchanged = 0;                       // fetches before drops that make a plan faster
};

WholeNearness whole_nearness(std::size_t fewest, std::size_t most, std::size_t many) {
  constexpr double kProved = 1e-6;
  WholeNearness all;
  for (std::uint64_t seed = 0; all.of_whole.size() < many && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed);
    const TrainingCycle t = training_cycle(r, fewest, most);
    const StepCycle cycle(t.program);
    const MovesBound bound = moves_bound(cycle, t.links, t.budget);
    const double ideal = bound.ideal_seconds;
    const FoundMoves found = ended_search(cycle, t.links, t.budget, bound);
    if (!found.fits || found.seconds <= kWaits * ideal) continue;
    const double whole = std::max(bound.seconds, whole_moves_bound_seconds(cycle, t.links, t.budget));
    EXPECT_GE(found.seconds, whole * (1 - 1e-9));
    all.of_bytes.push_back((bound.seconds - ideal) / (found.seconds - ideal));
    all.of_whole.push_back((whole - ideal) / (found.seconds - ideal));
    all.proved += found.seconds <= whole * (1 + kProved) ? 1 : 0;
    all.exchanged += expect_no_exchange_beats(whole, cycle, t, found);
  }
  print("the plan that is found, by bytes", all.of_bytes);
  print("the plan that is found, by whole storages", all.of_whole);
  std::printf("%d of %zu plans are proved to be the fastest that move; %d exchanges of a drop and a fetch are faster\n",
              all.proved, many, all.exchanged);
  return all;
}

TEST(TrainingMovesProperty, WholeStoragesSayMoreOfTwoOrThreeLayers) {
  const WholeNearness all = whole_nearness(2, 3, kWaiting);
  EXPECT_GE(all.proved, kWaiting * 3 / 10);
  EXPECT_GE(all.exchanged, kWaiting / 4) << "plans that fetch before they drop are no test of the bound";
  EXPECT_GE(part_of(all.of_whole, 0.1), 0.55);
  EXPECT_GE(part_of(all.of_whole, 0.5), 0.8);
  EXPECT_LE(part_of(all.of_bytes, 0.5), 0.6) << "bytes alone would do: these steps show nothing";
}

// Of more layers the search is cut short, mostly.
TEST(TrainingMovesProperty, WholeStoragesSayMoreOfFourToSixLayers) {
  const WholeNearness all = whole_nearness(4, 6, kWaiting / 2);
  EXPECT_GE(part_of(all.of_whole, 0.1), part_of(all.of_bytes, 0.1) + 0.2);
  EXPECT_GE(part_of(all.of_whole, 0.5), part_of(all.of_bytes, 0.5) + 0.1);
}

// Where the slopes on both sides agree; elsewhere other windows bind on one side, and the price is that of one of them.
TEST(TrainingMovesProperty, PricesOfTheBoundAreItsSlopes) {
  int compared = 0, binding = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed);
    const TrainingCycle t = training_cycle(r);
    const StepCycle cycle(t.program);
    const MovesBound bound = moves_bound(cycle, t.links, t.budget);
    if (bound.windows.empty()) continue;
    ++binding;
    constexpr double kPart = 1e-6;
    const auto expect = [&](const char* what, double price, double change, double less, double more) {
      const double before = (bound.seconds - less) / change, behind = (more - bound.seconds) / change;
      if (std::abs(before - behind) > 1e-3 * std::abs(before)) return;
      ++compared;
      EXPECT_NEAR(price, behind, 0.01 * std::abs(behind)) << what;
    };
    const auto bytes = static_cast<Bytes>(kPart * static_cast<double>(t.budget));
    expect("a byte of memory", bound.per_byte, static_cast<double>(bytes),
           moves_bound(cycle, t.links, t.budget - bytes).seconds,
           moves_bound(cycle, t.links, t.budget + bytes).seconds);
    for (const bool out : {true, false}) {
      const auto with = [&](double factor) {
        CycleLinks links = t.links;
        (out ? links.total_out : links.total_in) *= factor;
        return moves_bound(cycle, links, t.budget).seconds;
      };
      const double rate = out ? t.links.total_out : t.links.total_in;
      expect(out ? "the rate out" : "the rate in", out ? bound.per_out_rate : bound.per_in_rate, kPart * rate,
             with(1 - kPart), with(1 + kPart));
    }
  }
  EXPECT_GE(binding, 500);
  EXPECT_GE(compared, 2 * binding) << "nearly everywhere the same windows bind on both sides";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
