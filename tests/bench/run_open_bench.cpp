// How soon is a run on the screen, and what does it cost to keep it there? MEMWALL_BENCH_OPS replaces the sizes.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "gui/model/guarded_open.h"
#include "tests/bench/step_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"
#include "traces/run/run_source.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::size_t kPixels = 1920;

std::filesystem::path run_of(std::size_t ops) {
  return std::filesystem::temp_directory_path() / ("memwall_open_bench_" + std::to_string(ops) + ".h5");
}

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Spans as a viewer counts them: calls, work, copies on engines.
std::uint64_t spans_of(const RunSource& source) {
  std::uint64_t spans = 0;
  for (const RunLane& lane : source.outline().lanes) spans += lane.spans;
  return spans;
}

void write_open_run(benchmark::State& state) {
  const auto ops = static_cast<std::size_t>(state.range(0));
  const Run run = simulate_and_record(bench_program(ops), test_machine(), {});
  for (auto _ : state) write_run(run, run_of(ops));
  state.counters["file_MB"] = static_cast<double>(std::filesystem::file_size(run_of(ops))) / 1e6;
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
}

void probe(benchmark::State& state) {
  const auto path = run_of(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state)
    if (const auto refusal = gui::refused_by_probe(MEMWALL_PROBE, path)) state.SkipWithError(refusal->c_str());
}

// What the first frame shows: outline, lanes at one bucket per pixel, memory, links.
void first_frame(const RunSource& source) {
  const RunOutline& outline = source.outline();
  const Time end = outline.run.result.end;
  for (std::uint32_t lane = 0; lane < outline.lanes.size(); ++lane)
    if (const int levels = outline.lanes[lane].levels; levels > 0)
      benchmark::DoNotOptimize(source.cells(lane, static_cast<std::uint8_t>(levels > 12 ? levels - 12 : 0), 0, 4096));
  for (std::uint32_t t = 0; t < outline.run.machine.tiers.size(); ++t)
    benchmark::DoNotOptimize(source.memory(t, Time{}, end, kPixels));
  for (std::uint32_t l = 0; l < outline.run.machine.links.size(); ++l)
    benchmark::DoNotOptimize(source.link_rates(l, Time{}, end, kPixels));
}

void open_to_first_frame(benchmark::State& state) {
  const auto path = run_of(static_cast<std::size_t>(state.range(0)));
  const std::size_t before = resident_bytes();
  std::unique_ptr<RunSource> source;
  for (auto _ : state) {
    if (const auto refusal = gui::refused_by_probe(MEMWALL_PROBE, path)) state.SkipWithError(refusal->c_str());
    source = open_run(path);
    first_frame(*source);
  }
  const auto spans = static_cast<double>(spans_of(*source));
  state.counters["spans"] = spans;
  state.counters["source_bytes_per_span"] = static_cast<double>(source->resident_bytes()) / spans;
  state.counters["process_grew_MB"] = (static_cast<double>(resident_bytes()) - static_cast<double>(before)) / 1e6;
}

void read_block(benchmark::State& state) {
  const auto source = open_run(run_of(static_cast<std::size_t>(state.range(0))));
  const auto blocks = static_cast<std::uint32_t>((source->outline().ops + kSpanBlock - 1) / kSpanBlock);
  std::uint32_t block = 0;
  for (auto _ : state) benchmark::DoNotOptimize(source->spans((block += 7919) % blocks));
}

void zoomed_cells(benchmark::State& state) {
  const auto source = open_run(run_of(static_cast<std::size_t>(state.range(0))));
  const std::uint64_t buckets =
      static_cast<std::uint64_t>(source->outline().run.result.end.count()) >> source->outline().lanes[1].base_log2;
  std::uint64_t first = 0;
  for (auto _ : state) {
    first = (first + 104729) % buckets;
    benchmark::DoNotOptimize(source->cells(1, 0, first, first + kPixels));
  }
}

void one_op(benchmark::State& state) {
  const auto source = open_run(run_of(static_cast<std::size_t>(state.range(0))));
  OpId id = 0;
  for (auto _ : state) benchmark::DoNotOptimize(source->op((id += 104729) % static_cast<OpId>(source->outline().ops)));
}

void followers_of_an_op(benchmark::State& state) {
  const auto source = open_run(run_of(static_cast<std::size_t>(state.range(0))));
  for (auto _ : state) benchmark::DoNotOptimize(source->followers(1000, 12));
}

void remove_run(benchmark::State& state) {
  for (auto _ : state) std::filesystem::remove(run_of(static_cast<std::size_t>(state.range(0))));
}

[[maybe_unused]] const int registered = [] {
  std::vector<std::int64_t> sizes = {100'000, 1'000'000, 10'000'000};
  if (const char* more = std::getenv("MEMWALL_BENCH_OPS")) sizes = {std::atoll(more)};
  for (const std::int64_t ops : sizes) {
    const auto add = [&](const char* name, void (*run)(benchmark::State&), int times) {
      benchmark::RegisterBenchmark((std::string("run_open/") + name).c_str(), run)
          ->Arg(ops)
          ->Unit(benchmark::kMillisecond)
          ->Iterations(times);
    };
    add("write", write_open_run, 1);
    add("probe", probe, 3);
    add("open_to_first_frame", open_to_first_frame, 3);
    add("read_block", read_block, 50);
    add("zoomed_cells", zoomed_cells, 50);
    add("one_op", one_op, 50);
    add("followers", followers_of_an_op, 3);
    add("remove", remove_run, 1);
  }
  return 0;
}();

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
