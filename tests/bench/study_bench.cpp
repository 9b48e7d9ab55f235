// How long does one more scenario on a loaded step take: another number of the machine, with and without a policy?
//
// The committed sample (5,600 ops, measured), and steps of networks that have no times. Each scenario is a new one:
// nothing of its machine or its base step is known from the one before.
#include <benchmark/benchmark.h>

#include <string>

#include "study/study.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSampleStep = std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt";

Scenario override_of(const std::string& step, const std::string& machine, int number) {
  Scenario s;
  s.step = {step};
  s.machine = machine;
  s.settings = {"gpu.hbm.bandwidth=" + std::to_string(1'000 + number) + "GB/s"};
  return s;
}

void scenarios(benchmark::State& state, const std::string& step, const std::string& machine,
               const std::vector<std::string>& policies, bool record) {
  Study study;
  int number = 0;
  std::size_t ops = 0;
  study.run(override_of(step, machine, ++number));  // loads
  for (auto _ : state) {
    Scenario s = override_of(step, machine, ++number);
    s.policies = policies;
    ops = study.run(s, {.record = record}).run.trace->ops.size();
  }
  state.counters["ops"] = static_cast<double>(ops);
}

const std::vector<std::string> kNone, kFull{"checkpoint:mode=full"};

BENCHMARK_CAPTURE(scenarios, sample, kSampleStep, "h100-sxm-80gb", kNone, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(scenarios, sample_recorded, kSampleStep, "h100-sxm-80gb", kNone, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(scenarios, sample_checkpoint, kSampleStep, "h100-sxm-80gb", kFull, false)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(scenarios, gpt3_175b, "gpt3-175b:batch=1", "h100-sxm-80gb", kNone, false)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(scenarios, gpt3_175b_checkpoint, "gpt3-175b:batch=1", "h100-sxm-80gb", kFull, false)
    ->Unit(benchmark::kMicrosecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
