// Does `memwall plan` say what it should: a plan and what stands beside it, the largest batch, what was measured; and
// is what it cannot do refused with a sentence?
#include <gtest/gtest.h>

#include <initializer_list>
#include <sstream>
#include <string>

#include "tests/support/golden.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/program.h"
#include "tests/support/shared_data.h"
#include "tests/support/small_capture.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kTinyStep = "gpt2-124m:layers=2,width=64,heads=2,sequence=64,batch=4 --machine a100-sxm-40gb ";

// The A100 without the blocks "KIND {...}" that name one of the words.
std::string machine_without(std::initializer_list<const char*> kinds, std::initializer_list<const char*> words) {
  std::istringstream file(content_of(std::string(MEMWALL_SOURCE) + "/models/hw/machines/a100-sxm-40gb.textproto"));
  std::string kept, block;
  for (std::string line; std::getline(file, line);) {
    block += line + '\n';
    if (line != "}" && block.find("{\n") != std::string::npos) continue;  // within a block
    bool left_out = false;
    for (const char* kind : kinds)
      for (const char* word : words)
        left_out = left_out || (block.starts_with(std::string(kind) + " {") && block.find(word) != std::string::npos);
    if (!left_out) kept += block;
    block.clear();
  }
  return kept;
}

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

TEST_F(PlanVerb, AShareIsOfTheGpuAndSoItSays) {
  const CommandOutcome o = plan(sample() + "--budget 50% --no-smallest");
  EXPECT_TRUE(has(o, "50% is of the GPU's memory") && has(o, "7.338GB")) << o.out;
}

TEST_F(PlanVerb, AStepThatFitsIsGoldenAndItsPlanIsEmpty) {
  const CommandOutcome o = plan(sample() + "--budget 20GiB --no-smallest");
  EXPECT_EQ(o.code, 0) << o.err;
  expect_golden("plan_fits.txt", o.out);
  ASSERT_EQ(plan(sample() + "--budget 20GiB --no-smallest -o empty.plan").code, 0);
  const CommandOutcome run = run_memwall(folder_, "run " + sample() + "--plan empty.plan");
  EXPECT_TRUE(has(run, "plan empty.plan: decisions about 0 storages")) << run.out;
}

// An option that may be given several times takes one value each time.
TEST_F(PlanVerb, TheStepMayStandBehindOptions) {
  const CommandOutcome o = plan("--policy checkpoint --set pcie=gen5 " + sample() + "--budget 20GiB --no-smallest");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o, "The step fits into 20GiB (21.47 GB) as it is")) << o.out;
}

TEST_F(PlanVerb, WhereNothingFitsTheSmallestBudgetIsNamed) {
  const CommandOutcome o = plan(std::string(kTinyStep) + "--budget 2MiB");
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(has(o, "No plan that was tried fits into 2MiB (2.097 MB).")) << o.out;
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
  EXPECT_TRUE(has(o, "The largest batch that a plan was found for within 200MiB (209.7 MB) is ")) << o.out;
  EXPECT_TRUE(has(o, "most samples per second")) << o.out;
  const CommandOutcome none = plan(std::string(kTinyStep) + "--budget 2MiB --objective batch");
  EXPECT_EQ(none.code, 3);
  EXPECT_NE(none.err.find("within 2MiB (2.097 MB) with 1 sample either, the smallest size."), std::string::npos)
      << none.err;
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
  EXPECT_TRUE(has(less, " less; the budget of 20GiB (21.47 GB) is not raised by that.")) << less.out;
  EXPECT_TRUE(has(less, "What was measured says nothing of the step's time")) << less.out;
  const CommandOutcome tiny = plan(std::string(kTinyStep) + "--no-smallest --format json --observed profile.json");
  EXPECT_TRUE(has(tiny, "A step took 1.000 ms as measured (1 step), ")) << tiny.out << tiny.err;
  refuses(sample() + "--observed " + sample(), "this is a memwall trace; expected what was measured: ");
  const CommandOutcome absent = plan(sample() + "--observed nowhere.pickle");
  EXPECT_EQ(absent.code, 6);
  EXPECT_NE(absent.err.find("nowhere.pickle: there is no such file"), std::string::npos) << absent.err;
}

// Files of PyTorch itself: of memory, and of times with and without annotations (before 2022 steps were operators).
TEST_F(PlanVerb, RealFilesOfPyTorchAreFedBack) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "needs the captures beside the source";
  const auto observed = [&](const std::string& file, const std::string& more = "--no-smallest") {
    return plan(std::string(kTinyStep) + more + " --observed '" + (*data / "traces" / file).string() + "'");
  };
  const CommandOutcome memory = observed("snapshots/lm_small_ctx100_train_from_empty.pickle", "--budget 24GiB");
  EXPECT_EQ(memory.code, 0) << memory.err;
  EXPECT_TRUE(has(memory, "At the peak 786.4 MB were reserved as measured, ")) << memory.out;
  EXPECT_TRUE(has(memory, "more, by\n  which the budget is lowered from 24GiB (25.77 GB) to 25.")) << memory.out;
  EXPECT_TRUE(has(memory, "was it this step, with this batch, on this GPU?")) << "it was another network";
  const CommandOutcome times = observed("kineto/toy_ddp_2xa100.json.gz");
  EXPECT_EQ(times.code, 0) << times.err;
  EXPECT_TRUE(has(times, "A step took 222.4 ms as measured (3 steps), ")) << times.out;
  EXPECT_TRUE(has(times, "What was measured says nothing of memory")) << times.out;
  const CommandOutcome old = observed("kineto/resnet50_v100_bs32_2021.json.gz");
  EXPECT_TRUE(has(old, "A step took 177.6 ms as measured (6 steps), ")) << old.out << old.err;
  const CommandOutcome more = observed("kineto/vgg13_h100_bs512_train.json");
  EXPECT_EQ(more.code, 2);
  EXPECT_NE(more.err.find("more memory was measured than is simulated, and the budget is 41.83 GB: nothing is left"),
            std::string::npos)
      << more.err;
  const CommandOutcome neither = observed("execution_trace/vgg13_h100_bs512.json");
  EXPECT_EQ(neither.code, 2);
  EXPECT_NE(neither.err.find("this is an ExecutionTrace; expected what was measured: "), std::string::npos)
      << neither.err;
}

// The same step, planned for and measured: nothing is far from anything.
TEST_F(PlanVerb, AProfileOfTheStepItselfAgreesWithIt) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "needs the captures beside the source";
  const std::string profile = " '" + (*data / "traces/kineto/vgg13_h100_bs512_train.json").string() + "' ";
  const std::string graph = " '" + (*data / "traces/execution_trace/vgg13_h100_bs512.json").string() + "' ";
  const CommandOutcome o = plan(profile + "--et" + graph + "--no-smallest --observed" + profile);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o, "  peak, allocated      39.34 GB   39.35 GB")) << o.out;
  EXPECT_FALSE(has(o, "far from what is simulated")) << o.out;
}

TEST_F(PlanVerb, StoragesMayWaitOnNvmeAlone) {
  const std::string step = "gpt2-124m:layers=4,width=256,heads=4,sequence=256,batch=8 --machine a100-sxm-40gb ";
  const CommandOutcome o =
      plan(step + "--budget 1100MiB --no-smallest --no-recompute --tiers nvme -o nvme.plan --format json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o, "tiers=nvme")) << o.out;
  EXPECT_FALSE(has(o, "capuchin")) << "it needs the host as a tier of its own";
  const CommandOutcome made = run_memwall(folder_, "run " + step + "--plan nvme.plan --format json");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made, "nvme")) << made.out;
  const std::string written = content_of(folder_ / "nvme.plan");
  EXPECT_NE(written.find("\"from\": \"nvme\""), std::string::npos) << "it waits there";
  EXPECT_NE(written.find("\"through\": \"host\""), std::string::npos) << "and is staged on its way";
}

TEST_F(PlanVerb, AMemoryThatTheMachineLacksOrHasNoWayToIsRefused) {
  const std::string step = "gpt2-124m:layers=2,width=64,heads=2,sequence=64,batch=4 --budget 200MiB --no-smallest ";
  write_content(folder_ / "no_nvme.textproto", machine_without({"tier", "route", "link"}, {"nvme"}));
  write_content(folder_ / "no_way.textproto", machine_without({"route"}, {"\"host\""}));
  EXPECT_EQ(plan(step + "--machine ./no_nvme.textproto").code, 0) << "the host is enough";
  for (const char* tiers : {"nvme", "host+nvme"})
    refuses(step + "--machine ./no_nvme.textproto --tiers " + tiers,
            "has no memory 'nvme'; expected one or several of host and peer_hbm, joined by '+'.");
  for (const char* tiers : {"host", "nvme"})
    refuses(step + "--machine ./no_way.textproto --tiers " + tiers, "has no way from 'hbm' to 'host'.");
  refuses(std::string(kTinyStep) + "--tiers hbm", "--tiers hbm: hbm is the memory of the GPU itself; expected one or");
  refuses(std::string(kTinyStep) + "--tiers ''", "tiers= is not a list");
}

TEST_F(PlanVerb, LayoutsOverRanks) {
  const CommandOutcome o = plan(std::string(kTinyStep) + "--ranks 8 --no-smallest");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o, "Of 12 layouts that were compared, gpt2-124m:")) << o.out;
  EXPECT_TRUE(has(o, "The same step over the GPUs in other ways")) << o.out;
  refuses(std::string(kTinyStep) + "--ranks 8 --policy zero:stage=1,ranks=8",
          "--ranks tries the stages of ZeRO itself; leave out --policy zero:stage=1,ranks=8.");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
