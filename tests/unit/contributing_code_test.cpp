// Do the files that CONTRIBUTING.md shows whole compile as they stand there, and do what it says? CMake takes them from
// the page (tests/CMakeLists.txt).
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <string>

#include "cli/verbs/verbs.h"
#include "models/workload/import/tables/durations_csv.h"
#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"
#include "traces/trace/trace_file.h"
#include "validate/bench/benchmark.h"

namespace memwall {

Verb add_longest(CLI::App& parent);  // as the page adds it to cli/verbs/verbs.h

namespace {
std::string printed;
}  // namespace

// In place of the terminal's.
void print(const std::string& text) { printed += text; }

namespace {

TEST(ContributingCode, ThePolicyHalvesKernels) {
  const Trace step = gpt_step({.layers = 1, .hidden = 64, .sequence = 64, .batch = 2});
  const Trace halved = rewritten(step, "halve"), whole = rewritten(step, "halve:factor=1");
  ASSERT_EQ(halved.ops.size(), step.ops.size());
  std::size_t kernels = 0;
  for (OpId id = 0; id < step.ops.size(); ++id) {
    const bool kernel = step.ops[id].kind == OpKind::kernel;
    kernels += kernel;
    EXPECT_EQ(halved.ops[id].duration.count(), step.ops[id].duration.count() / (kernel ? 2 : 1));
    EXPECT_EQ(whole.ops[id].duration, step.ops[id].duration);
  }
  EXPECT_GT(kernels, 0u);
  EXPECT_NE(refusal(step, "halve:factor=2"), "") << "the page says 0 to 1";
}

TEST(ContributingCode, TheImporterReadsItsFormatAndRefusesALineOfAnother) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder / "times.csv";
  std::ofstream(file) << "durations\nfirst,3\nsecond,5\n";
  const ImportedStep step = import_durations_csv(file, {});
  ASSERT_EQ(step.trace.ops.size(), 2u);
  EXPECT_EQ(step.trace.strings[step.trace.ops[1].name], "second");
  EXPECT_EQ(step.trace.ops[1].duration, microseconds(5));
  std::ofstream(file) << "durations\nfirst;3\n";
  EXPECT_THROW(import_durations_csv(file, {}), InputError);
  FileHead head;
  head.text = "durations\nfirst,3\n";
  EXPECT_TRUE(recognizes_durations_csv(head));
  head.text = "name,us\n";
  EXPECT_FALSE(recognizes_durations_csv(head));
}

TEST(ContributingCode, TheVerbPrintsTheLongestOps) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder / "step.mwt";
  write_trace(gpt_step({.layers = 1, .hidden = 64, .sequence = 64, .batch = 2}), file);
  CLI::App app;
  const Verb verb = add_longest(app);
  app.parse("longest " + file.string() + " --top 3 --format csv");
  printed.clear();
  EXPECT_EQ(verb.act(), 0);
  EXPECT_EQ(std::ranges::count(printed, '\n'), 4) << "a heading and three rows\n" << printed;
}

TEST(ContributingCode, TheMicrobenchmarkIsRegistered) {
  EXPECT_TRUE(std::ranges::any_of(benchmarks(), [](const BenchmarkInfo& b) { return b.name == "memset_host"; }));
}

}  // namespace
}  // namespace memwall
