// kernel_CLASS: memory-bound kernels by the device memory traffic of a launch. Operand sets take turns, so that the
// L2 cache has forgotten one when it comes round again; a launch on fresh data is compared with double precision.
#include <algorithm>
#include <string>

#include "validate/bench/benchmark.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/kernel_sampler.h"
#include "validate/bench/cuda/streaming_kernels.h"

namespace memwall {
namespace {

void measure_case(const BenchmarkRun& run, const StreamingCase& c, KernelSampler& sampler,
                  const DeviceCheck& device_check, Measurement& m) {
  const std::size_t bytes = streaming_set_bytes(c);
  const std::size_t room = free_device_bytes() / 4 * 3 / bytes;
  if (room == 0) throw NotApplicable("the device has no room for " + std::to_string(bytes) + " bytes");
  const auto sets = std::min(rotating_sets(m.bytes, l2_bytes()), static_cast<std::int64_t>(room));
  const DeviceBuffer memory(bytes * static_cast<std::size_t>(sets));
  const auto operands = [&](std::int64_t set) {
    return streaming_operands(c, memory.as<std::byte>() + bytes * static_cast<std::size_t>(set));
  };
  const cudaStream_t stream = sampler.stream();
  const std::uint64_t seed = run.settings().seed * 1'000'003;
  for (std::int64_t set = 0; set < sets; ++set)
    fill_streaming(c, operands(set), seed + 16 * static_cast<std::uint64_t>(set), stream);
  std::int64_t turn = 0;
  sampler.sample(run, m, [&] { launch_streaming(c, operands(turn++ % sets), stream); });
  // The optimizer works in place: only fresh data tell whether a launch is right.
  fill_streaming(c, operands(0), seed, stream);
  launch_streaming(c, operands(0), stream);
  check_streaming(c, operands(0), seed, device_check.begin(stream), stream);
  note_verdict(m, device_check.verdict(stream));
}

void measure(BenchmarkRun& run, StreamingKernel kernel) {
  require_device();
  KernelSampler sampler;
  const DeviceCheck device_check;
  for (const StreamingCase& c : streaming_cases(kernel, static_cast<double>(run.settings().largest_buffer))) {
    if (run.out_of_time()) return;
    const double bytes = streaming_bytes(c);
    Measurement m = run.row({{"bytes", std::to_string(static_cast<std::int64_t>(bytes))}});
    m.bytes = bytes;
    m.flops = streaming_flops(c);
    try {
      measure_case(run, c, sampler, device_check, m);
    } catch (const NotApplicable& reason) {
      m.status = MeasurementStatus::not_applicable;
      m.note = reason.what();
    }
    run.report(m);
  }
}

void kernel_normalization(BenchmarkRun& run) { measure(run, StreamingKernel::normalization); }
void kernel_softmax(BenchmarkRun& run) { measure(run, StreamingKernel::softmax); }
void kernel_elementwise(BenchmarkRun& run) { measure(run, StreamingKernel::elementwise); }
void kernel_reduction(BenchmarkRun& run) { measure(run, StreamingKernel::reduction); }
void kernel_optimizer(BenchmarkRun& run) { measure(run, StreamingKernel::optimizer); }

const RegisterBenchmark registered_kernel_elementwise{
    {"kernel_elementwise", "GELU of bf16: share of memory bandwidth of elementwise kernels, and their least time.",
     BenchmarkPlace::cuda, 20, kernel_elementwise}};
const RegisterBenchmark registered_kernel_normalization{
    {"kernel_normalization", "Layer norm of bf16 rows: share of memory bandwidth of normalization kernels.",
     BenchmarkPlace::cuda, 21, kernel_normalization}};
const RegisterBenchmark registered_kernel_softmax{
    {"kernel_softmax", "Softmax of bf16 rows: share of memory bandwidth.", BenchmarkPlace::cuda, 22, kernel_softmax}};
const RegisterBenchmark registered_kernel_reduction{{"kernel_reduction",
                                                     "Sums of bf16 rows: share of memory bandwidth of reductions.",
                                                     BenchmarkPlace::cuda, 23, kernel_reduction}};
const RegisterBenchmark registered_kernel_optimizer{
    {"kernel_optimizer", "Fused Adam in fp32: share of memory bandwidth of the optimizer on the device.",
     BenchmarkPlace::cuda, 24, kernel_optimizer}};

}  // namespace
}  // namespace memwall
