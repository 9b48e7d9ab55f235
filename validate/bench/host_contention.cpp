// What kernels and copies of the host back end do to each other, and transfers of a file through pinned memory.
#include <algorithm>

#include "validate/bench/host_device.h"

namespace memwall {
namespace {

// A copy that outlasts any kernel below, and kernels that outlast it.
constexpr Bytes kCopy = MiB(16);

// Op 0 is the kernel, op 1 the copy. The one that is not timed is on its way before and until after the other.
struct Contenders {
  Contenders(HostDevice& d, Bytes kernel_bytes, double kernel_flops)
      : device(d),
        from(d.backend(), PlaceClass::pinned, kCopy),
        to(d.backend(), PlaceClass::device, kCopy),
        work{OperatorClass::elementwise, DataType::fp32, kernel_flops, kernel_bytes} {}

  void kernel(OpId id) { device.backend().kernel(id, kComputeStream, work, {}); }
  void copy(OpId id, Bytes bytes) { device.backend().copy(id, kInStream, from.read(bytes), to.written(bytes), bytes); }

  double kernel_alone() {
    kernel(0);
    return device.times_of(0).length();
  }
  double copy_alone() {
    copy(0, MiB(1));
    return device.times_of(0).length();
  }
  double kernel_beside_copies() {
    Backend& backend = device.backend();
    for (OpId count = 1; count <= kMost; count *= 2) {
      copy(1, KiB(4));
      backend.record(0, kInStream);
      for (OpId i = 0; i < count; ++i) copy(2 + i, kCopy);
      backend.wait(0, kComputeStream);
      kernel(0);
      const auto timed = device.times_of(0);
      if (device.times_of(1 + count).end >= timed.end) return timed.length();
    }
    throw std::runtime_error("copies could not be kept up for as long as the kernel runs.");
  }
  double copy_beside_kernels() {
    Backend& backend = device.backend();
    for (OpId count = 1; count <= kMost; count *= 2) {
      kernel(1);
      backend.record(0, kComputeStream);
      for (OpId i = 0; i < count; ++i) kernel(2 + i);
      backend.wait(0, kInStream);
      copy(0, MiB(1));
      const auto timed = device.times_of(0);
      if (device.times_of(1 + count).end >= timed.end) return timed.length();
    }
    throw std::runtime_error("kernels could not be kept up for as long as the copy runs.");
  }

  static constexpr OpId kMost = 32;
  HostDevice& device;
  HostBuffer from, to;
  KernelWork work;
};

void measure_interference(BenchmarkRun& run, Bytes kernel_bytes, double kernel_flops) {
  HostDevice device(run, kCopy);
  Contenders contenders(device, kernel_bytes, kernel_flops);
  const auto row = [&](const char* measured, const char* beside, Bytes bytes, double (Contenders::*seconds)()) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}, {"measured", measured}, {"beside", beside}});
    m.bytes = static_cast<double>(bytes);
    run.sample(m, [&] { return (contenders.*seconds)(); });
    run.report(m);
  };
  row("kernel", "none", kernel_bytes, &Contenders::kernel_alone);
  row("kernel", "copy", kernel_bytes, &Contenders::kernel_beside_copies);
  row("copy", "none", MiB(1), &Contenders::copy_alone);
  row("copy", "kernel", MiB(1), &Contenders::copy_beside_kernels);
}

void interference_copy_hbm_kernel(BenchmarkRun& run) { measure_interference(run, MiB(32), 0); }
void interference_copy_sm_kernel(BenchmarkRun& run) { measure_interference(run, 0, 1e8); }

// From the file into pinned memory and on into the arena, or back, one after the other as in a schedule.
void measure_staged(BenchmarkRun& run, bool to_device) {
  const Bytes largest = std::min(largest_host_buffer(run), static_cast<Bytes>(run.settings().largest_file));
  HostDevice device(run, largest, largest);
  Backend& backend = device.backend();
  const HostBuffer file(backend, PlaceClass::file, largest), staging(backend, PlaceClass::pinned, largest);
  const HostBuffer memory(backend, PlaceClass::device, largest);
  const std::uint64_t tag = run.settings().seed;
  for (const Bytes bytes : sizes_up_to(largest, MiB(1))) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}});
    m.bytes = static_cast<double>(bytes);
    backend.fill(to_device ? file.get() : memory.get(), tag);
    poison(staging.get(), bytes);
    if (to_device) poison(memory.get(), bytes);
    run.sample(m, [&] {
      if (to_device) {
        backend.storage_io(0, kStorageStream, file.read(bytes), staging.written(bytes), bytes);
        backend.record(0, kStorageStream);
        backend.wait(0, kInStream);
        backend.copy(1, kInStream, staging.read(bytes), memory.written(bytes), bytes);
      } else {
        backend.copy(0, kOutStream, memory.read(bytes), staging.written(bytes), bytes);
        backend.record(0, kOutStream);
        backend.wait(0, kStorageStream);
        backend.storage_io(1, kStorageStream, staging.read(bytes), file.written(bytes), bytes);
      }
      return device.times_of(1).end - device.times_of(0).start;
    });
    if (!to_device) {  // what is in the file is seen when it is read
      poison(staging.get(), bytes);
      backend.storage_io(0, kStorageStream, file.read(bytes), staging.written(bytes), bytes);
      backend.synchronize_device();
    }
    verify_pattern(to_device ? memory.get() : staging.get(), bytes, tag, m);
    run.report(m);
  }
}

void storage_hbm_staged(BenchmarkRun& run) { measure_staged(run, true); }
void hbm_storage_staged(BenchmarkRun& run) { measure_staged(run, false); }

const RegisterBenchmark registered_interference_copy_hbm_kernel{
    {"interference_copy_hbm_kernel", "a kernel that moves bytes and a copy, each alone and beside the other",
     BenchmarkPlace::host, 60, interference_copy_hbm_kernel}};
const RegisterBenchmark registered_interference_copy_sm_kernel{
    {"interference_copy_sm_kernel", "a kernel that only computes and a copy, each alone and beside the other",
     BenchmarkPlace::host, 60, interference_copy_sm_kernel}};
const RegisterBenchmark registered_storage_hbm_staged{{"storage_hbm_staged",
                                                       "a file through pinned memory into the arena, by size",
                                                       BenchmarkPlace::host, 45, storage_hbm_staged}};
const RegisterBenchmark registered_hbm_storage_staged{{"hbm_storage_staged",
                                                       "the arena through pinned memory into a file, by size",
                                                       BenchmarkPlace::host, 45, hbm_storage_staged}};

}  // namespace
}  // namespace memwall
