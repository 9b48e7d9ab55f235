// How long do the critical path, the accounting of every instant and a comparison take, and how much memory?
//
// 1 M ops: steps of a GPT (two threads, hand-overs, calls with costs), bench_program (one stream, allocations), and
// eight ranks whose collectives meet. Runs to compare: of one trace with other kernel times, and of two traces.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "gui/model/run_comparison.h"
#include "sim/trace/ranks.h"
#include "sim/trace/scale.h"
#include "tests/bench/step_program.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rank_program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/device_occupancy.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

enum Program : std::int64_t { kGpt, kStream, kRanks };

constexpr std::size_t kOps = 1'000'000;

Trace gpt_trace(std::size_t ops) {
  GptShape shape;
  shape.layers = 24;
  shape.launch_cost = microseconds(4);
  shape.host_gap = microseconds(1);
  shape.allocator_cost = microseconds(1);
  shape.flops_per_second = 1e9;
  const std::size_t step = gpt_step(shape).ops.size();
  shape.steps = static_cast<int>(ops / step) + 1;
  return gpt_step(shape);
}

Trace ranks_trace(std::size_t ops) {
  constexpr std::uint32_t kRankCount = 8;
  std::vector<RankProgram> programs;
  for (std::uint32_t rank = 0; rank < kRankCount; ++rank) {
    RankAuthor author(rank);
    for (std::uint32_t i = 0; i < ops / kRankCount / 9; ++i) {
      for (std::uint32_t k = 0; k < 4; ++k) author.kernel(microseconds(5 + (rank * 7 + i * 3 + k) % 11));
      author.order(0, 1);
      author.meet(i, microseconds(6));
      author.order(1, 0);
    }
    programs.push_back(std::move(author).finish());
  }
  return joined_ranks(std::move(programs));
}

Trace trace_of(std::int64_t program, std::size_t ops = kOps) {
  Trace trace = program == kGpt ? gpt_trace(ops) : program == kStream ? bench_program(ops) : ranks_trace(ops);
  trace.name = "bench";
  return trace;
}

Run run_of(Trace trace) { return simulate_and_record(std::move(trace), test_machine(), {}); }

void per_op(benchmark::State& state, std::size_t ops) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
  state.counters["ops"] = static_cast<double>(ops);
}

void path(benchmark::State& state) {
  const Run run = run_of(trace_of(state.range(0)));
  std::size_t segments = 0;
  for (auto _ : state) segments = critical_path(run).size();
  per_op(state, run.trace->ops.size());
  state.counters["segments"] = static_cast<double>(segments);
}
BENCHMARK(path)->ArgName("program")->DenseRange(kGpt, kRanks)->Unit(benchmark::kMillisecond);

void paths_of_ranks(benchmark::State& state) {
  const Run run = run_of(trace_of(kRanks));
  for (auto _ : state)
    for (std::uint16_t rank = 0; rank < rank_count(run.trace); ++rank)
      benchmark::DoNotOptimize(critical_path_of_rank(run, rank).size());
  per_op(state, run.trace->ops.size());
}
BENCHMARK(paths_of_ranks)->Unit(benchmark::kMillisecond);

void accounting(benchmark::State& state) {
  const Run run = run_of(trace_of(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(account(run).steps.size());
  per_op(state, run.trace->ops.size());
}
BENCHMARK(accounting)->ArgName("program")->DenseRange(kGpt, kRanks)->Unit(benchmark::kMillisecond);

void summary(benchmark::State& state) {
  const Run run = run_of(trace_of(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(summarize(run).ops);
  per_op(state, run.trace->ops.size());
}
BENCHMARK(summary)->ArgName("program")->DenseRange(kGpt, kRanks)->Unit(benchmark::kMillisecond);

// Of `summary`, the part that looks for peaks on the device's clock.
void device_clock(benchmark::State& state) {
  const Run run = run_of(trace_of(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(device_peaks(run).size());
  per_op(state, run.trace->ops.size());
}
BENCHMARK(device_clock)->ArgName("program")->DenseRange(kGpt, kStream)->Unit(benchmark::kMillisecond);

// Pages that the process holds now.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// From a file, as the viewer does it: what stays is the run and what was worked out.
void analysis(benchmark::State& state) {
  const ScratchFolder folder;
  write_run(run_of(trace_of(state.range(0))), folder / "run.h5");
  const auto source = open_run(folder / "run.h5");
  std::shared_ptr<const gui::RunAnalysis> analysis;
  double grown = 0;
  for (auto _ : state) {
    analysis.reset();
    malloc_trim(0);
    const double before = resident_bytes();
    analysis = gui::analyse(*source, {});
    grown = resident_bytes() - before;
  }
  const auto ops = static_cast<double>(analysis->on_path.size());
  per_op(state, analysis->on_path.size());
  state.counters["bytes_per_op"] = grown / ops;
}
BENCHMARK(analysis)->ArgName("program")->DenseRange(kGpt, kRanks)->Unit(benchmark::kMillisecond);

// Every `n`-th kernel is dropped and another put elsewhere: more edits than Myers' algorithm follows.
Trace edited(Trace trace, std::size_t n) {
  const StringId other = trace.strings.intern("another kernel");
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::kernel && id % n == 0) trace.ops[id].name = other;
  trace.name = "edited";
  return trace;
}

enum Pair : std::int64_t { kSameTrace, kFewEdits, kManyEdits };

void comparison(benchmark::State& state) {
  const Trace trace = trace_of(state.range(0));
  const auto of = [](Trace t) {
    return gui::analyse(*source_of(std::make_shared<const Run>(run_of(std::move(t)))), {});
  };
  const auto base = of(trace);
  const auto other = of(state.range(1) == kSameTrace ? scaled(trace, {.kernels = 1.1})
                                                     : edited(trace, state.range(1) == kFewEdits ? 10'000 : 100));
  std::size_t pairs = 0;
  for (auto _ : state) pairs = gui::compare_runs(*base, *other)->pairs.size();
  per_op(state, base->on_path.size());
  state.counters["pairs"] = static_cast<double>(pairs);
}
BENCHMARK(comparison)
    ->ArgNames({"program", "pair"})
    ->ArgsProduct({{kGpt, kStream, kRanks}, {kSameTrace, kFewEdits, kManyEdits}})
    ->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
