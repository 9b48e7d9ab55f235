// How long it takes to write down a step of a network that exists as a configuration only.
#include <benchmark/benchmark.h>

#include "models/workload/generate/generate.h"
#include "models/workload/generate/configuration/workload_file.h"

namespace MEMWALL_TEST_FILE {

using namespace memwall;

void generate(benchmark::State& state, const Recipe& recipe) {
  const Model model = load_training_job("llama3-70b").model;
  std::size_t ops = 0;
  for (auto _ : state) ops = generate_step(model, recipe).ops.size();
  state.counters["ops"] = static_cast<double>(ops);
}

void llama3_70b_eager(benchmark::State& state) { generate(state, Recipe()); }
void llama3_70b_checkpointed(benchmark::State& state) {
  Recipe r;
  r.checkpoint = ActivationCheckpoint::full;
  generate(state, r);
}
void llama3_70b_compiled(benchmark::State& state) {
  Recipe r;
  r.execution = ExecutionMode::compiled;
  generate(state, r);
}

BENCHMARK(llama3_70b_eager)->Unit(benchmark::kMillisecond);
BENCHMARK(llama3_70b_checkpointed)->Unit(benchmark::kMillisecond);
BENCHMARK(llama3_70b_compiled)->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
