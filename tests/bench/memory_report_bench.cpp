// How long does it take to say what the allocations of a recording are for, and where the memory goes?
#include <benchmark/benchmark.h>

#include "models/workload/memory/memory_report.h"
#include "tests/support/training_scene.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Steps as TrainingScene makes them, with `stacks` different lines of the model, until there are 100,000 events.
RecordingBuilder hundred_thousand_events(int stacks) {
  TrainingScene s;
  std::vector<StackId> lines;
  for (int line = 1; line <= stacks; ++line) lines.push_back(s.forward_at(line));
  Address gradient = 0;
  while (s.b.now() < 100'000) {
    std::vector<Address> saved;
    if (gradient != 0) s.b.event(MemoryEvent::Action::free_requested, gradient, 1000, s.zero_grad);
    for (int i = 0; i < 1000; ++i) saved.push_back(s.b.alloc(1000, lines[static_cast<std::size_t>(i % stacks)]));
    gradient = s.b.alloc(1000, s.accumulate);
    for (const Address address : saved) {
      s.b.event(MemoryEvent::Action::free_requested, address, 1000, s.backward);
      s.b.event(MemoryEvent::Action::free_completed, address, 1000, s.backward);
    }
    s.b.alloc(8, s.optimizer);
  }
  return s.b;
}

void tabulate(benchmark::State& state) {
  RecordingBuilder b = hundred_thousand_events(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(tabulate_allocations(b.recording(), b.device(), {}));
  state.SetItemsProcessed(state.iterations() * b.now());
}
BENCHMARK(tabulate)->Name("memory/tabulate_100k_events/stacks")->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

void report(benchmark::State& state) {
  RecordingBuilder b = hundred_thousand_events(static_cast<int>(state.range(0)));
  const AllocationTable table = tabulate_allocations(b.recording(), b.device(), {});
  for (auto _ : state) {
    benchmark::DoNotOptimize(live_set_at(b.recording(), table, 1500));
    benchmark::DoNotOptimize(find_leaks(b.recording(), table));
    benchmark::DoNotOptimize(find_late_frees(table, 1500));
  }
  state.SetItemsProcessed(state.iterations() * b.now());
}
BENCHMARK(report)->Name("memory/report_100k_events/stacks")->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
