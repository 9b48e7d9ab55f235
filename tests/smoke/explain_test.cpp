// Does `memwall explain` say the same for any number of threads, and refuse what it cannot explain in a sentence?
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/doc_commands.h"
#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

class ExplainVerb : public ::testing::Test {
 protected:
  CommandOutcome memwall(const std::string& arguments) const {
    return run_command("'" MEMWALL_PROGRAM "' " + arguments, folder_.path());
  }
  CommandOutcome explain(const std::string& arguments) const {
    return memwall("explain '" + kSample + "' --only 'gpu.hbm.*' --only 'scale.*' " + arguments);
  }
  ScratchFolder folder_;
};

TEST_F(ExplainVerb, IsTheSameForAnyNumberOfThreadsAndFromTheJournal) {
  const std::string asked = "--policy offload:what=activations --curve pcie=gen3,gen5 --format json ";
  const CommandOutcome one = explain(asked + "--jobs 1 --no-journal");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(explain(asked + "--jobs 4 --no-journal").out, one.out);
  EXPECT_EQ(explain(asked + "--jobs 4").out, one.out);
  const CommandOutcome kept = explain(asked + "--jobs 1");
  EXPECT_EQ(kept.out, one.out) << "from the journal";
  EXPECT_NE(kept.err.find("points came from memwall-sweep.sqlite"), std::string::npos) << kept.err;
}

TEST_F(ExplainVerb, TheLineOfAScenarioIsTheScenario) {
  const std::string rest = " --only 'gpu.hbm.*' --no-journal --no-regret";
  const CommandOutcome line =
      memwall("explain \"step='" + kSample + "' policy=checkpoint machine=h100-sxm-80gb\"" + rest);
  const CommandOutcome quoted =
      memwall("explain 'step=" + kSample + " policy=checkpoint machine=h100-sxm-80gb'" + rest);
  const CommandOutcome options =
      memwall("explain '" + kSample + "' --policy checkpoint --machine h100-sxm-80gb" + rest);
  ASSERT_EQ(quoted.code, 0) << quoted.err;
  EXPECT_EQ(quoted.out, options.out);
  EXPECT_NE(line.code, 0) << "quotes are part of that path";
  const CommandOutcome both = memwall("explain 'step=" + kSample + "' --policy checkpoint" + rest);
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("whole question"), std::string::npos) << both.err;
}

TEST_F(ExplainVerb, ARunFileIsTheScenarioThatMadeIt) {
  const std::string rest = " --only 'gpu.hbm.*' --no-journal --no-regret";
  fs::copy(kSample, folder_.path() / "own.mwt");
  ASSERT_EQ(memwall("run own.mwt --policy checkpoint --machine h100-sxm-80gb -o run.h5").code, 0);
  fs::create_directory(folder_.path() / "elsewhere");
  const CommandOutcome o = run_command("'" MEMWALL_PROGRAM "' explain ../run.h5" + rest, folder_.path() / "elsewhere");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, memwall("explain own.mwt --policy checkpoint --machine h100-sxm-80gb" + rest).out);
  EXPECT_EQ(memwall("explain run.h5 --policy checkpoint" + rest).code, 2) << "it is the whole question";

  std::ofstream(folder_.path() / "own.mwt", std::ios::app) << "more";
  const CommandOutcome changed = memwall("explain run.h5" + rest);
  EXPECT_EQ(changed.code, 2);
  EXPECT_NE(changed.err.find("has changed since"), std::string::npos) << changed.err;

  ASSERT_EQ(memwall("run '" + kSample + "' --no-provenance -o nameless.h5").code, 0);
  const CommandOutcome nameless = memwall("explain nameless.h5" + rest);
  EXPECT_EQ(nameless.code, 2);
  EXPECT_NE(nameless.err.find("--no-provenance"), std::string::npos) << nameless.err;
}

TEST_F(ExplainVerb, WhatDoesNotFitIsExplainedWithExitCodeThree) {
  const CommandOutcome o = explain("--budget 8GiB --no-regret --no-journal");
  EXPECT_EQ(o.code, 3) << o.err;
  EXPECT_NE(o.out.find("It does not fit"), std::string::npos) << o.out;
  EXPECT_NE(o.err.find("missing in hbm"), std::string::npos) << o.err;
}

TEST_F(ExplainVerb, WhatDoesNotFitIsNoneOfTheFastest) {
  const CommandOutcome o = memwall(
      "explain llama3.2-1b:batch=4 --machine h100-sxm-80gb --only scale.host --no-regret --no-journal --curve "
      "pcie=gen4,gen5");
  EXPECT_EQ(o.code, 3) << o.err;
  EXPECT_NE(with_single_blanks(o.out).find("the fastest first: recompute, offload, keep (does not fit)."),
            std::string::npos)
      << o.out;
}

TEST_F(ExplainVerb, MistakesAreSentences) {
  for (const auto& [arguments, word] :
       {std::pair("--only gpu.hbm.bandwith", "gpu.hbm.bandwidth"), std::pair("--by 80%", "up to 50 %"),
        std::pair("--by fast", "5%"), std::pair("--curve policy=none", "names no policies"),
        std::pair("--curve sequence=1..4", "sequence"),
        std::pair("--set gpu.hbm.bandwith=1TB/s", "gpu.hbm.bandwidth")}) {
    const CommandOutcome o = explain(std::string(arguments) + " --no-journal");
    EXPECT_EQ(o.code, 2) << arguments << o.err;
    EXPECT_NE(o.err.find(word), std::string::npos) << arguments << ": " << o.err;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
