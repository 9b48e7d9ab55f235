// How fast a capture becomes a trace: MB/s of (inflated) JSON on one core, reading and import apart.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>

#include "models/workload/import/kineto_import.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace {

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
  for (auto _ : state) benchmark::DoNotOptimize(import_kineto(read_kineto(folder / "capture.json")));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}

BENCHMARK(read_json)->Unit(benchmark::kMillisecond);
BENCHMARK(read_gzip)->Unit(benchmark::kMillisecond);
BENCHMARK(capture_to_trace)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace memwall
