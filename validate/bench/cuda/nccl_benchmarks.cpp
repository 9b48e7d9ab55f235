// nccl_COLLECTIVE: collectives of all GPUs of this computer, and of two where there are more, by the bytes of the
// whole buffer (as nccl-tests counts it). A measurement's `bytes` are those that each rank sends: nccl-tests' bus
// bytes, so that bytes per second is the bus bandwidth.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "validate/bench/benchmark.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"
#include "validate/bench/cuda/nccl.h"
#include "validate/bench/cuda/nccl_data.h"

namespace memwall {
namespace {

constexpr unsigned kMostCollectives = 20;  // queued behind held streams; NCCL's own queue is not long
constexpr std::size_t kSmallestNcclBenchmarks = std::size_t{32} << 10, kLargest = std::size_t{1} << 30;

// Everything that one rank owns, on its device.
struct RankResources {
  explicit RankResources(std::size_t bytes) : send(bytes), receive(bytes) {}
  CudaStream stream;
  CudaEvent begin, end;
  StreamGate gate;
  DeviceCheck device_check;
  DeviceBuffer send, receive;
};

void make_current(std::size_t device) { check(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice"); }

// Every other benchmark runs on the first device.
struct FirstDeviceAfterwards {
  ~FirstDeviceAfterwards() { cudaSetDevice(0); }
};

class NcclBenchmark {
 public:
  NcclBenchmark(BenchmarkRun& run, NcclCollective collective, const NcclLibrary& library, int ranks,
                std::size_t largest)
      : run_(run), collective_(collective), communicators_(library.connect(ranks)), largest_(largest) {
    for (int rank = 0; rank < ranks; ++rank) {
      make_current(static_cast<std::size_t>(rank));
      resources_.push_back(std::make_unique<RankResources>(largest));
    }
  }

  void measure() {
    std::vector<std::size_t> sizes = sizes_between(kSmallestNcclBenchmarks, largest_, 4);
    if (sizes.back() != largest_) sizes.push_back(largest_);
    for (const std::size_t bytes : sizes) {
      if (run_.out_of_time()) return;
      measure_size(bytes);
    }
  }

 private:
  std::size_t ranks() const { return resources_.size(); }

  void measure_size(std::size_t most_bytes) {
    const std::size_t elements = most_bytes / sizeof(float) / ranks() * ranks();
    const std::size_t bytes = elements * sizeof(float);
    Measurement m = run_.row({{"bytes", std::to_string(bytes)}, {"ranks", std::to_string(ranks())}});
    m.bytes = nccl_wire_bytes(collective_, static_cast<double>(bytes), static_cast<int>(ranks()));
    fill(elements);
    submit(elements);  // outside of held streams: the first one connects the ranks
    synchronize();
    const unsigned count = operations_for(seconds(elements, 1), 1e-3, kMostCollectives);
    run_.sample(m, [&] { return seconds(elements, count); });
    fill(elements);
    submit(elements);
    verify(elements, m);
    run_.report(m);
  }

  void submit(std::size_t elements) const {
    std::vector<NcclOperands> operands;
    for (const auto& r : resources_) operands.push_back({r->send.data(), r->receive.data(), r->stream.get()});
    communicators_->run(collective_, elements, operands);
  }

  void synchronize() const {
    for (const auto& r : resources_) r->stream.synchronize();
  }

  // Of one collective, among `count` that are queued behind held streams: the slowest rank's.
  double seconds(std::size_t elements, unsigned count) {
    for (unsigned attempt = 0; attempt < kGateAttempts; ++attempt) {
      try {
        for (std::size_t rank = 0; rank < ranks(); ++rank) {
          make_current(rank);
          resources_[rank]->gate.close(resources_[rank]->stream.get());
          resources_[rank]->begin.record(resources_[rank]->stream.get());
        }
        for (unsigned i = 0; i < count; ++i) submit(elements);
        for (std::size_t rank = 0; rank < ranks(); ++rank) {
          make_current(rank);
          resources_[rank]->end.record(resources_[rank]->stream.get());
        }
      } catch (...) {
        open_all();
        throw;
      }
      open_all();
      synchronize();
      if (std::any_of(resources_.begin(), resources_.end(), [](const auto& r) { return r->gate.gave_up(); })) continue;
      double longest = 0;
      for (const auto& r : resources_) longest = std::max(longest, r->end.seconds_since(r->begin));
      return longest / count;
    }
    throw std::runtime_error("collectives could not be queued behind held streams.");
  }

  void open_all() const {
    for (const auto& r : resources_) r->gate.open();
  }

  void fill(std::size_t elements) const {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      make_current(rank);
      const RankResources& r = *resources_[rank];
      fill_nccl(collective_, r.send.as<float>(), r.receive.as<float>(), elements, static_cast<int>(rank),
                static_cast<int>(ranks()), r.stream.get());
    }
    synchronize();
  }

  void verify(std::size_t elements, Measurement& m) const {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      make_current(rank);
      const RankResources& r = *resources_[rank];
      check_nccl(collective_, r.receive.as<float>(), elements, static_cast<int>(rank), static_cast<int>(ranks()),
                 r.device_check.begin(r.stream.get()), r.stream.get());
      const std::string verdict = r.device_check.verdict(r.stream.get());
      if (verdict.empty()) continue;
      m.status = MeasurementStatus::failed;
      m.note = "rank " + std::to_string(rank) + ": " + verdict;
    }
  }

  BenchmarkRun& run_;
  NcclCollective collective_;
  FirstDeviceAfterwards first_device_;
  std::vector<std::unique_ptr<RankResources>> resources_;
  std::unique_ptr<NcclRanks> communicators_;  // go before the streams and buffers that they use
  std::size_t largest_;
};

void measure(BenchmarkRun& run, NcclCollective collective) {
  require_device();
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (devices < 2) throw NotApplicable("needs two GPUs, found " + std::to_string(devices));
  std::string why_not;
  const auto library = NcclLibrary::load(why_not);
  if (!library) throw NotApplicable(why_not);
  const std::size_t largest = largest_device_buffer(run, 2, kLargest);
  NcclBenchmark(run, collective, *library, devices, largest).measure();
  if (devices > 2 && !run.out_of_time()) NcclBenchmark(run, collective, *library, 2, largest).measure();
}

void nccl_all_gather(BenchmarkRun& run) { measure(run, NcclCollective::all_gather); }
void nccl_reduce_scatter(BenchmarkRun& run) { measure(run, NcclCollective::reduce_scatter); }
void nccl_all_reduce(BenchmarkRun& run) { measure(run, NcclCollective::all_reduce); }

const RegisterBenchmark registered_nccl_all_gather{
    {"nccl_all_gather", "NCCL all-gather of all GPUs by bytes: bus bandwidth and latency of the fabric.",
     BenchmarkPlace::cuda, 15, nccl_all_gather}};
const RegisterBenchmark registered_nccl_reduce_scatter{
    {"nccl_reduce_scatter", "NCCL reduce-scatter of all GPUs by bytes: bus bandwidth and latency of the fabric.",
     BenchmarkPlace::cuda, 15, nccl_reduce_scatter}};
const RegisterBenchmark registered_nccl_all_reduce{
    {"nccl_all_reduce", "NCCL all-reduce of all GPUs by bytes: bus bandwidth and latency of the fabric.",
     BenchmarkPlace::cuda, 16, nccl_all_reduce}};

}  // namespace
}  // namespace memwall
