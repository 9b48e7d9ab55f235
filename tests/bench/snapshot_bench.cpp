// How fast a memory snapshot is read, MB/s on one core, and how much memory that takes.
//
//   memwall_bench --benchmark_filter=snapshot
//   MEMWALL_BENCH_SNAPSHOT_MB=1000 memwall_bench --benchmark_filter=snapshot_large
// The large one is generated in the folder for temporary files and read by a process of its own, whose peak resident
// memory is shown. The real files are those of the shared captures, where there are any.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "models/workload/import/snapshot/snapshot_reader.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shared_data.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

void read_file(benchmark::State& state, const std::filesystem::path& path, std::uintmax_t bytes) {
  std::size_t events = 0;
  for (auto _ : state) {
    const MemoryRecording recording = read_snapshot(path);
    events = recording.devices.empty() ? 0 : recording.devices[0].events.size();
  }
  state.counters["events"] = static_cast<double>(events);
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void snapshot_real(benchmark::State& state, const char* name) {
  const auto data = shared_data();
  if (!data) return state.SkipWithError("no shared data");
  const std::filesystem::path path = *data / "traces/snapshots" / name;
  read_file(state, path, std::filesystem::file_size(path));
}

void snapshot_synthetic(benchmark::State& state, bool packed) {
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "a.pickle";
  write_large_snapshot(path, 10'000'000);
  const std::uintmax_t bytes = std::filesystem::file_size(path);
  if (packed) write_content(path, gzipped(content_of(path)));
  read_file(state, path, bytes);
}

// In a child, so that its peak is its own. False: it could not be read.
bool measure_reading(const std::filesystem::path& path, rusage& usage) {
  const pid_t child = fork();
  if (child == 0) {
    const MemoryRecording recording = read_snapshot(path);
    _exit(recording.devices.empty() ? 1 : 0);
  }
  int status = 0;
  return child > 0 && wait4(child, &status, 0, &usage) == child && status == 0;
}

void snapshot_large(benchmark::State& state) {
  const char* text = std::getenv("MEMWALL_BENCH_SNAPSHOT_MB");
  const std::uint64_t megabytes = text != nullptr ? std::strtoull(text, nullptr, 10) : 100;
  const ScratchFolder folder;
  const std::filesystem::path path = folder / "large.pickle";
  write_large_snapshot(path, megabytes * 1'000'000);
  for (auto _ : state) {
    rusage usage{};
    if (!measure_reading(path, usage)) return state.SkipWithError("the file was not read");
    state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
    state.counters["cpu_ms"] = 1e3 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                               1e-3 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(std::filesystem::file_size(path)) * state.iterations());
}

BENCHMARK_CAPTURE(snapshot_real, from_empty, "lm_small_ctx100_train_from_empty.pickle")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(snapshot_real, ctx128, "lm_medium_ctx128_train.pickle")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(snapshot_real, ctx256, "lm_medium_ctx256_train.pickle")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(snapshot_real, expandable, "lm_xl_ctx128_forward_expandable.pickle")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(snapshot_synthetic, plain, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(snapshot_synthetic, gzip, true)->Unit(benchmark::kMillisecond);
BENCHMARK(snapshot_large)->Unit(benchmark::kMillisecond)->Iterations(1)->UseRealTime();

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
