// How long do `memwall run --policy plan:budget=...` and `memwall plan` take, all included: the step is loaded or
// generated, planned with repair against the allocator, other planners and the proof, and simulated? On one thread.
#include <benchmark/benchmark.h>

#include <string>

#include "study/step_advice.h"

namespace memwall {
namespace {

const std::string kSampleStep = std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt";
const std::string kLlama = "llama3-8b:batch=1,sequence=8192,precision=bf16";  // 113.7 GB with unlimited memory

Scenario scenario_of(const std::string& step, const std::string& machine) {
  Scenario s;
  s.step = {step};
  s.machine = machine;
  return s;
}

void count(benchmark::State& state, const Trace& trace, Duration step, Duration unlimited) {
  state.counters["ops"] = static_cast<double>(trace.ops.size());
  state.counters["longer %"] = 100 * (to_seconds(step) / to_seconds(unlimited) - 1);
}

void run_plan(benchmark::State& state, const std::string& step, const std::string& machine, const std::string& policy) {
  for (auto _ : state) {
    Study study;
    Scenario s = scenario_of(step, machine);
    s.policies = {policy};
    const Run run = study.run(s, {.record = false, .compare_to_base = true}).run;
    count(state, *run.trace, mean_step(run), run.unchanged_step);
  }
}

void plan(benchmark::State& state, const std::string& step, const std::string& machine, const std::string& budget,
          bool smallest) {
  for (auto _ : state) {
    Study study;
    AdviceRequest request;
    request.scenario = scenario_of(step, machine);
    request.budget = budget;
    request.smallest = smallest;
    const StepAdvice advice = advise(study, request, nullptr);
    count(state, *study.load(request.scenario).trace, advice.plans.front().step_time, advice.unlimited);
  }
}

BENCHMARK_CAPTURE(run_plan, sample, kSampleStep, "", "plan:budget=8GiB")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_plan, llama, kLlama, "h100-sxm-80gb", "plan")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_plan, llama_first, kLlama, "h100-sxm-80gb", "plan:search=0")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, sample, kSampleStep, "", "8GiB", false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, llama, kLlama, "h100-sxm-80gb", "", false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, llama_smallest, kLlama, "h100-sxm-80gb", "", true)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace memwall
