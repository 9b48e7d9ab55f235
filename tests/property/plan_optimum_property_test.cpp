// How near does `--policy plan`, as the program asks for it (a scenario, PyTorch's allocator on a GPU of the budget's
// size), come to the true optimum? On random steps that are small enough to solve by trying all: the fastest plan of
// whole-storage moves that drops before it fetches (tests/support/best_moves.h), in a row of steps, without an
// allocator.
//
// How steps are drawn: 5 to 9 ops with log-uniform times of a factor of 10, one after the other; storages until there
// are 3 to 5 gaps: half live within the step (written first, then read), a quarter are parameters that the step only
// reads, a quarter states that it updates; each touched by 2 to 4 random ops. Sizes are log-uniform between 20 and 400
// MiB. Copies go at 10 GB/s each way; times are such that all gaps' bytes take between a fifth of a step and three. The
// budget is uniform between the least that any plan keeps to and the peak. Kept are steps over their budget that trying
// all takes at most kMostReplays replays for.
//
// Of `plan`, which may also compute again, the optimum of moves is no bound: it is held against that all the same.
//
// What is compared: the plan as the program writes it (Study::plan), carried out turn after turn by a checker written
// apart; and the step as the program simulates it, which ends when all copies are done and so is never faster.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/cycle/cycle_of_step.h"
#include "study/study.h"
#include "tests/support/best_moves.h"
#include "tests/support/long_run.h"
#include "tests/support/random_cycle.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"
#include "tests/support/turn_of_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr long kMostReplays = 100'000;
constexpr Bytes kUnit = MiB(2);  // of a large segment of PyTorch's allocator

// A storage of a step to be: which ops touch it.
struct SmallStorage {
  enum class Kind { activation, parameter, state } kind = Kind::activation;
  Bytes bytes = 0;
  std::vector<std::size_t> ops;  // ascending

  bool lives_across() const { return kind != Kind::activation; }
  bool is_written_by(std::size_t op) const {
    return kind == Kind::activation ? op == ops.front() : kind == Kind::state && op == ops.back();
  }
  bool is_read_by(std::size_t op) const { return kind != Kind::activation || op != ops.front(); }
  // Between two ops that touch it lies another one.
  std::size_t gaps(std::size_t of_step) const {
    std::size_t all = 0;
    for (std::size_t i = 1; i < ops.size(); ++i) all += ops[i] > ops[i - 1] + 1 ? 1 : 0;
    return all + (lives_across() && ops.front() + of_step > ops.back() + 1 ? 1 : 0);
  }
};

SmallStorage small_storage(RandomNumbers& r, std::size_t ops) {
  SmallStorage s;
  const std::size_t kind = r.below(4);
  s.kind = kind < 2    ? SmallStorage::Kind::activation
           : kind == 2 ? SmallStorage::Kind::parameter
                       : SmallStorage::Kind::state;
  s.bytes = static_cast<Bytes>(r.log_uniform(10, 200)) * kUnit;
  std::vector<std::size_t> all(ops);
  std::iota(all.begin(), all.end(), 0u);
  std::shuffle(all.begin(), all.end(), r.engine);
  all.resize(r.between(2, 4));
  std::sort(all.begin(), all.end());
  s.ops = all;
  return s;
}

std::vector<SmallStorage> small_storages(RandomNumbers& r, std::size_t ops) {
  std::vector<SmallStorage> all;
  const std::size_t wanted = r.between(3, 5);
  for (std::size_t gaps = 0; gaps < wanted;) {
    SmallStorage next = small_storage(r, ops);
    if (gaps + next.gaps(ops) > 5) continue;
    gaps += next.gaps(ops);
    all.push_back(std::move(next));
  }
  return all;
}

// Ops that touch nothing but what is drawn. The second half is backward.
Trace step_of(const std::vector<SmallStorage>& storages, const std::vector<Duration>& times) {
  StepProgram p;
  std::vector<StorageId> ids(storages.size(), kNoStorage);
  for (std::size_t i = 0; i < storages.size(); ++i)
    if (storages[i].lives_across())
      ids[i] = p.preexisting(
          storages[i].bytes,
          storages[i].kind == SmallStorage::Kind::state ? StorageKind::optimizer_state : StorageKind::parameter,
          "across");
  for (std::size_t k = 0; k < times.size(); ++k) {
    if (k == times.size() / 2) p.backward();
    std::vector<StorageId> reads, writes;
    for (std::size_t i = 0; i < storages.size(); ++i) {
      const SmallStorage& s = storages[i];
      if (std::ranges::find(s.ops, k) == s.ops.end()) continue;
      if (!s.lives_across() && k == s.ops.front()) ids[i] = p.make(s.bytes, "within");
      if (s.is_read_by(k)) reads.push_back(ids[i]);
      if (s.is_written_by(k)) writes.push_back(ids[i]);
    }
    Op op;
    op.duration = times[k];
    p.op("op" + std::to_string(k), reads, writes, op);
    for (std::size_t i = 0; i < storages.size(); ++i)
      if (!storages[i].lives_across() && k == storages[i].ops.back()) p.drop(ids[i]);
  }
  return std::move(p).finish();
}

Trace small_step(RandomNumbers& r) {
  const std::size_t ops = r.between(5, 9);
  const std::vector<SmallStorage> storages = small_storages(r, ops);
  double bytes = 0, sum = 0;
  for (const SmallStorage& s : storages) bytes += static_cast<double>(s.gaps(ops)) * static_cast<double>(s.bytes);
  std::vector<double> times(ops);
  for (double& time : times) sum += time = r.log_uniform(1, 10);
  const double step = bytes / 10e9 / r.log_uniform(0.2, 3);
  std::vector<Duration> durations;
  for (const double time : times) durations.push_back(from_seconds(step * time / sum));
  return step_of(storages, durations);
}

// Of one policy, on all steps.
struct OptimumNearness {
  std::vector<double> in_a_row, of_one;  // times the optimum, ascending once all are there
  int none_found = 0, faster = 0, not_steady = 0;

  static double part_of(const std::vector<double>& ascending, double part) {
    return ascending[static_cast<std::size_t>(part * static_cast<double>(ascending.size() - 1))];
  }
};

void print(const char* policy, OptimumNearness& all) {
  for (const auto& [what, parts] :
       {std::pair("in a row of steps", &all.in_a_row), std::pair("one step", &all.of_one)}) {
    std::sort(parts->begin(), parts->end());
    const auto part = [&](double p) { return parts->empty() ? 0 : OptimumNearness::part_of(*parts, p); };
    std::printf("%s, %s: %.4f times the optimum in the median, %.4f in nine tenths, %.4f at most (%zu steps)\n", policy,
                what, part(0.5), part(0.9), part(1), parts->size());
  }
  std::printf("%s: none found for %d, faster than the best that drops first %d, only in one step %d\n", policy,
              all.none_found, all.faster, all.not_steady);
}

void compare(Study& study, const Scenario& scenario, const Trace& step, const Machine& machine, double optimum,
             OptimumNearness& all) {
  const memwall::Run run = study.run(scenario, {.record = false}).run;
  if (!run.result.fits || !run.trace->keeps_to_budgets()) {
    ++all.none_found;
    return;
  }
  all.of_one.push_back(to_seconds(mean_step(run)) / optimum);
  const PlannedStep planned = study.plan(scenario);
  const ReplayedTurns turns =
      replay_turns(turn_of(StepProfile(step, machine), planned.plan), links_of_machine(machine, {"host"}));
  if (!turns.faults.empty()) {
    ++all.not_steady;
    return;
  }
  all.in_a_row.push_back(turns.seconds / optimum);
  all.faster += turns.seconds < optimum * (1 - 1e-6) ? 1 : 0;
}

TEST(PlanOptimumProperty, ThePolicyComesNearTheFastestPlanOfMoves) {
  const std::size_t wanted = cases(200, 2000);
  const Machine machine = test_machine();
  OptimumNearness moves, both;
  std::size_t instances = 0;
  int given_up = 0;
  for (std::uint64_t seed = 0; instances < wanted && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers r(seed);
    const Trace step = small_step(r);
    const StepProfile profile(step, machine);
    const StepCycle cycle(cycle_of_step(profile).program);
    const std::vector<Bytes> least = cycle.least();
    const Bytes lowest = *std::max_element(least.begin(), least.end());
    const Bytes budget = lowest + static_cast<Bytes>(r.part() * static_cast<double>(cycle.peak() - lowest));
    if (cycle.peak() <= budget) continue;
    const auto best = best_moves(cycle, links_of_machine(machine, {"host"}), budget, kMostReplays);
    if (!best || best->given_up) {
      ++given_up;
      continue;
    }
    ++instances;
    Study study;
    study.add_step("step", step);
    study.add_machine("gpu", machine);
    Scenario scenario{.step = {"step"}, .machine = "gpu"};
    scenario.budget = std::to_string(budget) + "B";
    scenario.policies = {"plan:recompute=0,budget=" + scenario.budget};
    compare(study, scenario, step, machine, best->seconds, moves);
    scenario.policies = {"plan:budget=" + scenario.budget};
    compare(study, scenario, step, machine, best->seconds, both);
  }
  std::printf("%zu steps, %d left out\n", instances, given_up);
  print("plan:recompute=0", moves);
  print("plan", both);
  // The aim is 2 % in the median. In nine tenths it is 6 %, and 11 % where whole storages are not looked at in the end.
  for (const OptimumNearness* all : {&moves, &both}) {
    ASSERT_GE(all->in_a_row.size(), instances * 4 / 5) << "what the allocator has no place for";
    EXPECT_LE(OptimumNearness::part_of(all->in_a_row, 0.5), 1.02);
    EXPECT_LE(OptimumNearness::part_of(all->of_one, 0.5), 1.02);
    EXPECT_LE(OptimumNearness::part_of(all->in_a_row, 0.9), 1.09);
  }
  EXPECT_LE(moves.faster, 2 + static_cast<int>(instances) / 50) << "trying all has missed plans";
  EXPECT_GE(OptimumNearness::part_of(moves.in_a_row, 0.5), 1 - 1e-9);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
