#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>

#include "validate/bench/cuda/device_timestamps.h"

#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr unsigned kGapKernels = 200;             // in one sample
constexpr std::uint64_t kClockStep = 2'000;       // nanoseconds; %globaltimer advances in smaller steps
constexpr unsigned kExchanges = 200;              // in one observation
constexpr std::uint64_t kPatience = 500'000'000;  // nanoseconds until the device gives up waiting for the host

__device__ std::uint64_t device_now() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)::"memory");
  return now;
}

__global__ void do_nothing(const void*, const void*, void*, std::int64_t, float) {}

__global__ void spin_and_timestamp(KernelTimestamp* stamp, std::uint64_t cycles) {
  const std::uint64_t start = device_now();
  const long long first = clock64();
  while (static_cast<std::uint64_t>(clock64() - first) < cycles) {
  }
  stamp->start = start;
  stamp->end = device_now();
}

// Answers questions 1 to `questions` with the time when each was seen.
__global__ void sample_device_clock(volatile std::uint64_t* words, unsigned questions, std::uint64_t patience) {
  for (unsigned question = 1; question <= questions; ++question) {
    const std::uint64_t start = device_now();
    std::uint64_t now = start;
    while (words[0] < question) {
      now = device_now();
      if (now - start > patience) {
        words[3] = 1;
        __threadfence_system();
        return;
      }
    }
    words[2] = device_now();
    __threadfence_system();
    words[1] = question;
  }
}

std::uint64_t load(const std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}

}  // namespace

void launch_empty(cudaStream_t stream) {
  do_nothing<<<1, 1, 0, stream>>>(nullptr, nullptr, nullptr, 0, 0.0f);
  check(cudaGetLastError(), "launch of an empty kernel");
}

void launch_timestamped(KernelTimestamp* stamp, std::uint64_t cycles, cudaStream_t stream) {
  spin_and_timestamp<<<1, 1, 0, stream>>>(stamp, cycles);
  check(cudaGetLastError(), "launch of a kernel that notes its time");
}

TimestampBuffer::TimestampBuffer(std::size_t size) : memory_(size * sizeof(KernelTimestamp)), size_(size) { clear(); }

void TimestampBuffer::clear() const {
  check(cudaMemset(memory_.data(), 0, size_ * sizeof(KernelTimestamp)), "cudaMemset of stamps");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // streams do not wait for the default one
}

std::vector<KernelTimestamp> TimestampBuffer::read() const {
  std::vector<KernelTimestamp> stamps(size_);
  check(cudaMemcpy(stamps.data(), memory_.data(), size_ * sizeof(KernelTimestamp), cudaMemcpyDeviceToHost),
        "cudaMemcpy of stamps");
  return stamps;
}

double mean_gap(const std::vector<KernelTimestamp>& stamps) {
  std::int64_t between = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (stamps[i].start == 0 || stamps[i].end < stamps[i].start)
      throw std::runtime_error("kernel " + std::to_string(i) + " did not note its time.");
    if (i == 0) continue;
    if (stamps[i].start + kClockStep < stamps[i - 1].end)
      throw std::runtime_error("kernel " + std::to_string(i) + " began before the one ahead of it ended.");
    between += static_cast<std::int64_t>(stamps[i].start) - static_cast<std::int64_t>(stamps[i - 1].end);
  }
  return static_cast<double>(between) / static_cast<double>(stamps.size() - 1) * 1e-9;
}

double stream_gap_sample(cudaStream_t stream, StreamGate& gate) {
  const TimestampBuffer list(kGapKernels);
  launch_timestamped(list.at(0), 0, stream);  // the first launch loads the kernel, which may wait for the device
  for (unsigned attempt = 0; attempt < kGateAttempts; ++attempt) {
    gate.close(stream);
    try {
      for (unsigned i = 0; i < kGapKernels; ++i) launch_timestamped(list.at(i), kGapCycles, stream);
    } catch (...) {
      gate.open();
      throw;
    }
    gate.open();
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (gate.gave_up()) continue;
    return mean_gap(list.read());
  }
  throw std::runtime_error("kernels could not be queued behind a held stream.");
}

double stream_gap(cudaStream_t stream) {
  StreamGate gate;
  stream_gap_sample(stream, gate);  // warm-up
  std::vector<double> samples;
  for (int i = 0; i < 7; ++i) samples.push_back(stream_gap_sample(stream, gate));
  return upper_median(std::move(samples));
}

std::int64_t DeviceClock::host_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void DeviceClock::observe() {
  auto* words = words_.as<std::uint64_t>();
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  for (int i = 0; i < 4; ++i) store(words[i], 0);
  sample_device_clock<<<1, 1, 0, stream_>>>(words, kExchanges, kPatience);
  check(cudaGetLastError(), "launch of the kernel that tells the time");
  Point best;
  for (unsigned question = 1; question <= kExchanges; ++question) {
    const std::int64_t asked = host_now();
    store(words[0], question);
    while (load(words[1]) < question) {
      if (load(words[3]) != 0 || host_now() - asked > 2 * static_cast<std::int64_t>(kPatience)) {
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
        throw std::runtime_error("the device did not answer through mapped memory within a second.");
      }
    }
    const std::int64_t answered = host_now();
    // The first exchange waits for the kernel to start.
    if (question > 1 && (best.round_trip == 0 || answered - asked < best.round_trip))
      best = {(asked + answered) / 2, static_cast<std::int64_t>(load(words[2])), answered - asked};
  }
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  earlier_ = later_;
  later_ = best;
}

std::int64_t DeviceClock::host_nanoseconds(std::uint64_t stamp) const {
  const double slope =
      static_cast<double>(later_.host - earlier_.host) / static_cast<double>(later_.device - earlier_.device);
  const auto since = static_cast<double>(static_cast<std::int64_t>(stamp) - earlier_.device);
  return earlier_.host + std::llround(since * slope);
}

double DeviceClock::uncertainty() const {
  return static_cast<double>(std::max(earlier_.round_trip, later_.round_trip)) / 2 * 1e-9;
}

}  // namespace memwall
