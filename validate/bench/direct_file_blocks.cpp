// Where a device saturates: files read and written past the page cache, by size and number of requests.
#include <algorithm>

#include "validate/bench/filled_file.h"

namespace memwall {
namespace {

constexpr std::size_t kDirectFileBytes = std::size_t{256} << 20;
// One operation is many requests, so that it is the steady state that is timed.
constexpr std::size_t kRounds = 8, kLeast = std::size_t{1} << 20, kMost = std::size_t{64} << 20;

void measure_case(BenchmarkRun& run, FilledFile& filled, bool write, const DirectFileSettings& settings) {
  DirectFile handle(filled.path(), settings);
  const std::size_t wanted = std::clamp(settings.block * settings.depth * kRounds, kLeast, kMost);
  const std::size_t bytes = std::min(wanted, filled.bytes());
  Measurement m = run.row({{"block", std::to_string(settings.block)},
                           {"depth", std::to_string(settings.depth)},
                           {"method", handle.method()}});
  m.bytes = static_cast<double>(bytes);
  if (write)
    filled.measure_writes(run, handle, bytes, m);
  else
    filled.measure_reads(run, handle, bytes, m);
  run.report(m);
}

void file_direct(BenchmarkRun& run, bool write) {
  FilledFile filled(run, write ? "file_write_direct" : "file_read_direct", kDirectFileBytes);
  const bool has_ring = filled.file().method().starts_with("io_uring");
  for (const bool io_uring : {true, false}) {
    if (io_uring && !has_ring) continue;
    for (const std::size_t block : {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20})
      for (const unsigned depth : {1u, 4u, 16u, 64u}) {
        if (run.out_of_time()) return;
        measure_case(run, filled, write, {block, depth, io_uring, true});
      }
  }
}

const RegisterBenchmark registered_file_read_direct{
    {"file_read_direct", "reads a file past the page cache, by size and number of requests in flight",
     BenchmarkPlace::computer, 80, [](BenchmarkRun& run) { file_direct(run, false); }}};
const RegisterBenchmark registered_file_write_direct{
    {"file_write_direct", "writes a file past the page cache, by size and number of requests in flight",
     BenchmarkPlace::computer, 80, [](BenchmarkRun& run) { file_direct(run, true); }}};

}  // namespace
}  // namespace memwall
