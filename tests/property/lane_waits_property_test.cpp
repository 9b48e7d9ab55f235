// Is what lanes are said to wait the time in which they stand still, all of it once?
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/random_trace.h"
#include "tests/support/test_machine.h"
#include "tests/support/varied_runs.h"
#include "traces/run/analysis/waits.h"
#include "traces/run/lane_names.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Per stream: what lies between the ops that ran on it, in the order in which they ran.
std::map<std::string, Duration> idle_times(const Run& run) {
  std::map<std::string, Duration> idle;
  const Trace& trace = run.trace;
  for (std::size_t s = 0; s < trace.streams.size(); ++s) {
    std::vector<std::pair<Time, Time>> ran;
    for (OpId id = 0; id < trace.ops.size(); ++id) {
      const OpRecord& record = run.result.records[id];
      if (runs_on_device(trace.ops[id].kind) && trace.ops[id].stream == s && record.start != kNever)
        ran.emplace_back(record.start, record.end);
    }
    std::sort(ran.begin(), ran.end());
    Duration& sum = idle[stream_lane_name(trace, trace.streams[s], has_several_devices(trace))];
    for (std::size_t i = 1; i < ran.size(); ++i) sum += std::max(Duration{}, ran[i].first - ran[i - 1].second);
  }
  return idle;
}

// "" where no lane waits longer than the run lasts, and each stream waits for as long as it stands still (and for what
// held up its first op, which the caller's reference does not know).
std::string fault_in_waits(const Run& run) {
  std::map<std::pair<std::string, bool>, Duration> all, standing;
  for (const LaneWait& wait : total_waits(run).lanes) {
    all[{wait.lane, wait.on_host}] += wait.time;
    if (wait.reason != WaitReason::peer) standing[{wait.lane, wait.on_host}] += wait.time;
  }
  for (const auto& [lane, time] : all)
    if (time > run.result.end) return lane.first + " waits longer than the run lasts";
  for (const auto& [lane, idle] : idle_times(run)) {
    const Duration told = standing[{lane, false}];
    if (told < idle) return lane + " stands still for longer than it waits";
  }
  return "";
}

TEST(LaneWaitsProperty, AreTimeInWhichALaneStandsStill) {
  for (const NamedRun& varied : varied_runs()) EXPECT_EQ(fault_in_waits(varied.run), "") << varied.name;
}

RC_GTEST_PROP(LaneWaitsProperty, HoldsOfRandomTraces, ()) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1'000'000);
  Trace trace = random_trace(seed, *rc::gen::inRange<std::size_t>(1, 200));
  RunSettings settings;
  settings.record = false;
  std::optional<Run> run;
  try {
    run = simulate_and_record(std::move(trace), test_machine(), settings);
  } catch (const std::exception&) {
    RC_DISCARD("the machine has no route that the trace takes");
  }
  RC_ASSERT(fault_in_waits(*run) == "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
