// The host back end's file, paced as in a replay: what stands for the NVMe tier there. The computer's own benchmarks
// of these names say how fast the file itself goes; they run where there is a GPU, or no back end.
#include "validate/bench/host_device.h"

namespace memwall {
namespace {

void host_storage(BenchmarkRun& run, bool write) {
  const Bytes largest = std::min(largest_host_buffer(run), static_cast<Bytes>(run.settings().largest_file));
  HostDevice device(run, MiB(1), largest);
  Backend& backend = device.backend();
  const HostBuffer file(backend, PlaceClass::file, largest), memory(backend, PlaceClass::pinned, largest);
  const std::uint64_t tag = run.settings().seed;
  backend.fill(write ? memory.get() : file.get(), tag);
  const auto read = [&](Bytes bytes) {
    backend.storage_io(0, kStorageStream, file.read(bytes), memory.written(bytes), bytes);
    return device.times_of(0).length();
  };
  for (const Bytes bytes : sizes_up_to(largest, KiB(64))) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}});
    m.bytes = static_cast<double>(bytes);
    m.note = "paced; " + value_of(backend.environment(), "host_backend.file");
    if (write) {
      run.sample(m, [&] {
        backend.storage_io(0, kStorageStream, memory.read(bytes), file.written(bytes), bytes);
        return device.times_of(0).length();
      });
      poison(memory.get(), bytes);
      read(bytes);
    } else {
      poison(memory.get(), bytes);
      run.sample(m, [&] { return read(bytes); });
    }
    verify_pattern(memory.get(), bytes, tag, m);
    run.report(m);
  }
}

const RegisterBenchmark registered_host_storage_read{
    {"storage_read", "reads the file into pinned memory at its stated rate", BenchmarkPlace::host, 15,
     [](BenchmarkRun& run) { host_storage(run, false); }}};
const RegisterBenchmark registered_host_storage_write{
    {"storage_write", "writes pinned memory to the file at its stated rate", BenchmarkPlace::host, 15,
     [](BenchmarkRun& run) { host_storage(run, true); }}};

}  // namespace
}  // namespace memwall
