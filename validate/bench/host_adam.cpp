// The optimizer of an offloaded step on the CPU: by threads.
#include <algorithm>

#include "validate/bench/adam_state.h"
#include "validate/bench/benchmark.h"

namespace memwall {
namespace {

void adam_with(BenchmarkRun& run, ThreadTeam& team, AdamState& state, std::size_t count) {
  Measurement m =
      run.row({{"bytes", std::to_string(kAdamBytesPerElement * count)}, {"threads", std::to_string(team.size())}});
  m.bytes = AdamState::bytes_of(count);
  m.flops = AdamState::flops_of(count);
  state.randomize(team, count, run.settings().seed);
  run.sample(m, [&] { return state.step(team); });
  m.note = state.fault();
  if (!m.note.empty()) m.status = MeasurementStatus::failed;
  run.report(m);
}

void adam_host(BenchmarkRun& run) {
  constexpr std::size_t kLargest = std::size_t{1} << 26, kSmallest = std::size_t{1} << 24;
  std::vector<std::size_t> counts;
  for (std::size_t count = kLargest; count >= kSmallest; count /= 4)
    if (4 * count <= run.settings().largest_buffer) counts.push_back(count);
  if (counts.empty()) counts.push_back(std::max(run.settings().largest_buffer / 4, std::size_t{1024}));
  AdamState state(counts.front());
  for (const unsigned threads : team_sizes()) {
    ThreadTeam team(threads);
    for (const std::size_t count : counts) {
      if (run.out_of_time()) return;
      adam_with(run, team, state, count);
    }
  }
}

const RegisterBenchmark registered_adam_host{
    {"adam_host", "steps of Adam on the CPU over fp32 arrays, as an offloaded optimizer takes them",
     BenchmarkPlace::computer, 21, adam_host}};

}  // namespace
}  // namespace memwall
