// Do runs in one picture get names that say what was changed?
#include "gui/model/run_label.h"

#include <gtest/gtest.h>

#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using Labels = std::vector<std::string>;

memwall::Run run_with(std::vector<std::string> policies, std::string pager = "", std::string machine = "") {
  memwall::Run run = simulate_and_record(gpt_step({}), test_machine(), {});
  run.policies = std::move(policies);
  run.pager = std::move(pager);
  if (!machine.empty()) run.machine.name = std::move(machine);
  return run;
}

TEST(RunLabel, IsWhatThePoliciesAre) {
  const memwall::Run base = run_with({}), full = run_with({"checkpoint:mode=full"}),
                     both = run_with({"checkpoint:mode=full", "zero:stage=3"}, "lru");
  EXPECT_EQ(run_labels({&base, &full, &both}, {"a.h5", "b.h5", "c.h5"}),
            (Labels{"no policy", "checkpoint:mode=full", "checkpoint:mode=full + zero:stage=3 + pager lru"}));
}

TEST(RunLabel, NamesTheMachineWhereItDiffers) {
  const memwall::Run here = run_with({}, "", "h100"), there = run_with({}, "", "a100");
  EXPECT_EQ(run_labels({&here, &there}, {"a.h5", "b.h5"}), (Labels{"h100, no policy", "a100, no policy"}));
}

TEST(RunLabel, NamesTheStepWhereItDiffers) {
  const memwall::Run one = run_with({});
  memwall::Run other = run_with({});
  memwall::Trace renamed = *other.trace;
  renamed.name = "vgg";
  other.trace = std::move(renamed);
  EXPECT_EQ(run_labels({&one, &other}, {"a.h5", "b.h5"}), (Labels{one.trace->name + ", no policy", "vgg, no policy"}));
}

TEST(RunLabel, NamesTheFileWhereNothingElseTellsApart) {
  const memwall::Run one = run_with({}), two = run_with({}), full = run_with({"checkpoint:mode=full"});
  EXPECT_EQ(run_labels({&one, &two, &full}, {"x/a.h5", "x/b.h5", "x/c.h5"}),
            (Labels{"no policy (a)", "no policy (b)", "checkpoint:mode=full"}));
  EXPECT_EQ(run_labels({&one, &two}, {"x/a.h5", "y/a.h5"}), (Labels{"no policy (x/a.h5)", "no policy (y/a.h5)"}));
}

TEST(RunLabel, NamesWhatWasChangedAndTheHeadlineWhatAllShare) {
  memwall::Run base = run_with({}, "", "h100"), fast = run_with({}, "", "h100");
  const std::string step = base.trace->name;
  fast.changes.overrides = {"pcie=gen5"};
  fast.changes.scale = {"kernels=1.1"};
  EXPECT_EQ(run_labels({&base, &fast}, {"a.h5", "b.h5"}),
            (Labels{"h100, no policy", "h100 + pcie=gen5, no policy, scale kernels=1.1"}));
  EXPECT_EQ(shared_headline({&base, &fast}), step);
  base.changes = fast.changes;
  EXPECT_EQ(run_labels({&base, &fast}, {"a.h5", "b.h5"}), (Labels{"no policy (a)", "no policy (b)"}));
  EXPECT_EQ(shared_headline({&base, &fast}), step + " on h100 + pcie=gen5, scale kernels=1.1");
}

TEST(RunLabel, OfOneRunIsItsPolicies) {
  const memwall::Run run = run_with({});
  EXPECT_EQ(run_labels({&run}, {"a.h5"}), Labels{"no policy"});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
