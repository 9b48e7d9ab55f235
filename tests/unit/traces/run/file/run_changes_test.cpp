// Does a run file give back what the user changed, what did nothing of it, and the recipe of the step; and do small
// parts of a run, which comparisons and viewers read?
#include <gtest/gtest.h>

#include "tests/support/handmade_run.h"
#include "tests/support/scratch_folder.h"
#include "traces/run/analysis/compare.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_source.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Run changed_run() {
  HandmadeRun made;
  made.device(OpKind::kernel, "k", 0, 0, 1, 2, 5);
  Run run = made.finish();
  run.changes = {{"pcie=gen5", "gpu.hbm.bandwidth=4TB/s"}, {"kernels=1.1"}, true};
  run.warnings = {"pcie=gen5 changes nothing: of a test."};
  run.trace.edit().recipe = {{"precision", "pure bf16", "precision=bf16"}, {"batch", "8 samples", ""}};
  run.trace.edit().notes = {"from the import"};
  run.allocator = "ideal";
  return run;
}

void expect_changes(const memwall::Run& run) {
  const memwall::Run expected = changed_run();
  EXPECT_EQ(run.changes.overrides, expected.changes.overrides);
  EXPECT_EQ(run.changes.scale, expected.changes.scale);
  EXPECT_TRUE(run.changes.transfer_host);
  EXPECT_EQ(run.warnings, expected.warnings);
  EXPECT_EQ(run.trace->recipe, expected.trace->recipe);
}

TEST(RunChanges, ComeBackFromTheFile) {
  const ScratchFolder folder;
  write_run(changed_run(), folder / "run.h5");
  expect_changes(read_run(folder / "run.h5"));
  expect_changes(open_run(folder / "run.h5")->outline().run);
  expect_changes(read_run_ops(folder / "run.h5"));
}

TEST(RunChanges, StandFirstInTheNotes) {
  const RunSummary summary = summarize(changed_run());
  EXPECT_EQ(summary.notes, (std::vector<std::string>{"pcie=gen5 changes nothing: of a test.", "from the import"}));
  EXPECT_NE(to_json(summary).find("\"recipe\": {\n    \"precision\": {"), std::string::npos) << to_json(summary);
}

TEST(RunChanges, AreComparedByName) {
  HandmadeRun made;
  made.device(OpKind::kernel, "k", 0, 0, 1, 2, 5);
  const Comparison c = compare(made.finish(), changed_run());
  EXPECT_TRUE(c.base_overrides.empty());
  EXPECT_EQ(machine_text("x", c.other_overrides), "x + pcie=gen5 + gpu.hbm.bandwidth=4TB/s");
  EXPECT_EQ(c.other_settings,
            (std::vector<std::string>{"host time transferred", "scale kernels=1.1", "allocator ideal"}));
  EXPECT_NE(to_json(c).find("\"overrides\": [\n      \"pcie=gen5\""), std::string::npos) << to_json(c).substr(0, 400);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
