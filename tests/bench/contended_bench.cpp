// How many transfers per second does the engine share a contended link among? Bare, and with every change of rates and
// memory seen by an observer, as a recorded run has it.
#include <benchmark/benchmark.h>

#include "sim/engine/simulation.h"
#include "tests/bench/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class Counter : public Observer {
 public:
  void on_link_rate(Time, int, double) override { ++changes; }
  std::uint64_t changes = 0;
};

void contended(benchmark::State& state, bool recorded) {
  const Trace trace = contended_program(100'000);
  const Machine machine = test_machine();
  Counter counter;
  SimulationOptions options;
  if (recorded) options.observer = &counter;
  for (auto _ : state) benchmark::DoNotOptimize(simulate(trace, machine, options).end);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.ops.size()));
  state.counters["rate_changes"] = static_cast<double>(counter.changes);
}

BENCHMARK_CAPTURE(contended, bare, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(contended, observed, true)->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
