// launch_queue_depth: how many launches a stream takes before the call waits for the device.
//
// A second thread launches empty kernels into a held stream. Once no call has returned for kStall the stream is
// opened: the launch that waits returns, and its time tells whether it was the queue that was full.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/quantile.h"
#include "validate/bench/benchmark.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/device_timestamps.h"

namespace memwall {
namespace {

constexpr std::size_t kMostLaunches = 20'000;  // at 10 us each a fifth of a second: the gate holds for two
constexpr std::chrono::milliseconds kStall(100);
constexpr double kStallFactor = 20;  // of the median call

// Launches until told to stop, in a thread of its own.
class LaunchingThread {
 public:
  explicit LaunchingThread(cudaStream_t stream) : thread_([this, stream] { launch(stream); }) {}
  ~LaunchingThread() { finish(); }
  LaunchingThread(const LaunchingThread&) = delete;
  LaunchingThread& operator=(const LaunchingThread&) = delete;

  std::size_t launched() const { return launched_; }
  bool ended() const { return ended_; }
  void stop() { stop_ = true; }
  // Seconds of each call. Throws what a call threw. REQUIRES: no call waits for something that will not happen.
  const std::vector<double>& finish_and_check() {
    finish();
    if (error_) std::rethrow_exception(error_);
    return seconds_;
  }

 private:
  void launch(cudaStream_t stream) {
    try {
      check(cudaSetDevice(0), "cudaSetDevice");
      while (!stop_ && launched_ < kMostLaunches) {
        seconds_.push_back(host_seconds([&] { launch_empty(stream); }));
        ++launched_;
      }
    } catch (...) {
      error_ = std::current_exception();
    }
    ended_ = true;
  }
  void finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<std::size_t> launched_{0};
  std::atomic<bool> stop_{false}, ended_{false};
  std::vector<double> seconds_;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses what stands above
};

// Returns when no call has returned for kStall, or the thread has ended; the number of calls that had returned.
std::size_t wait_for_stall(const LaunchingThread& thread) {
  std::size_t seen = thread.launched();
  auto since = std::chrono::steady_clock::now();
  while (!thread.ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto now = std::chrono::steady_clock::now();
    if (const std::size_t launched = thread.launched(); launched != seen) {
      seen = launched;
      since = now;
    } else if (now - since >= kStall) {
      break;
    }
  }
  return thread.ended() ? thread.launched() : seen;
}

double depth_sample(cudaStream_t stream, StreamGate& gate) {
  gate.close(stream);
  LaunchingThread thread(stream);
  const std::size_t depth = wait_for_stall(thread);
  const bool endless = thread.ended();
  thread.stop();
  gate.open();
  const std::vector<double> seconds = thread.finish_and_check();
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  if (gate.gave_up()) throw std::runtime_error("the stream could not be held for long enough.");
  if (endless) throw NotApplicable("no call waited within " + std::to_string(kMostLaunches) + " launches");
  std::vector<double> earlier(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(depth));
  if (earlier.empty() || depth >= seconds.size()) throw std::runtime_error("the stall was not a launch that waited.");
  if (seconds[depth] < kStallFactor * upper_median(std::move(earlier)))
    throw std::runtime_error("the launch that seemed to wait took no longer than others.");
  return static_cast<double>(depth);
}

void launch_queue_depth(BenchmarkRun& run) {
  require_device();
  const CudaStream stream;
  StreamGate gate;
  launch_empty(stream.get());  // the first launch loads the kernel, which may wait for the device
  stream.synchronize();
  std::vector<double> samples;
  for (int i = 0; i < 3; ++i) samples.push_back(depth_sample(stream.get(), gate));
  Measurement m = run.row({});
  m.unit = "count";
  summarize_samples(std::move(samples), m);
  m.note = "launches that returned, behind a kernel and an event record";
  run.report(m);
}

const RegisterBenchmark registered_launch_queue_depth{
    {"launch_queue_depth", "How many launches a stream takes before the call waits for the device.",
     BenchmarkPlace::cuda, 60, launch_queue_depth}};

}  // namespace
}  // namespace memwall
