// How long does a layout of a large job take: GPT-175B on 64 GPUs written out and folded, with costs of chunks known
// and not, and one more point of a study over a number of the machine; likewise Llama 3 70B with FSDP2 under a
// pipeline; Llama 3 405B on 16,384 GPUs; a search over layouts of GPT-175B on 512 GPUs?
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/parallel/parallel_step.h"
#include "sim/engine/simulation.h"
#include "study/layout/folded_scenarios.h"
#include "study/layout/layout_search.h"
#include "study/layout/reserved_job.h"
#include "study/study.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TrainingJob gpt() {
  TrainingJob job = load_training_job("gpt3-175b");
  set_all(job, {"tensor=8", "pipeline=8", "interleave=3", "sequence_parallel=true", "micro_batch=1", "batch=64"});
  return job;
}

TrainingJob llama() {
  TrainingJob job = load_training_job("llama3-70b");
  set_all(job, {"layers=126", "width=16384", "heads=128", "key_value_heads=8", "inner=53248", "sequence=8192",
                "liger_kernels=true", "tensor=8", "pipeline=16", "interleave=4", "embedding_in_split=true",
                "loss_in_split=true", "data_parallel=128", "micro_batch=1", "global_batch=2048",
                "sequence_parallel=true", "distributed_optimizer=true", "overlap_grad_reduce=true"});
  return job;
}

void folded(benchmark::State& state, const TrainingJob& training, const char* machine_name, bool known) {
  const Machine machine = load_machine(machine_name);
  auto costs = std::make_unique<ChunkCostCache>(machine);
  const ParallelJob job = parallel_job(training.model, training.recipe);
  FoldedJob last;
  for (auto _ : state) {
    if (!known) costs = std::make_unique<ChunkCostCache>(machine);
    benchmark::DoNotOptimize(last = folded_job(job, *costs));
  }
  state.counters["step_seconds"] = to_seconds(last.step_time);
  state.counters["ops"] = static_cast<double>(last.ops);
}

void gpt_written_out(benchmark::State& state) {
  const Machine machine = load_machine("dgx-a100-80gb");
  const TrainingJob job = gpt();
  SimulationOptions options;
  options.allocator = "ideal";
  Time end{};
  for (auto _ : state) {
    const Trace trace = modelled_on(parallel_step(job.model, job.recipe), machine);
    end = simulate(trace, machine, options).end;
  }
  state.counters["step_seconds"] = to_seconds(end);
}

// As folded, with PyTorch's allocator.
void gpt_reserved(benchmark::State& state) {
  const Machine machine = load_machine("dgx-a100-80gb");
  const TrainingJob training = gpt();
  const ParallelJob job = parallel_job(training.model, training.recipe);
  ChunkCostCache costs(machine);
  Bytes most = 0;
  std::int64_t followed = 0;
  for (auto _ : state) {
    FoldedJob folded;
    benchmark::DoNotOptimize(folded = folded_job(job, costs));
    const std::optional<ReservedJob> reserved = reserved_job(job, costs, GiB(1000));
    followed = reserved->microbatches;
    for (const ReservedStage& stage : reserved->stages) most = std::max(most, stage.reserved);
  }
  state.counters["reserved"] = static_cast<double>(most);
  state.counters["microbatches"] = static_cast<double>(followed);
}

void gpt_written_out_reserved(benchmark::State& state) {
  const Machine machine = load_machine("dgx-a100-80gb");
  const TrainingJob job = gpt();
  Bytes most = 0;
  for (auto _ : state) {
    const Trace trace = modelled_on(parallel_step(job.model, job.recipe), machine);
    for (const TierResult& tier : simulate(trace, machine, {}).tiers)
      if (tier.peak_allocated > 0) most = std::max(most, tier.peak_reserved);
  }
  state.counters["reserved"] = static_cast<double>(most);
}

void gpt_folded(benchmark::State& state) { folded(state, gpt(), "dgx-a100-80gb", true); }
void gpt_folded_anew(benchmark::State& state) { folded(state, gpt(), "dgx-a100-80gb", false); }
void llama_16384_gpus(benchmark::State& state) { folded(state, llama(), "hgx-h100", false); }

// One more point of a study over a number of the machine: costs of chunks anew, the job's programs as they are.
void next_point(benchmark::State& state, const std::string& job, const char* machine, const std::string& allocator) {
  Study study;
  FoldedScenarios folded(study);
  Scenario scenario{.step = {job}, .machine = machine, .allocator = allocator};
  int point = 0;
  Duration step{};
  const auto run = [&] {
    scenario.settings = {fmt::format("gpu.hbm.bandwidth={}GB/s", 1500 + ++point)};
    if (const auto figures = folded.figures(scenario)) step = figures->step_time;
  };
  run();
  for (auto _ : state) run();
  state.counters["step_seconds"] = to_seconds(step);
}

constexpr const char* kSharedStages =
    "llama3-70b:tensor=8,pipeline=4,data_parallel=2,parallel_framework=torchtitan,sequence_parallel=1,micro_batch=1,"
    "batch=8";
void gpt_next_point(benchmark::State& state) { next_point(state, "gpt3-175b-megatron", "dgx-a100-80gb", "ideal"); }
void gpt_next_point_reserved(benchmark::State& state) {
  next_point(state, "gpt3-175b-megatron", "dgx-a100-80gb", "pytorch");
}
void fsdp_next_point(benchmark::State& state) { next_point(state, kSharedStages, "hgx-h100", "pytorch"); }
void fsdp_written_out(benchmark::State& state) {
  Study study;
  Scenario scenario{.step = {kSharedStages}, .machine = "hgx-h100"};
  int point = 0;
  for (auto _ : state) {
    scenario.settings = {fmt::format("gpu.hbm.bandwidth={}GB/s", 1500 + ++point)};
    benchmark::DoNotOptimize(study.run(scenario, {.record = false}));
  }
}

void search_gpt_512_gpus(benchmark::State& state) {
  LayoutRequest request;
  request.job = load_training_job("gpt3-175b");
  request.machine = std::make_shared<const Machine>(load_machine("dgx-a100-80gb"));
  request.gpus = 512;
  request.global_batch = 1536;
  request.budget = request.machine->tiers[static_cast<std::size_t>(request.machine->tier("hbm"))].holds();
  request.jobs = 2;
  LayoutSearch found;
  for (auto _ : state) found = search_layouts(request, nullptr);
  state.counters["layouts"] = static_cast<double>(found.layouts);
  state.counters["simulated"] = static_cast<double>(found.simulated);
}

BENCHMARK(gpt_written_out)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt_written_out_reserved)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt_reserved)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt_folded)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt_folded_anew)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt_next_point)->Unit(benchmark::kMillisecond);
BENCHMARK(gpt_next_point_reserved)->Unit(benchmark::kMillisecond);
BENCHMARK(fsdp_next_point)->Unit(benchmark::kMillisecond);
BENCHMARK(fsdp_written_out)->Unit(benchmark::kMillisecond);
BENCHMARK(llama_16384_gpus)->Unit(benchmark::kMillisecond);
BENCHMARK(search_gpt_512_gpus)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
