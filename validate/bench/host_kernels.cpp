// Kernels of the host back end by operator class and size, and its "device" memory by working set.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "validate/bench/host_device.h"
#include "validate/replay/host_computer.h"
#include "validate/replay/host_kernel.h"

namespace memwall {
namespace {

constexpr Bytes kLargestKernel = MiB(64);
// A device of this size gives kernels as much scratch memory as a larger one.
constexpr Bytes kFullScratch = GiB(1);

// Seconds that `work` takes on the core of the kernels.
double seconds_on_kernel_core(const std::function<void()>& work) {
  double seconds = 0;
  std::thread([&] {
    run_on_cores({allowed_cores().front()});
    const auto start = std::chrono::steady_clock::now();
    work();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }).join();
  return seconds;
}

// `sweep(data, bytes)` goes once over that memory; again and again, so that what fits in a cache stays there.
using Sweep = std::function<void(std::byte*, Bytes)>;

// Those that a core's own caches hold, and those that kernels of the host back end meet: large ones. In between this
// computer's last cache, of which the stand-in has no part, would pass for device memory.
std::vector<Bytes> working_sets(Bytes largest) {
  std::vector<Bytes> sizes = sizes_up_to(largest, KiB(64));
  const Bytes least = std::min(MiB(64), sizes.back());
  std::erase_if(sizes, [&](Bytes bytes) { return bytes > MiB(1) && bytes < least; });
  return sizes;
}

void measure_working_sets(BenchmarkRun& run, const Sweep& sweep) {
  constexpr Bytes kLeastPerSample = MiB(1);
  const Bytes largest = largest_host_buffer(run);
  HostDevice device(run, largest);
  const HostBuffer memory(device.backend(), PlaceClass::device, largest);
  auto* const data = static_cast<std::byte*>(memory.get().data);
  for (const Bytes bytes : working_sets(largest)) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"working_set", std::to_string(bytes)}});
    m.bytes = static_cast<double>(bytes);
    const int sweeps = static_cast<int>(std::max<Bytes>(2, kLeastPerSample / bytes));
    run.sample(m, [&] {
      return seconds_on_kernel_core([&] {
               for (int i = 0; i < sweeps; ++i) sweep(data, bytes);
             }) /
             sweeps;
    });
    run.report(m);
  }
}

void hbm_read(BenchmarkRun& run) { measure_working_sets(run, read_memory); }
void hbm_write(BenchmarkRun& run) { measure_working_sets(run, write_memory); }

// Two inputs, one output, side by side.
void hbm_triad(BenchmarkRun& run) {
  measure_working_sets(run, [](std::byte* data, Bytes bytes) {
    const Bytes third = bytes / 3 / 64 * 64, piece = KiB(64);
    for (Bytes at = 0; at < third; at += piece) {
      const Bytes part = std::min(piece, third - at);
      read_memory(data + at, part);
      read_memory(data + third + at, part);
      write_memory(data + 2 * third + at, part);
    }
  });
}

// One cycle through all cache lines in random order: the next address is known only when the last has come.
std::vector<std::uint32_t> random_cycle(std::size_t lines, std::uint64_t seed) {
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::uint32_t> next(lines);
  for (std::size_t i = 0; i < lines; ++i) next[order[i]] = order[(i + 1) % lines];
  return next;
}

// Seconds per access of a walk over lines of 64 bytes.
double chase_seconds(const std::byte* memory, std::size_t steps) {
  return seconds_on_kernel_core([&] {
           std::uint32_t line = 0;
           for (std::size_t i = 0; i < steps; ++i)
             line = *reinterpret_cast<const std::uint32_t*>(memory + std::size_t{64} * line);
           __asm__ volatile("" : : "r"(line));  // the walk is wanted
         }) /
         static_cast<double>(steps);
}

void latency_hbm_chase(BenchmarkRun& run) {
  const Bytes largest = largest_host_buffer(run);
  HostDevice device(run, largest);
  const HostBuffer memory(device.backend(), PlaceClass::device, largest);
  auto* const data = static_cast<std::byte*>(memory.get().data);
  for (const Bytes bytes : sizes_up_to(largest, KiB(16))) {
    if (run.out_of_time()) return;
    const auto next = random_cycle(static_cast<std::size_t>(bytes / 64), run.settings().seed);
    for (std::size_t i = 0; i < next.size(); ++i) *reinterpret_cast<std::uint32_t*>(data + 64 * i) = next[i];
    Measurement m = run.row({{"working_set", std::to_string(bytes)}});
    run.sample(m, [&] { return chase_seconds(data, 100'000); });
    run.report(m);
  }
}

// As a kernel of a schedule when nothing else runs.
void measure_kernel(BenchmarkRun& run, HostDevice& device, Measurement m, const KernelWork& work) {
  m.bytes = static_cast<double>(work.bytes);
  m.flops = work.flops;
  run.sample(m, [&] {
    device.backend().kernel(0, kComputeStream, work, {});
    return device.times_of(0).length();
  });
  run.report(m);
}

// The multiply-adds of a product; it moves no bytes, so that the arithmetic rate stands alone.
void gemm_fp32(BenchmarkRun& run) {
  HostDevice device(run, MiB(1));
  for (const std::int64_t size : {1024, 512, 256, 128, 64}) {
    if (run.out_of_time()) return;
    const std::string n = std::to_string(size);
    const double edge = static_cast<double>(size);
    measure_kernel(run, device, run.row({{"m", n}, {"n", n}, {"k", n}}),
                   {OperatorClass::gemm, DataType::fp32, 2 * edge * edge * edge, 0});
  }
}

// The memory traffic of a class; its few FLOPs are left to the arithmetic rate.
void measure_class(BenchmarkRun& run, OperatorClass operator_class) {
  const Bytes largest = std::min(largest_host_buffer(run), kLargestKernel);
  HostDevice device(run, std::min(kFullScratch, 16 * largest));
  for (const Bytes bytes : sizes_up_to(largest)) {
    if (run.out_of_time()) return;
    measure_kernel(run, device, run.row({{"bytes", std::to_string(bytes)}}),
                   {operator_class, DataType::fp32, 0, bytes});
  }
}

void kernel_normalization(BenchmarkRun& run) { measure_class(run, OperatorClass::normalization); }
void kernel_softmax(BenchmarkRun& run) { measure_class(run, OperatorClass::other); }
void kernel_elementwise(BenchmarkRun& run) { measure_class(run, OperatorClass::elementwise); }
void kernel_reduction(BenchmarkRun& run) { measure_class(run, OperatorClass::reduction); }
void kernel_optimizer(BenchmarkRun& run) { measure_class(run, OperatorClass::optimizer); }

const RegisterBenchmark registered_hbm_read{
    {"hbm_read", "one core reads the arena, by working set", BenchmarkPlace::host, 15, hbm_read}};
const RegisterBenchmark registered_hbm_write{
    {"hbm_write", "one core writes the arena, by working set", BenchmarkPlace::host, 15, hbm_write}};
const RegisterBenchmark registered_hbm_triad{
    {"hbm_triad", "one core reads two arrays of the arena and writes a third, by working set", BenchmarkPlace::host, 15,
     hbm_triad}};
const RegisterBenchmark registered_latency_hbm_chase{{"latency_hbm_chase",
                                                      "one dependent access to the arena, by working set",
                                                      BenchmarkPlace::host, 50, latency_hbm_chase}};
const RegisterBenchmark registered_gemm_fp32{
    {"gemm_fp32", "the multiply-adds of square products in fp32 on one core", BenchmarkPlace::host, 14, gemm_fp32}};
const RegisterBenchmark registered_kernel_normalization{{"kernel_normalization",
                                                         "the host back end's normalization kernels, by size",
                                                         BenchmarkPlace::host, 25, kernel_normalization}};
const RegisterBenchmark registered_kernel_softmax{
    {"kernel_softmax", "the host back end's softmax kernels, by size", BenchmarkPlace::host, 25, kernel_softmax}};
const RegisterBenchmark registered_kernel_elementwise{{"kernel_elementwise",
                                                       "the host back end's elementwise kernels, by size",
                                                       BenchmarkPlace::host, 25, kernel_elementwise}};
const RegisterBenchmark registered_kernel_reduction{
    {"kernel_reduction", "the host back end's reduction kernels, by size", BenchmarkPlace::host, 25, kernel_reduction}};
const RegisterBenchmark registered_kernel_optimizer{
    {"kernel_optimizer", "the host back end's optimizer kernels, by size", BenchmarkPlace::host, 25, kernel_optimizer}};

}  // namespace
}  // namespace memwall
