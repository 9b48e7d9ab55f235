// Copies of several host back ends at the same time: ranks with a device each, on one computer.
#include "validate/bench/host_device.h"
#include "validate/bench/process_rows.h"

namespace memwall {
namespace {

class CopyOfDevice final : public ProcessWork {
 public:
  struct Arguments {
    Bytes bytes = 0;
    bool to_device = true;
    std::uint64_t seed = 0;
  };
  CopyOfDevice(const Arguments& a, unsigned index)
      : bytes_(a.bytes),
        tag_(a.seed + index),
        to_device_(a.to_device),
        device_(HostDevice::settings_of(a.bytes)),
        on_host_(device_.backend(), PlaceClass::pinned, a.bytes),
        on_device_(device_.backend(), PlaceClass::device, a.bytes) {
    device_.backend().fill(from().get(), tag_);
    poison(to().get(), bytes_);
  }
  void work(unsigned, unsigned repetitions) override {
    for (unsigned i = 0; i < repetitions; ++i) {
      device_.backend().copy(0, to_device_ ? kInStream : kOutStream, from().read(bytes_), to().written(bytes_), bytes_);
      device_.backend().synchronize_device();
    }
  }
  std::string fault() override {
    Measurement m;
    verify_pattern(to().get(), bytes_, tag_, m);
    return m.note;
  }

 private:
  const HostBuffer& from() const { return to_device_ ? on_host_ : on_device_; }
  const HostBuffer& to() const { return to_device_ ? on_device_ : on_host_; }

  Bytes bytes_;
  std::uint64_t tag_;
  bool to_device_;
  HostDevice device_;
  HostBuffer on_host_, on_device_;
};

void measure_devices(BenchmarkRun& run, bool to_device) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  const std::size_t bytes = bytes_of_process(run, 4, kMost);
  std::vector<ProcessCase> cases;
  for (const unsigned processes : kProcessCounts)
    cases.push_back({processes, 1, {}});  // paced: as long for one as for many
  measure_processes<CopyOfDevice>(run, cases, {.bytes = static_cast<double>(bytes)},
                                  {static_cast<Bytes>(bytes), to_device, run.settings().seed});
}

void copy_host_hbm_processes(BenchmarkRun& run) { measure_devices(run, true); }
void copy_hbm_host_processes(BenchmarkRun& run) { measure_devices(run, false); }

const RegisterBenchmark registered_copy_host_hbm_processes{
    {"copy_host_hbm_processes",
     "copies of pinned host memory by 1, 2, 4 and 8 processes at once, each to its own arena", BenchmarkPlace::host, 54,
     copy_host_hbm_processes}};
const RegisterBenchmark registered_copy_hbm_host_processes{
    {"copy_hbm_host_processes",
     "copies to pinned host memory by 1, 2, 4 and 8 processes at once, each of its own arena", BenchmarkPlace::host, 54,
     copy_hbm_host_processes}};

}  // namespace
}  // namespace memwall
