// Does `memwall plan` say what it should: a plan and what stands beside it, the largest batch, what was measured; and
// is what it cannot do refused with a sentence?
#include <gtest/gtest.h>

#include <string>

#include "tests/support/golden.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/program.h"
#include "tests/support/small_capture.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace {

constexpr const char* kTinyStep = "gpt2-124m:layers=2,width=64,heads=2,sequence=64,batch=4 --machine a100-sxm-40gb ";

class PlanVerb : public ::testing::Test {
 protected:
  CommandOutcome plan(const std::string& arguments) { return run_memwall(folder_, "plan " + arguments); }
  static std::string sample() { return "'" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt' "; }
  void refuses(const std::string& arguments, const std::string& sentence) {
    const CommandOutcome o = plan(arguments);
    EXPECT_EQ(o.code, 2) << arguments;
    EXPECT_EQ(o.out, "") << arguments;
    EXPECT_NE(o.err.find(sentence), std::string::npos) << o.err;
  }
  static bool has(const CommandOutcome& o, const std::string& text) { return o.out.find(text) != std::string::npos; }

  const ScratchFolder folder_;
};

TEST_F(PlanVerb, SaysWhatToTakeAndWhatStandsBesideIt) {
  const CommandOutcome o = plan(sample() + "--budget 11GiB --no-smallest");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o, "Take --policy ")) << o.out;
  EXPECT_TRUE(has(o, "What others would cost against the recommended plan")) << o.out;
  EXPECT_TRUE(has(o, "  doing nothing       no    ")) << o.out;
  EXPECT_TRUE(has(o, "  full checkpointing  yes ")) << o.out;
  EXPECT_FALSE(has(o, "smallest budget")) << o.out;
}

TEST_F(PlanVerb, AStepThatFitsIsGoldenAndItsPlanIsEmpty) {
  const CommandOutcome o = plan(sample() + "--budget 20GiB --no-smallest");
  EXPECT_EQ(o.code, 0) << o.err;
  expect_golden("plan_fits.txt", o.out);
  ASSERT_EQ(plan(sample() + "--budget 20GiB --no-smallest -o empty.plan").code, 0);
  const CommandOutcome run = run_memwall(folder_, "run " + sample() + "--plan empty.plan");
  EXPECT_TRUE(has(run, "plan empty.plan: decisions about 0 storages")) << run.out;
}

TEST_F(PlanVerb, WhereNothingFitsTheSmallestBudgetIsNamed) {
  const CommandOutcome o = plan(std::string(kTinyStep) + "--budget 2MiB");
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(has(o, "No plan that was tried fits into 2.097 MB.")) << o.out;
  EXPECT_TRUE(has(o, "The smallest budget that a plan was found for: ")) << o.out;
  EXPECT_NE(o.err.find(" are missing, and the smallest budget that a plan was found for is "), std::string::npos) << o.err;
}

TEST_F(PlanVerb, RobustTakesPercentWithAndWithoutTheSign) {
  const CommandOutcome bare = plan(std::string(kTinyStep) + "--budget 60MiB --no-smallest --robust 20");
  const CommandOutcome sign = plan(std::string(kTinyStep) + "--budget 60MiB --no-smallest --robust 20%");
  EXPECT_EQ(bare.code, sign.code) << sign.err;
  EXPECT_TRUE(has(bare, "robust=20")) << bare.out;
  refuses(std::string(kTinyStep) + "--robust much", "robust=much is not a number between 0 and 1000");
}

TEST_F(PlanVerb, TheLargestBatchAndTheOneWithMostSamplesPerSecond) {
  const CommandOutcome o = plan(std::string(kTinyStep) + "--budget 200MiB --objective batch -o batch.plan");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o, "The largest batch that a plan was found for within 209.7 MB is ")) << o.out;
  EXPECT_TRUE(has(o, "most samples per second")) << o.out;
  const CommandOutcome none = plan(std::string(kTinyStep) + "--budget 2MiB --objective batch");
  EXPECT_EQ(none.code, 3);
  EXPECT_NE(none.err.find("within 2.097 MB with 1 sample either, the smallest size."), std::string::npos) << none.err;
  refuses(std::string(kTinyStep) + "--objective batch --ranks 8", "--objective batch with --ranks: not implemented;");
  refuses(std::string(kTinyStep) + "--objective batch --policy batch:8",
          "--objective batch tries batches itself; leave out --policy batch:8.");
  refuses(sample() + "--objective speed", "--objective speed: expected time (the shortest step) or batch");
}

TEST_F(PlanVerb, WhatWasMeasuredIsSaidAndFedBack) {
  write_content(folder_ / "small.pickle", pickled(small_snapshot()));
  write_content(folder_ / "profile.json", small_capture());
  const CommandOutcome less = plan(sample() + "--budget 20GiB --no-smallest --format json --observed small.pickle");
  EXPECT_EQ(less.code, 0) << less.err;
  EXPECT_TRUE(has(less, " less; the budget of 21.47 GB is not raised by that.")) << less.out;
  EXPECT_TRUE(has(less, "What was measured says nothing of the step's time")) << less.out;
  const CommandOutcome tiny = plan(std::string(kTinyStep) + "--no-smallest --format json --observed profile.json");
  EXPECT_TRUE(has(tiny, "A step took 1.000 ms as measured (1 step), ")) << tiny.out << tiny.err;
  refuses(sample() + "--observed " + sample(), "this is a memwall trace; expected what was measured: ");
  const CommandOutcome absent = plan(sample() + "--observed nowhere.pickle");
  EXPECT_EQ(absent.code, 6);
  EXPECT_NE(absent.err.find("nowhere.pickle: there is no such file"), std::string::npos) << absent.err;
}

TEST_F(PlanVerb, LayoutsOverRanks) {
  const CommandOutcome o = plan(std::string(kTinyStep) + "--ranks 8 --no-smallest");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o, "Of 12 layouts that were compared, gpt2-124m:")) << o.out;
  EXPECT_TRUE(has(o, "The same step over the GPUs in other ways")) << o.out;
  refuses(std::string(kTinyStep) + "--ranks 8 --policy zero:stage=1,ranks=8",
          "--ranks tries the stages of ZeRO itself; leave out --policy zero:stage=1,ranks=8.");
}

}  // namespace
}  // namespace memwall
