// What does a point of a study cost, and what do more threads save? Points differ in two numbers of the machine, on the
// committed sample (3,014 ops, measured), with a journal and without, with a policy and without. The aim (issue 22): at
// most 1.5 ms of processor time a point, 3 ms with a policy; two threads 1.8 times as fast as one.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <string>

#include "study/sweep/sweep.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSweptStep = std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt";

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void points(benchmark::State& state, const std::vector<std::string>& policies, bool keeps) {
  const ScratchFolder folder;
  SweepRequest request{.base = {.step = {kSweptStep}, .machine = "a100-sxm-80gb", .policies = policies},
                       .space = {},
                       .objective = "step_time",
                       .jobs = static_cast<unsigned>(state.range(0))};
  request.space.axes = {parse_axis("pcie=8..64GB/s:log:50"), parse_axis("gpu.hbm.bandwidth=1..3TB/s:20")};
  double processor = 0;
  std::size_t many = 0;
  for (auto _ : state) {
    SweepJournal journal(folder / ("journal" + std::to_string(many) + ".sqlite"));
    Study study;
    const double before = processor_seconds();
    many += sweep(study, request, keeps ? &journal : nullptr).points.size();
    processor += processor_seconds() - before;
  }
  state.counters["processor_ms_per_point"] = 1e3 * processor / static_cast<double>(many);
  state.SetItemsProcessed(static_cast<std::int64_t>(many));
}

const std::vector<std::string> kNoPolicies, kCheckpointed{"checkpoint:mode=full"};

BENCHMARK_CAPTURE(points, overrides, kNoPolicies, false)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(points, overrides_kept, kNoPolicies, true)
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(points, checkpoint, kCheckpointed, false)
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
