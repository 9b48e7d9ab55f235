// Does comparing what was kept of two runs say the same as comparing the runs?
#include "traces/run/analysis/compared_run.h"

#include <gtest/gtest.h>

#include "sim/trace/scale.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "tests/support/varied_runs.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Runs of many kinds, some of one lineage: other durations, ops put in, dropped, renamed and made anew.
std::vector<NamedRun> compared_runs() {
  std::vector<NamedRun> runs = varied_runs();
  GptShape shape;
  shape.launch_cost = nanoseconds(9);
  const Trace trace = gpt_step(shape);
  runs.push_back({"gpt again", simulate_and_record(trace, test_machine(), {})});
  runs.push_back({"slower gpt", simulate_and_record(scaled(trace, {.kernels = 1.37}), test_machine(), {})});
  memwall::Run changed = runs.back().run;
  Trace& edited = changed.trace.edit();
  for (std::size_t i = 0; i < edited.ops.size(); ++i) {
    Op& op = edited.ops[i];
    if (i % 7 == 0) op.added = true;
    if (i % 11 == 0) op.name = 0;
    if (i % 13 == 0) op.phase = Phase::recompute;
    if (i % 17 == 0) op.module = op.name;
    if (i % 19 == 0) op.bytes += 4096;
  }
  edited.strings.intern("a text that the others lack");
  runs.push_back({"changed gpt", changed});
  for (NamedRun& named : runs) {  // every byte that moves costs energy
    RankMachine& machine = named.run.machine;
    machine.watts = 700;
    machine.idle_watts = 100;
    machine.dollars_per_hour = 2;
    for (std::size_t t = 0; t < machine.tiers.size(); ++t)
      machine.tiers[t].picojoules_per_byte = 1e3 * static_cast<double>(t + 1);
  }
  return runs;
}

// What comparing looks at of a file's run: the rest is empty.
void expect_parts(const memwall::Run& run, const memwall::Run& whole) {
  EXPECT_TRUE(run.trace->uses.empty() && run.residency.empty() && run.memory.empty() && run.link_rates.empty());
  ASSERT_EQ(run.trace->ops.size(), whole.trace->ops.size());
  EXPECT_EQ(run.result.records.size(), whole.result.records.size());
  EXPECT_EQ(run.result.moves.size(), whole.result.moves.size());
  EXPECT_EQ(run.trace->storages.size(), whole.trace->storages.size());
}

TEST(ComparedRun, SaysWhatTheRunsSay) {
  const ScratchFolder folder;
  const std::vector<NamedRun> runs = compared_runs();
  std::vector<ComparedRun> kept, read;
  for (const NamedRun& named : runs) {
    kept.push_back(compared(named.run));
    write_run(named.run, folder / "run.h5");
    const memwall::Run parts = read_run_ops(folder / "run.h5");
    expect_parts(parts, named.run);
    read.push_back(compared(parts));
    EXPECT_EQ(read.back().bound_by, summarize(named.run).verdict.bound_by) << named.name;
  }
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t j = 0; j < runs.size(); ++j) {
      const std::string expected = to_json(compare(runs[i].run, runs[j].run));
      ASSERT_EQ(to_json(compare(kept[i], kept[j])), expected) << runs[i].name << " with " << runs[j].name;
      ASSERT_EQ(to_json(compare(read[i], read[j])), expected) << runs[i].name << " with " << runs[j].name << ", files";
    }
}

TEST(ComparedRun, KeepsNothingThatGrowsWithTheRunButOps) {
  const memwall::Run run = gpt_run(20);
  const ComparedRun kept = compared(run);
  EXPECT_EQ(kept.ops.size(), run.trace->ops.size());
  EXPECT_LE(sizeof(ComparedRun::ComparedOp), 40u);
  EXPECT_LT(kept.groups.size(), 200u);
  EXPECT_TRUE(kept.run.trace->ops.empty() && kept.run.trace->storages.empty() && kept.run.result.records.empty());
  EXPECT_LE(kept.run.trace->strings.size(), 1u);
}

TEST(ComparedRun, ReadingTellsProgressAndMayBeStopped) {
  const ScratchFolder folder;
  write_run(gpt_run(20), folder / "run.h5");
  double last = 0;
  read_run_ops(folder / "run.h5", [&](double share) {
    EXPECT_GE(share, last);
    last = share;
    return true;
  });
  EXPECT_GT(last, 0.9);
  EXPECT_LE(last, 1);
  EXPECT_THROW(read_run_ops(folder / "run.h5", [](double) { return false; }), LoadCancelled);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
