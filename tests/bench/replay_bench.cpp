// How many ops per second does the engine replay, and how much memory does an op take?
//
// The program is bench_program's; `pytorch` allocator; no run file.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "sim/engine/simulation.h"
#include "tests/bench/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

void replay(benchmark::State& state) {
  const Trace trace = bench_program(static_cast<std::size_t>(state.range(0)));
  const Machine machine = test_machine();
  for (auto _ : state) {
    const SimulationResult result = simulate(trace, machine, {});
    benchmark::DoNotOptimize(result.end);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.ops.size()));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["process_peak_bytes_per_op"] =
      static_cast<double>(usage.ru_maxrss) * 1024 / static_cast<double>(trace.ops.size());
}

BENCHMARK(replay)->Arg(1'000)->Arg(100'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
