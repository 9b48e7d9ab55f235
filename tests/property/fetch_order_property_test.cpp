// What would plans gain that fetch before they drop in a slot? Those of policies/cycle wait for the copies out of what
// is dropped at a slot before they fetch there (move_plan.h). On the steps of whole networks, moves alone: each drop
// that stands right before a fetch is exchanged with it, as far ahead as that goes, carried out by a checker written
// apart (tests/support/turn_replay.h), and kept where the turn is shorter.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/move_search.h"
#include "policies/cycle/moves_bound.h"
#include "study/study.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct FetchedFirst {
  double before = 0, behind = 0;  // seconds of a turn
  int pairs = 0, taken = 0;
};

bool fetches_behind_a_drop(const Turn& turn, std::size_t event) {
  return turn.events[event].kind == TurnEvent::Kind::fetch && turn.events[event - 1].kind == TurnEvent::Kind::drop;
}

FetchedFirst fetched_first(const StepProfile& profile, const Machine& machine, double share) {
  const StepCycle cycle(cycle_of_step(profile).program);
  const CycleLinks links = links_of_machine(machine, {"host"});
  const auto budget = static_cast<Bytes>(share * static_cast<double>(cycle.peak()));
  const FoundMoves found = find_moves(cycle, links, budget, moves_bound(cycle, links, budget));
  FetchedFirst result;
  EXPECT_TRUE(found.fits);
  if (!found.fits) return result;
  Turn turn = turn_of(cycle, found.plan);
  result.before = result.behind = replay_turns(turn, links).seconds;
  for (std::size_t i = 1; i < turn.events.size(); ++i) {
    if (!fetches_behind_a_drop(turn, i)) continue;
    ++result.pairs;
    Turn other = turn;
    for (std::size_t j = i; j > 0 && other.events[j - 1].kind == TurnEvent::Kind::drop; --j) {
      std::swap(other.events[j], other.events[j - 1]);
      const ReplayedTurns replayed = replay_turns(other, links);
      if (!replayed.faults.empty() || replayed.highest > budget) break;
      if (replayed.seconds >= result.behind * (1 - 1e-7)) continue;
      result.behind = replayed.seconds;
      turn = other;
      ++result.taken;
    }
  }
  return result;
}

TEST(FetchOrderProperty, PlansOfWholeNetworksGainLessThanHalfAPercent) {
  struct Step {
    std::string step, machine;
    double share;  // of its peak
  };
  const std::string samples = MEMWALL_SOURCE "/traces/samples/";
  Study study;
  int pairs = 0, taken = 0;
  for (const Step& one : {Step{samples + "gpt_124m.mwt", "a100-sxm-40gb", 0.5},
                          Step{samples + "captures/vit_l.mwc.gz", "a100-sxm-80gb", 0.5},
                          Step{"llama3-8b:batch=1,sequence=8192,precision=bf16", "h100-sxm-80gb", 0.5}}) {
    SCOPED_TRACE(one.step);
    const Scenario scenario{.step = {one.step}, .machine = one.machine};
    const PreparedStep step = study.prepare(scenario);
    const FetchedFirst first = fetched_first(StepProfile(*step.trace, *step.machine), *step.machine, one.share);
    std::printf("%s: %.2f %% shorter, %d of %d exchanges taken\n", one.step.c_str(),
                100 * (1 - first.behind / first.before), first.taken, first.pairs);
    EXPECT_GE(first.behind, first.before * 0.995);
    pairs += first.pairs;
    taken += first.taken;
  }
  EXPECT_GE(pairs, 40) << "there is little to exchange";
  EXPECT_GE(taken, 1) << "no exchange helps: the test would not see one that does";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
