// How long it takes to write down a step of a network that exists as a configuration only.
#include <benchmark/benchmark.h>

#include "models/workload/generate/generate.h"

namespace {

using namespace memwall;

Model llama3_70b() {
  Model m;
  m.name = "llama3-70b";
  m.layers = 80, m.width = 8192, m.heads = 64, m.key_value_heads = 8, m.inner = 28672, m.vocabulary = 128256;
  m.longest = 8192;
  m.normalization = Normalization::rms_norm_in_parts;
  m.activation = Activation::swiglu;
  m.positions = Positions::rotary;
  m.bias = m.query_key_value_bias = m.joint_query_key_value = m.tied_embedding = false;
  return m;
}

void generate(benchmark::State& state, const Recipe& recipe) {
  const Model model = llama3_70b();
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

}  // namespace
