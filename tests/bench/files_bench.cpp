// How fast are files read and written? Traces and runs of 10 M ops; Kineto captures from MEMWALL_SHARED.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/trace/trace.h"
#include "tests/bench/step_program.h"
#include "tests/support/shared_data.h"
#include "tests/support/test_machine.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::size_t kOps = 10'000'000;

std::filesystem::path scratch(const char* name) { return std::filesystem::temp_directory_path() / name; }

void report_size(benchmark::State& state, const std::filesystem::path& file) {
  state.counters["file_MB"] = static_cast<double>(std::filesystem::file_size(file)) / 1e6;
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kOps));
}

void trace_write(benchmark::State& state) {
  const Trace trace = bench_program(kOps);
  for (auto _ : state) write_trace(trace, scratch("memwall_bench.mwt"));
  report_size(state, scratch("memwall_bench.mwt"));
}
BENCHMARK(trace_write)->Unit(benchmark::kMillisecond)->Iterations(1);

void trace_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(read_trace(scratch("memwall_bench.mwt")));
  report_size(state, scratch("memwall_bench.mwt"));
  std::filesystem::remove(scratch("memwall_bench.mwt"));
}
BENCHMARK(trace_read)->Unit(benchmark::kMillisecond)->Iterations(1);

void run_simulate_and_record(benchmark::State& state) {
  for (auto _ : state) {
    const Run run = simulate_and_record(bench_program(kOps), test_machine(), {});
    state.PauseTiming();
    write_run(run, scratch("memwall_bench.h5"));
    state.ResumeTiming();
  }
  report_size(state, scratch("memwall_bench.h5"));
}
BENCHMARK(run_simulate_and_record)->Unit(benchmark::kMillisecond)->Iterations(1);

void run_write(benchmark::State& state) {
  const Run run = simulate_and_record(bench_program(kOps), test_machine(), {});
  for (auto _ : state) write_run(run, scratch("memwall_bench.h5"));
  report_size(state, scratch("memwall_bench.h5"));
}
BENCHMARK(run_write)->Unit(benchmark::kMillisecond)->Iterations(1);

void run_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(read_run(scratch("memwall_bench.h5")));
  report_size(state, scratch("memwall_bench.h5"));
  std::filesystem::remove(scratch("memwall_bench.h5"));
}
BENCHMARK(run_read)->Unit(benchmark::kMillisecond)->Iterations(1);

// `bytes` is what a person sees on disk: of a .gz the compressed size, with the JSON's beside it.
void kineto(benchmark::State& state, const std::filesystem::path& file) {
  std::size_t ops = 0;
  for (auto _ : state) ops = import_timed_capture(read_kineto(file)).trace.ops.size();
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(file));
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["file_MB"] = static_cast<double>(bytes) / 1e6;
  state.counters["ops"] = static_cast<double>(ops);
}

[[maybe_unused]] const int registered = [] {
  const auto data = shared_data();
  if (!data) return 0;
  for (const char* name :
       {"vgg13_h100_bs512_train.json", "recommender_2xv100.json.gz", "resnet50_v100_bs32_2021.json.gz"})
    benchmark::RegisterBenchmark((std::string("import/") + name).c_str(), kineto, *data / "traces" / "kineto" / name)
        ->Unit(benchmark::kMillisecond);
  return 0;
}();

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
