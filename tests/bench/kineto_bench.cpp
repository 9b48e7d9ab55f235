// How fast a capture becomes a trace: MB/s of (inflated) JSON on one core, reading and import apart, and what the
// import of a large one holds at its peak beside the trace it makes.
//
// MEMWALL_BENCH_CAPTURE_MB is the size of the large one, 256 by default; 10000 is what a long run writes. It is written
// to the temporary folder. The peak is that of the process: run large_import alone (--benchmark_filter=large_import).
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/timed/timed_import.h"
#include "tests/support/gzip.h"
#include "tests/support/resident_memory.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// `launches` operators with a call and a kernel each, as the exporter of 2024 writes them.
std::string large_capture(int launches) {
  std::string text = "{\"schemaVersion\":1,\"traceEvents\":[\n";
  for (int i = 0; i < launches; ++i) {
    const std::string id = std::to_string(i + 1), at = std::to_string(1000 + 20 * i);
    text +=
        "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mul_\", \"pid\": 1, \"tid\": 100,\n    "
        "\"ts\": " +
        at + ".125, \"dur\": 18.250,\n    \"args\": {\n      \"External id\": " + id +
        ",\"Record function id\": 0, \"Sequence number\": " + id +
        ", \"Fwd thread id\": 0, \"Input Dims\": [[64, 1024, " + std::to_string(i % 50) +
        "], []], \"Input type\": [\"float\", \"float\"], \"Ev Idx\": " + id +
        "\n    }\n  },\n  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, "
        "\"tid\": 100,\n    \"ts\": " +
        at + ".500, \"dur\": 5.125,\n    \"args\": {\n      \"External id\": " + id +
        ", \"cbid\": 211, \"correlation\": " + id + "\n    }\n  },\n  {\n    \"ph\": \"s\", \"id\": " + id +
        ", \"pid\": 1, \"tid\": 100, \"ts\": " + at +
        ".500,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", "
        "\"name\": \"void at::native::"
        "vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, "
        "at::native::binary_internal::MulFunctor<float> >, "
        "at::detail::Array<char*, 3> >(int, at::native::BinaryFunctor<float, float, float>)\", \"pid\": 0, \"tid\": "
        "7,\n    \"ts\": " +
        std::to_string(1008 + 20 * i) + ".750, \"dur\": 11.375,\n    \"args\": {\n      \"External id\": " + id +
        ", \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": " + id +
        ", \"registers per thread\": 32, \"shared memory\": 0, \"blocks per SM\": 12.5, \"warps per SM\": 50, "
        "\"grid\": [1350, 1, 1], "
        "\"block\": [128, 1, 1], \"est. achieved occupancy %\": 78\n    }\n  }" +
        (i + 1 < launches ? ",\n" : "\n");
  }
  return text + "]}\n";
}

void read(benchmark::State& state, bool packed) {
  const ScratchFolder folder;
  const std::string text = large_capture(60'000);
  write_content(folder / "capture.json", packed ? gzipped(text) : text);
  for (auto _ : state) benchmark::DoNotOptimize(read_kineto(folder / "capture.json"));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}

void read_json(benchmark::State& state) { read(state, false); }
void read_gzip(benchmark::State& state) { read(state, true); }

void capture_to_trace(benchmark::State& state) {
  const ScratchFolder folder;
  const std::string text = large_capture(60'000);
  write_content(folder / "capture.json", text);
  for (auto _ : state) benchmark::DoNotOptimize(import_timed_capture(read_kineto(folder / "capture.json")));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}

std::uint64_t large_bytes() {
  const char* text = std::getenv("MEMWALL_BENCH_CAPTURE_MB");
  return std::uint64_t{1'000'000} * (text == nullptr ? 256 : std::strtoull(text, nullptr, 10));
}

// A training loop with Python stacks, recorded shapes and memory events: per kernel four Python functions, a module,
// two operators, a call, a flow and two memory events, as the exporter of 2024 writes them.
void write_large(const std::filesystem::path& path, std::uint64_t bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  std::uint64_t written = 0;
  const auto event = [&](const char* format, auto... values) {
    const int n = std::fprintf(file, format, values...);
    written += static_cast<std::uint64_t>(n > 0 ? n : 0);
  };
  event("{\"schemaVersion\": 1, \"traceEvents\": [\n");
  for (long long i = 0, live = 1 << 30; written < bytes; ++i) {
    const long long at = 1669783687000000 + 40 * i, size = 512 * (1 + i % 700);
    if (i % 2000 == 0)
      event(
          "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%lld\", \"pid\": 1, \"tid\": 100, "
          "\"ts\": "
          "%lld, \"dur\": 79990, \"args\": {\"External id\": %lld}},\n",
          i / 2000, at, i);
    for (int k = 0; k < 4; ++k)
      event(
          "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"torch/nn/modules/module.py(15%02d): _call_impl\", "
          "\"pid\": 1, \"tid\": 100, \"ts\": %lld.%d, \"dur\": %d.250, \"args\": {\"Python parent id\": %lld, \"Python "
          "id\": "
          "%lld, \"Python module id\": %d, \"Ev Idx\": %lld}},\n",
          k, at, k, 36 - k, 4 * i, 4 * i + k, k, 10 * i + k);
    event(
        "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"nn.Module: Linear_%lld\", \"pid\": 1, \"tid\": 100, "
        "\"ts\": "
        "%lld.5, \"dur\": 35.250, \"args\": {\"Python id\": %lld, \"Ev Idx\": %lld}},\n",
        i % 200, at, 4 * i, 10 * i + 4);
    event(
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::linear\", \"pid\": 1, \"tid\": 100, \"ts\": %lld.625, "
        "\"dur\": "
        "34.100, \"args\": {\"External id\": %lld, \"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"\"], "
        "\"Input "
        "type\": [\"float\", \"float\", \"float\"], \"Input Strides\": [[1024, 1], [1024, 1], [1]], \"Input Dims\": "
        "[[%lld, "
        "1024], [1024, 1024], [1024]], \"Sequence number\": %lld, \"Fwd thread id\": 0, \"Ev Idx\": %lld}},\n",
        at, 3 * i, 64 + i % 64, i, 10 * i + 5);
    event(
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::addmm\", \"pid\": 1, \"tid\": 100, \"ts\": %lld.750, "
        "\"dur\": "
        "30.100, \"args\": {\"External id\": %lld, \"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"\", "
        "\"1\", "
        "\"1\"], \"Input type\": [\"float\", \"float\", \"float\", \"Scalar\", \"Scalar\"], \"Input Dims\": [[1024], "
        "[%lld, "
        "1024], [1024, 1024], [], []], \"Sequence number\": %lld, \"Fwd thread id\": 0, \"Ev Idx\": %lld}},\n",
        at, 3 * i + 1, 64 + i % 64, i, 10 * i + 6);
    for (const long long change : {size, -size}) {
      if (change < 0) {
        event(
            "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, \"tid\": 100, "
            "\"ts\": %lld, "
            "\"dur\": 5.125, \"args\": {\"External id\": %lld, \"cbid\": 211, \"correlation\": %lld}},\n",
            at + 5, 3 * i + 1, i + 1);
        event(
            "{\"ph\": \"s\", \"id\": %lld, \"pid\": 1, \"tid\": 100, \"ts\": %lld, \"cat\": \"ac2g\", \"name\": "
            "\"ac2g\"},\n",
            i + 1, at + 5);
        event(
            "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
            "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4>"
            "(cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4::Params)\", \"pid\": 0, \"tid\": 7, \"ts\": "
            "%lld.750, \"dur\": 30.375, "
            "\"args\": {\"External id\": %lld, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, "
            "\"correlation\": %lld, "
            "\"registers per thread\": 32, \"shared memory\": 0, \"blocks per SM\": 12.5, \"grid\": [1350, 1, 1], "
            "\"block\": [128, 1, 1], "
            "\"est. achieved occupancy %%\": 78}},\n",
            at + 12, 3 * i + 1, i + 1);
      }
      live += change;
      event(
          "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": "
          "100, \"ts\": %lld, "
          "\"args\": {\"Total Reserved\": 20971520000, \"Total Allocated\": %lld, \"Bytes\": %lld, \"Addr\": %lld, "
          "\"Device Id\": 0, "
          "\"Device Type\": 1, \"Ev Idx\": %lld}},\n",
          at + (change > 0 ? 3 : 33), live, change, 0x7f0000000000 + ((i % 5000) << 20), 10 * i + 7);
    }
  }
  event("{\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 1669783687000000, \"pid\": 1, \"tid\": 0}\n]}\n");
  std::fclose(file);
}

void large_import(benchmark::State& state) {
  const ScratchFolder folder;
  write_large(folder / "capture.json", large_bytes());
  const Bytes before = most_resident();
  Bytes of_trace = 0;
  for (auto _ : state) {
    const ImportedStep step = import_kineto(folder / "capture.json", ImportSettings{});
    of_trace = static_cast<Bytes>(step.trace.ops.size() * sizeof(Op) + step.trace.uses.size() * sizeof(Use) +
                                  step.trace.storages.size() * sizeof(Storage));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(std::filesystem::file_size(folder / "capture.json")) *
                          state.iterations());
  state.counters["peak_MiB"] = static_cast<double>(most_resident()) / (1 << 20);
  state.counters["before_MiB"] = static_cast<double>(before) / (1 << 20);
  state.counters["trace_MiB"] = static_cast<double>(of_trace) / (1 << 20);
}

BENCHMARK(large_import)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(read_json)->Unit(benchmark::kMillisecond);
BENCHMARK(read_gzip)->Unit(benchmark::kMillisecond);
BENCHMARK(capture_to_trace)->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
