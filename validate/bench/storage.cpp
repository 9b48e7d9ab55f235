// The NVMe tier as a replay uses it: whole transfers through a direct file with its default settings.
#include "validate/bench/filled_file.h"

namespace memwall {
namespace {

constexpr std::size_t kStorageFileBytes = std::size_t{1} << 30;
constexpr std::size_t kSmallestBlock = std::size_t{64} << 10, kLargestBlock = std::size_t{256} << 20;

void storage(BenchmarkRun& run, bool write) {
  FilledFile filled(run, write ? "storage_write" : "storage_read", kStorageFileBytes);
  for (std::size_t bytes = kSmallestBlock; bytes <= std::min(kLargestBlock, filled.bytes()); bytes *= 4) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}});
    m.bytes = static_cast<double>(bytes);
    m.note = filled.file().method();
    if (write)
      filled.measure_writes(run, filled.file(), bytes, m);
    else
      filled.measure_reads(run, filled.file(), bytes, m);
    run.report(m);
  }
}

const RegisterBenchmark registered_storage_read{
    {"storage_read", "reads a file into host memory as a replay does, one whole transfer at a time",
     BenchmarkPlace::computer, 15, [](BenchmarkRun& run) { storage(run, false); }}};
const RegisterBenchmark registered_storage_write{
    {"storage_write", "writes host memory to a file as a replay does, one whole transfer at a time",
     BenchmarkPlace::computer, 15, [](BenchmarkRun& run) { storage(run, true); }}};

}  // namespace
}  // namespace memwall
