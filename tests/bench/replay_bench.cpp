// How many ops per second does the engine replay, and how much memory does an op take?
//
// The program: half kernels (each a flow on HBM), a quarter allocs, a quarter frees, on one
// stream, with the host a little ahead of the device; `pytorch` allocator; no run file.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "sim/simulation.h"
#include "sim/trace_builder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace {

Trace program(std::size_t ops) {
  TraceBuilder builder;
  Trace& trace = builder.trace();
  trace.knowledge.timing = trace.knowledge.allocations = true;
  trace.constants.launch_latency[0] = microseconds(2);
  trace.constants.stream_gap[0][0] = microseconds(1);
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  trace.ops.reserve(ops);
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.host_cost = microseconds(5);
  kernel.duration = microseconds(6);
  kernel.bytes = 3'000'000;
  std::uint64_t seed = 1;
  std::vector<StorageId> live;
  for (std::size_t i = 0; i < ops / 4; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    const Bytes bytes = Bytes{512} << (seed >> 60);  // 512 B to 16 MiB
    const StorageId storage = builder.add_storage(bytes, StorageKind::activation, "hbm", "");
    builder.alloc(storage, 0);
    live.push_back(storage);
    builder.append(kernel);
    builder.append(kernel);
    // A stack that empties and fills again, as forward and backward do.
    builder.free(live.back(), 0);
    live.pop_back();
  }
  return std::move(builder).finish();
}

void replay(benchmark::State& state) {
  const Trace trace = program(static_cast<std::size_t>(state.range(0)));
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

}  // namespace
}  // namespace memwall
