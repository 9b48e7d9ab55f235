// How long do the bound, its certificate and a plan of policies/cycle take? On steps of a GPT of 1.2 k, 10 k and 100 k
// ops, at 40 and 80 % of the way from the least memory that whole storages need to the peak, without repair for the
// allocator.
#include <benchmark/benchmark.h>

#include "models/hw/machine_file.h"
#include "policies/cycle/plan_certificate.h"
#include "policies/cycle/profile_cycle.h"
#include "policies/cycle/rerun_prices.h"
#include "policies/cycle/step_plan.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct CycleBench {
  CycleBench(std::int64_t layers, std::int64_t share)
      : machine(load_machine("h100-sxm-80gb")),
        trace(step_of(layers)),
        profile(trace, machine),
        cycle(cycle_of_step(profile).program),
        links(links_of_machine(machine, {"host"})) {
    const std::vector<Bytes> least = cycle.least();
    const Bytes lowest = *std::max_element(least.begin(), least.end());
    budget = lowest + (cycle.peak() - lowest) / 100 * share;
  }

  static Trace step_of(std::int64_t layers) {
    GptShape shape;
    shape.layers = static_cast<int>(layers);
    shape.sequence = 1024, shape.hidden = 1024, shape.heads = 16;
    // About an H100's.
    shape.flops_per_second = 400e12, shape.bytes_per_second = 2.5e12;
    return gpt_step(shape);
  }

  void count(benchmark::State& state) const {
    state.counters["ops"] = static_cast<double>(trace.ops.size());
    state.counters["slots"] = static_cast<double>(cycle.size());
    state.counters["gaps"] = static_cast<double>(cycle.gaps().size());
  }

  const Machine machine;
  const Trace trace;
  const StepProfile profile;
  const StepCycle cycle;
  const CycleLinks links;
  Bytes budget = 0;
};

void closed_form(benchmark::State& state) {
  const CycleBench bench(state.range(0), state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(moves_bound(bench.cycle, bench.links, bench.budget).seconds);
  bench.count(state);
}

void joint_closed_form(benchmark::State& state) {
  const CycleBench bench(state.range(0), state.range(1));
  const CycledStep step = cycle_of_step(bench.profile);
  const RerunPrices prices = least_rerun_prices(bench.profile, step, bench.cycle);
  for (auto _ : state) benchmark::DoNotOptimize(joint_bound_seconds(bench.cycle, bench.links, bench.budget, prices));
  bench.count(state);
}

void certificate(benchmark::State& state) {
  const CycleBench bench(state.range(0), state.range(1));
  for (auto _ : state)
    benchmark::DoNotOptimize(plan_certificate(bench.profile, bench.budget, bench.links).joint_seconds);
  bench.count(state);
}

void step_plan(benchmark::State& state, bool recompute, bool search) {
  const CycleBench bench(state.range(0), state.range(1));
  StepPlanSettings settings;
  settings.recompute = recompute, settings.search = search;
  StepPlan found;
  for (auto _ : state) {
    // A profile keeps what it was asked for: each time a new one, with its cycle, which is no part of a plan.
    state.PauseTiming();
    const StepProfile profile(bench.trace, bench.machine);
    benchmark::DoNotOptimize(rerun_prices_of(profile).size());
    state.ResumeTiming();
    found = plan_step(profile, bench.budget, settings);
  }
  bench.count(state);
  const double bound = recompute ? found.joint_bound_seconds : found.moves_bound.seconds;
  state.counters["fits"] = found.fits ? 1 : 0;
  state.counters["moves"] = static_cast<double>(found.moves);
  state.counters["reruns"] = static_cast<double>(found.reruns);
  state.counters["% of ideal"] = 100 * found.ideal_seconds / found.seconds;
  state.counters["% of bound"] = 100 * bound / found.seconds;
}

void step_layers(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t layers : {8, 82, 820})
    for (const std::int64_t share : {40, 80}) bench->Args({layers, share});
  bench->Unit(benchmark::kMillisecond);
}

BENCHMARK(closed_form)->Apply(step_layers);
BENCHMARK(joint_closed_form)->Apply(step_layers);
BENCHMARK(certificate)->Apply(step_layers);
BENCHMARK_CAPTURE(step_plan, moves_without_search, false, false)->Apply(step_layers);
BENCHMARK_CAPTURE(step_plan, moves, false, true)->Apply(step_layers);
BENCHMARK_CAPTURE(step_plan, without_search, true, false)->Apply(step_layers);
BENCHMARK_CAPTURE(step_plan, with_search, true, true)->Apply(step_layers);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
