// How long does a run of each G10 workload take, and what does it say? Two iterations under the pager
// `lru` on G10's default machine, both clocks; reads the workloads from MEMWALL_SHARED.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "models/workload/import/tables/g10_csv.h"
#include "sim/policy/registry.h"
#include "sim/trace/repeat.h"
#include "sim/engine/simulation.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

void g10(benchmark::State& state, const std::filesystem::path& kernels, const std::string& pager_text) {
  const Machine machine = load_machine("g10-a100-40gb");
  SimulationResult result;
  for (auto _ : state) {
    const Trace trace = repeated(import_g10(kernels), 2);
    const PolicySpec spec = parse_policy(pager_text);
    const auto pager = spec.info->make_pager(spec.arguments);
    SimulationOptions options;
    options.allocator = "ideal";  // G10 counts bytes
    options.pager = pager.get();
    result = simulate(trace, machine, options);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["second_step_s"] = to_seconds(result.steps.back().step_time);
  state.counters["fits"] = result.fits;
  state.counters["moves"] = static_cast<double>(result.moves.size());
  state.counters["process_peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

[[maybe_unused]] const int registered = [] {
  const auto data = shared_data();
  if (!data) return 0;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(*data / "g10"))
    if (entry.path().string().ends_with(".kernels.csv")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    for (const std::string clock : {"host", "device"})
      benchmark::RegisterBenchmark(("g10/" + file.stem().stem().string() + "/lru:clock=" + clock).c_str(), g10, file,
                                   "lru:clock=" + clock)
          ->Unit(benchmark::kMillisecond);
  return static_cast<int>(files.size());
}();

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
