// How long do `memwall run --policy plan:budget=...` and `memwall plan` take, all included: the step is loaded or
// generated, planned with repair against the allocator, other planners and the proof, and simulated? CPU time is of all
// threads. `in_pieces`: budgets at which blocks find no place in one piece, each as it is and with little effort.
#include <benchmark/benchmark.h>

#include <string>

#include "study/step_advice.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSampleStep = std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt";
const std::string kCaptures = std::string(MEMWALL_SOURCE) + "/traces/samples/captures/";
const std::string kGpt2 = kCaptures + "gpt2_124m.mwc.gz", kVit = kCaptures + "vit_l.mwc.gz";
const std::string kBert = kCaptures + "bert_large.mwc.gz", kResNet = kCaptures + "resnet50.mwc.gz";
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

// On a GPU of the budget's size.
void run_in_pieces(benchmark::State& state, const std::string& step, const std::string& budget,
                   const std::string& others) {
  for (auto _ : state) {
    Study study;
    Scenario s = scenario_of(step, "a100-sxm-80gb");
    s.budget = budget;
    s.policies = {"plan:budget=" + budget + others};
    const Run run = study.run(s, {.record = false, .compare_to_base = true}).run;
    count(state, *run.trace, mean_step(run), run.unchanged_step);
    state.counters["ms"] = 1e3 * to_seconds(mean_step(run));
  }
}

// A profile with its ExecutionTrace, of which one op alone needs more than the budget.
void run_vgg(benchmark::State& state, const std::string& budget) {
  const auto data = shared_data();
  if (!data) return state.SkipWithError("the captures are absent (MEMWALL_SHARED)");
  for (auto _ : state) {
    Study study;
    Scenario s = scenario_of((*data / "traces/kineto/vgg13_h100_bs512_train.json").string(), "h100-sxm-80gb");
    s.execution_traces = {(*data / "traces/execution_trace/vgg13_h100_bs512.json").string()};
    s.budget = budget;
    s.policies = {"plan:budget=" + budget};
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
void in_pieces(benchmark::internal::Benchmark* bench) { bench->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime(); }
BENCHMARK_CAPTURE(run_in_pieces, gpt2, kGpt2, "5GB", "")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, gpt2_less, kGpt2, "4.4GB", "")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, gpt2_less_effort_1, kGpt2, "4.4GB", ",effort=1")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, vit, kVit, "5.17GB", "")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, vit_effort_1, kVit, "5.17GB", ",effort=1")->Apply(in_pieces);
// The table of docs/planner.md: 50 and 30 % of what the steps reserve with unlimited memory.
BENCHMARK_CAPTURE(run_in_pieces, gpt2_half, kGpt2, "4.923GB", "")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, bert_30, kBert, "4.689GB", "")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, vit_30, kVit, "3.102GB", "")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, resnet_half, kResNet, "3.658GB", "")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, resnet_30, kResNet, "2.195GB", "")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_vgg, 24GiB, "24GiB")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_vgg, 16GiB, "16GiB")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, gpt2_first, kGpt2, "6.892GB", ",search=0")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, bert_first, kBert, "10.94GB", ",search=0")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, vit_first, kVit, "7.238GB", ",search=0")->Apply(in_pieces);
BENCHMARK_CAPTURE(run_in_pieces, resnet_first, kResNet, "5.122GB", ",search=0")->Apply(in_pieces);
BENCHMARK_CAPTURE(plan, sample, kSampleStep, "", "8GiB", false)->Unit(benchmark::kMillisecond);
// The table of `memwall plan` in docs/planner.md, the smallest budget included.
BENCHMARK_CAPTURE(plan, gpt2_half, kGpt2, "a100-sxm-80gb", "4.923GB", true)->Apply(in_pieces);
BENCHMARK_CAPTURE(plan, gpt2, kGpt2, "a100-sxm-80gb", "6GiB", true)->Apply(in_pieces);
BENCHMARK_CAPTURE(plan, resnet, kResNet, "a100-sxm-80gb", "3GiB", true)->Apply(in_pieces);
BENCHMARK_CAPTURE(plan, vit_half, kVit, "a100-sxm-80gb", "5.17GB", true)->Apply(in_pieces);
BENCHMARK_CAPTURE(plan, llama, kLlama, "h100-sxm-80gb", "", false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, llama_smallest, kLlama, "h100-sxm-80gb", "", true)->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
