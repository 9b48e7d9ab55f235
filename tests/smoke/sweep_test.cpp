// Does a study end with the same table however often it was killed, and does it say what cannot be kept?
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_capture.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

class SweepVerb : public ::testing::Test {
 protected:
  CommandOutcome sweep(const std::string& arguments, const std::string& before = "") const {
    return run_command(before + "'" MEMWALL_PROGRAM "' sweep '" + kSample + "' --machine a100-sxm-80gb " + arguments,
                       folder_.path());
  }
  ScratchFolder folder_;
};

const std::string kAxes =
    "--over 'policy=none|checkpoint:mode=full' --over pcie=8..64GB/s:log:60 --objective step_time --csv -";

TEST_F(SweepVerb, KilledAHundredTimesItEndsAsOneThatWasNot) {
  const auto begin = std::chrono::steady_clock::now();
  const CommandOutcome whole = sweep(kAxes + " --no-journal");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(whole.code, 0) << whole.err;
  std::mt19937 random(3);
  int killed = 0;
  for (int i = 0; i < 100; ++i) {
    // Of the time that this computer takes now: from early, where nothing is finished yet, to its end.
    const double share = 0.05 + 0.01 * i + 0.0005 * static_cast<double>(random() % 100);
    const CommandOutcome o = sweep(kAxes, "timeout -s KILL " + std::to_string(share * taken.count()) + " ");
    killed += o.code == 137 || o.code == 128 + 9 ? 1 : 0;
    if (o.code == 0) {
      EXPECT_EQ(o.out, whole.out);
    }
  }
  EXPECT_GT(killed, 5) << "nothing was put to the test";
  const CommandOutcome end = sweep(kAxes);
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(end.out, whole.out);
  EXPECT_NE(end.err.find("of 120 points came from memwall-sweep.sqlite"), std::string::npos)
      << "what was finished before it was killed is there: " << end.err;
}

// A pipe has no name of its own: what came through it is what a point's key is of.
TEST_F(SweepVerb, StepsThatComeThroughAPipeAreToldApart) {
  ASSERT_EQ(run_memwall(folder_, "generate gpt2-124m --batch 1 --seq 64 -o small.mwt").code, 0);
  const std::string rest = " | '" MEMWALL_PROGRAM "' sweep - --machine a100-sxm-80gb --over pcie=gen3,gen4 --csv -";
  const CommandOutcome sample = run_command("cat '" + kSample + "'" + rest, folder_.path());
  const CommandOutcome small = run_command("cat small.mwt" + rest, folder_.path());
  ASSERT_EQ(sample.code, 0) << sample.err;
  ASSERT_EQ(small.code, 0) << small.err;
  EXPECT_NE(sample.out, small.out);
  EXPECT_EQ(run_command("cat '" + kSample + "'" + rest, folder_.path()).out, sample.out);
}

TEST_F(SweepVerb, NoOutputReplacesAFileThatAPointReads) {
  write_content(folder_ / "own.mwt", content_of(kSample));
  const CommandOutcome o =
      run_command("'" MEMWALL_PROGRAM "' sweep --machine a100-sxm-80gb --over 'step=own.mwt|own.mwt:x' --csv own.mwt",
                  folder_.path());
  EXPECT_EQ(o.code, 2) << o.err;
  EXPECT_EQ(content_of(folder_ / "own.mwt"), content_of(kSample));
  EXPECT_EQ(sweep("--over pcie=gen3 --csv a.csv --json \"$PWD/a.csv\"").code, 2) << "one place in two words";
}

TEST_F(SweepVerb, TheAnswerIsPrintedWhereAFileCannotBeWritten) {
  const CommandOutcome o =
      sweep("--over pcie=8..64GB/s:log:40 --no-journal --csv a.csv", "trap '' XFSZ; ulimit -f 1; ");
  EXPECT_NE(o.code, 0);
  EXPECT_NE(o.out.find("40 points: 40 ran"), std::string::npos) << o.out << o.err;
  EXPECT_EQ(sweep("--over pcie=gen3 --no-journal --csv nowhere/a.csv").out, "") << "that is told before";
}

// A limit on the size of files stands in for a full disk: SQLite is told so in the same way. What is printed is
// smaller.
TEST_F(SweepVerb, AFullDiskIsToldAndNothingIsLost) {
  const std::string table = "--over pcie=8..64GB/s:log:150 --objective step_time --show step_time --full";
  const CommandOutcome whole = sweep(table + " --no-journal");
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_LT(whole.out.size(), 20'000u);
  ASSERT_EQ(sweep("--over pcie=gen3").code, 0);
  const CommandOutcome full = sweep(table, "trap '' XFSZ; ulimit -f 80; ");
  EXPECT_EQ(full.code, 0) << full.err;
  EXPECT_NE(full.out.find("finished points are no longer kept"), std::string::npos) << full.out << full.err;
  EXPECT_EQ(full.out.substr(full.out.find("\nPoints")), whole.out.substr(whole.out.find("\nPoints")));
  const CommandOutcome again = sweep(table);
  EXPECT_EQ(again.out, whole.out) << again.err;
}

// A capture without memory events knows no peak: the columns that nobody asked for are empty, others are refused.
TEST_F(SweepVerb, WhatACaptureDoesNotKnowIsInNobodysWay) {
  std::string capture = small_capture();
  for (std::size_t at; (at = capture.find("\"name\":\"[memory]\"")) != std::string::npos;) {
    const std::size_t line = capture.rfind('\n', at);
    capture.erase(line, capture.find('\n', at) - line);
  }
  write_content(folder_ / "capture.json", capture);
  const std::string step = "'" MEMWALL_PROGRAM "' ", over = " capture.json --over pcie=8..64GB/s:3 --no-journal";
  const CommandOutcome fit = run_command(step + "fit" + over + " --smallest --where 'step_time < 1s'", folder_.path());
  EXPECT_EQ(fit.code, 0) << fit.err;
  EXPECT_NE(fit.out.find("at which step_time < 1s holds is 8GB/s"), std::string::npos) << fit.out;
  EXPECT_EQ(run_command(step + "sweep" + over, folder_.path()).code, 0);
  const CommandOutcome asked =
      run_command(step + "fit" + over + " --where 'step_time < 1s' --show peak", folder_.path());
  EXPECT_EQ(asked.code, 2);
  EXPECT_NE(asked.err.find("peak"), std::string::npos) << asked.err;
}

TEST_F(SweepVerb, FailedPointsAreGroupedAndTheExitCodeSaysSo) {
  const CommandOutcome o = sweep("--over 'policy=none|checkpoint:modules=nowhere' --objective step_time");
  EXPECT_EQ(o.code, 5) << o.err;
  EXPECT_NE(o.out.find("1 failed"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("Points that failed"), std::string::npos) << o.out;
}

TEST_F(SweepVerb, AStepThatCannotBeReadFailsOnce) {
  write_content(folder_ / "cut.json", small_capture().substr(0, 3000));
  const std::string program = "'" MEMWALL_PROGRAM "' ";
  const CommandOutcome alone =
      run_command(program + "sweep cut.json --over pcie=8..64GB/s:6 --no-journal", folder_.path());
  EXPECT_EQ(alone.code, run_command(program + "run cut.json", folder_.path()).code) << alone.err;
  EXPECT_EQ(alone.out, "");
  EXPECT_EQ(alone.err.find("cut.json"), alone.err.rfind("cut.json")) << alone.err;
  const CommandOutcome one = run_command(
      program + "sweep --machine a100-sxm-80gb --over 'step=cut.json|" + kSample + "' --no-journal", folder_.path());
  EXPECT_EQ(one.code, 5) << "others run: " << one.err;
}

TEST_F(SweepVerb, APointRunsAgainFromItsLine) {
  const CommandOutcome o = sweep("--over policy=checkpoint:mode=full --over pcie=gen3 --ndjson - --no-journal");
  ASSERT_EQ(o.code, 0) << o.err;
  const std::size_t at = o.out.find("\"scenario\": \"") + 13;
  std::string line = o.out.substr(at, o.out.find("\", \"error\"", at) - at);
  for (std::size_t q; (q = line.find("\\\"")) != std::string::npos;) line.erase(q, 1);
  const CommandOutcome again = run_command("'" MEMWALL_PROGRAM "' run --format json '" + line + "'", folder_.path());
  ASSERT_EQ(again.code, 0) << again.err;
  const auto step_time = [](const std::string& json) {
    const std::size_t begin = json.find("\"step_time_s\": ") + 15;
    return json.substr(begin, json.find_first_of(",\n", begin) - begin);
  };
  EXPECT_EQ(std::stod(step_time(again.out)), std::stod(step_time(o.out)));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
