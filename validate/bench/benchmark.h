// A microbenchmark: one function and one registration line in a file of this folder.
//
//   void copy_host_hbm_pinned(BenchmarkRun& run) { ... run.report(...); }
//   const RegisterBenchmark registered_copy_host_hbm_pinned{
//       {"copy_host_hbm_pinned", "…", BenchmarkPlace::cuda, 10, copy_host_hbm_pinned}};
//
// A benchmark warms up, uses random data, poisons what it is going to write and checks it after; wrong
// data makes the row `failed`, whatever the time. On CUDA it times with events behind a stream that is
// blocked until everything is queued (bench/cuda_timing.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "validate/measurement/measurement.h"

namespace memwall {

class ForkServer;

// Where it makes sense. A session on a GPU runs computer + cuda, one on the host back end computer + host.
enum class BenchmarkPlace : std::uint8_t {
  computer,  // host memory, CPU, files: any machine
  host,      // the host back end of replay/, which stands in for a GPU
  cuda       // a CUDA GPU
};
std::string to_string(BenchmarkPlace place);

// Thrown by a benchmark where the machine has no such thing; the message says what is missing.
class NotApplicable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct BenchmarkSettings {
  std::filesystem::path scratch;          // folder for files; created and emptied by the program
  std::size_t largest_file = 1u << 30;    // bytes
  std::size_t largest_buffer = 1u << 30;  // bytes, of host or device memory per buffer
  double seconds_per_case = 0.3;          // of sampling, warm-up not included
  std::uint32_t fewest_samples = 5;
  std::uint64_t seed = 1;
  bool oversubscribe = false;  // may ask for more managed memory than the device has free; can hang a shared one
  // Forks the processes of benchmarks that measure several at once. Null: one is made when it is needed, which serves
  // for all but CUDA (bench/fork_server.h).
  std::shared_ptr<ForkServer> fork_server{};
};

// What a running benchmark is given.
class BenchmarkRun {
 public:
  BenchmarkRun(std::string benchmark, const BenchmarkSettings& settings, std::function<void(const Measurement&)> sink,
               std::chrono::steady_clock::time_point deadline);

  const BenchmarkSettings& settings() const { return settings_; }
  // A row with the benchmark's name and `parameters`, to be filled.
  Measurement row(std::map<std::string, std::string> parameters) const;
  void report(const Measurement& m) { sink_(m); }
  // Calls `operation` (which returns the seconds it took, as it measures them) until time and samples
  // suffice, once more before that as warm-up; fills median, low, high, samples.
  void sample(Measurement& m, const std::function<double()>& operation) const;
  // The server of the settings, or one that is made on the first call. Throws as ForkServer's constructor does.
  ForkServer& fork_server();
  // No further case should begin.
  bool out_of_time() const { return std::chrono::steady_clock::now() >= deadline_; }

 private:
  std::string benchmark_;
  BenchmarkSettings settings_;
  std::function<void(const Measurement&)> sink_;
  std::chrono::steady_clock::time_point deadline_;
};

struct BenchmarkInfo {
  std::string name;
  std::string sentence;  // what it measures, of what use
  BenchmarkPlace place = BenchmarkPlace::computer;
  int rank = 100;  // lower ones run first: what calibration needs most
  std::function<void(BenchmarkRun&)> measure;
};

struct RegisterBenchmark {
  explicit RegisterBenchmark(BenchmarkInfo info);
};

// All registered ones, by rank, then name.
const std::vector<BenchmarkInfo>& benchmarks();
// Those of the places, in that order. Where a place has one of its own under a name of the computer's, its own.
std::vector<const BenchmarkInfo*> benchmarks_of(const std::vector<BenchmarkPlace>& places);

// Runs those of the places whose name contains one of `filters` (all where empty), until `deadline`.
// A benchmark that throws leaves one row: not_applicable, or failed with the message. Those that found
// no time are reported as not_applicable, "no time was left". `progress` is told each name before it runs,
// `keep` is given all rows so far after it: whoever writes them down loses no more than one benchmark.
MeasurementSet run_benchmarks(const std::vector<BenchmarkPlace>& places, const std::vector<std::string>& filters,
                              const BenchmarkSettings& settings, std::chrono::steady_clock::time_point deadline,
                              const std::function<void(const std::string&)>& progress,
                              const std::function<void(const MeasurementSet&)>& keep = {});

}  // namespace memwall
