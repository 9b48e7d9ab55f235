// How long do a step's profile, the writer and the planners take, and do they grow with the step alone?
//
// GPT steps of 8 to 8,000 layers (1.2 k to 1.2 M ops). Planners get three quarters of the memory that the step takes,
// and are asked once: without repair.
#include <benchmark/benchmark.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "policies/plan/plan_writer.h"
#include "policies/planners/planner.h"
#include "policies/profile/planned_memory.h"
#include "sim/policy/registry.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Bench {
  explicit Bench(std::int64_t layers) : machine(load_machine("h100-sxm-80gb")), pricer(make_pricer(machine)) {
    GptShape shape;
    shape.layers = static_cast<int>(layers);
    shape.sequence = 1024;
    shape.hidden = 1024;
    shape.heads = 16;
    trace = gpt_step(shape);
  }
  Machine machine;
  std::unique_ptr<Pricer> pricer;
  Trace trace;
};

void count_ops(benchmark::State& state, const Trace& trace) {
  state.counters["ops"] = static_cast<double>(trace.ops.size());
  state.counters["ops/s"] =
      benchmark::Counter(static_cast<double>(trace.ops.size()), benchmark::Counter::kIsIterationInvariantRate);
}

void profile(benchmark::State& state) {
  const Bench bench(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(StepProfile(bench.trace, bench.machine).gaps().size());
  count_ops(state, bench.trace);
}

// By name; REQUIRES: it is one of the registered planners.
MemoryPlan plan_of(const std::string& planner, const StepProfile& profile, const Bench& bench) {
  const Budget budget{PlannedMemory(profile).peak() / 4 * 3};
  return planner_named(planner)(profile, budget, bench.machine, *bench.pricer).best;
}

void planner(benchmark::State& state, const std::string& name) {
  const Bench bench(state.range(0));
  const StepProfile profile(bench.trace, bench.machine);
  std::size_t decisions = 0;
  for (auto _ : state) decisions = plan_of(name, profile, bench).storages.size();
  count_ops(state, bench.trace);
  state.counters["decisions"] = static_cast<double>(decisions);
}

void writer(benchmark::State& state, const std::string& name) {
  const Bench bench(state.range(0));
  const StepProfile profile(bench.trace, bench.machine);
  const MemoryPlan plan = plan_of(name, profile, bench);
  for (auto _ : state) {
    TraceEdit edit(bench.trace, bench.machine.host);
    write_plan(plan, profile.flow(), *bench.pricer, edit);
    benchmark::DoNotOptimize(std::move(edit).apply().ops.size());
  }
  count_ops(state, bench.trace);
  state.counters["decisions"] = static_cast<double>(plan.storages.size());
}

constexpr std::int64_t kFewest = 8, kMost = 8000;
void sizes(benchmark::internal::Benchmark* bench) {
  for (std::int64_t layers = kFewest; layers <= kMost; layers *= 10) bench->Arg(layers);
  bench->Unit(benchmark::kMillisecond);
}

BENCHMARK(profile)->Apply(sizes);
BENCHMARK_CAPTURE(planner, chen, "chen")->Apply(sizes);
BENCHMARK_CAPTURE(planner, vdnn, "vdnn")->Apply(sizes);
BENCHMARK_CAPTURE(planner, capuchin, "capuchin:feedback=0")->Apply(sizes);
BENCHMARK_CAPTURE(planner, capuchin_swaps, "capuchin:use=swaps,feedback=0")->Apply(sizes);
BENCHMARK_CAPTURE(planner, capuchin_with_feedback, "capuchin")->Apply(sizes);
BENCHMARK_CAPTURE(planner, rotor, "rotor")->Apply(sizes);
BENCHMARK_CAPTURE(planner, plan, "plan")->Apply(sizes);
BENCHMARK_CAPTURE(planner, revolve, "revolve")->Apply(sizes);
BENCHMARK_CAPTURE(planner, checkmate_rounding, "checkmate:mode=rounding,nodes=16")->Apply(sizes);
BENCHMARK_CAPTURE(planner, superneurons, "superneurons:offload=none")->Apply(sizes);
BENCHMARK_CAPTURE(planner, mincut, "mincut")->Apply(sizes);
BENCHMARK_CAPTURE(planner, torch_budget, "torch_budget:memory_budget=0.5")->Apply(sizes);
BENCHMARK_CAPTURE(planner, torch_sac, "torch_sac:memory_budget=0.5")->Apply(sizes);
BENCHMARK_CAPTURE(writer, chen, "chen")->Apply(sizes);
BENCHMARK_CAPTURE(writer, vdnn, "vdnn")->Apply(sizes);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
