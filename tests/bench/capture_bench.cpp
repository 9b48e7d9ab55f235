// How fast is a captured step read? A GPT of many layers, written as memwall_capture does.
#include <benchmark/benchmark.h>

#include "models/workload/import/mwc/mwc_import.h"
#include "tests/support/capture_writer.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/gzip.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string text_of(int layers) {
  GptShape shape = seven_billion_gpt();
  shape.layers = layers;
  shape.extra_parameters = 0;
  return capture_text(gpt_step(shape), false);
}

void read(benchmark::State& state, const std::string& text, const std::string& content) {
  const ScratchFolder folder;
  write_content(folder / "step.mwc", content);
  std::size_t ops = 0;
  for (auto _ : state) ops = read_mwc(folder / "step.mwc").trace.ops.size();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.counters["ops"] = static_cast<double>(ops);
}

void capture_plain(benchmark::State& state) {
  const std::string text = text_of(static_cast<int>(state.range(0)));
  read(state, text, text);
}
BENCHMARK(capture_plain)->Arg(32)->Arg(3200)->Unit(benchmark::kMillisecond);

void capture_gzip(benchmark::State& state) {
  const std::string text = text_of(static_cast<int>(state.range(0)));
  read(state, text, gzipped(text));
}
BENCHMARK(capture_gzip)->Arg(3200)->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
