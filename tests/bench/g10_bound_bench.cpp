// How long does the closed form of the bound take on the workloads that G10 publishes, and what does it say? At 40, 20
// and 12 GiB on G10's default machine; reads the workloads from MEMWALL_SHARED.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "models/workload/import/tables/g10_csv.h"
#include "policies/cycle/cycle_of_step.h"
#include "policies/cycle/moves_bound.h"
#include "policies/cycle/profile_cycle.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

void g10_closed_form(benchmark::State& state, const std::filesystem::path& kernels, Bytes budget) {
  const Machine machine = load_machine("g10-a100-40gb");
  const Trace trace = import_g10(kernels);
  const StepCycle cycle(cycle_of_step(StepProfile(trace, machine)).program);
  const CycleLinks links = links_of_machine(machine, {"host"});
  MovesBound bound;
  for (auto _ : state) bound = moves_bound(cycle, links, budget);
  state.counters["slots"] = static_cast<double>(cycle.size());
  state.counters["% of ideal"] = 100 * bound.ideal_seconds / bound.seconds;
}

[[maybe_unused]] const int registered_bounds = [] {
  const auto data = shared_data();
  if (!data) return 0;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(*data / "g10"))
    if (entry.path().string().ends_with(".kernels.csv")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    for (const int gibibytes : {40, 20, 12})
      benchmark::RegisterBenchmark(
          ("g10_closed_form/" + file.stem().stem().string() + "/" + std::to_string(gibibytes)).c_str(), g10_closed_form,
          file, GiB(gibibytes))
          ->Unit(benchmark::kMillisecond);
  return static_cast<int>(files.size());
}();

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
