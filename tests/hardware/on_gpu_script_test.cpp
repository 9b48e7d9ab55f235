// The script for a GPU machine, without a GPU: its plan, what it refuses, and that it goes on where it stopped.
#include "tests/support/command.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class OnGpuScript : public testing::Test {
 protected:
  // With programs given but memwall itself, and a python that has no torch.
  CommandOutcome script(const std::string& arguments, const std::string& environment = "") {
    return run_command("MEMWALL= MEMWALL_BENCH='" MEMWALL_BENCH_PROGRAM "' MEMWALL_REPLAY='" MEMWALL_REPLAY_PROGRAM
                       "' MEMWALL_PYTHON=false " +
                           environment + " bash '" MEMWALL_SOURCE "/validate/on_gpu.sh' " + arguments,
                       folder_.path());
  }
  const ScratchFolder folder_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(OnGpuScript, HelpSaysWhatItNeedsAndReturns) {
  const CommandOutcome outcome = script("--help");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* word : {"--minutes", "--out", "--schedules", "--steps", "--scale", "--scratch", "--backend",
                           "--dry-run", "nvcc", "MEMWALL_BENCH", "exit codes"})
    EXPECT_TRUE(contains(outcome.out, word)) << word;
}

TEST_F(OnGpuScript, ADryRunPrintsThePlanAndDoesNothing) {
  std::filesystem::create_directories(folder_ / "schedules");
  write_content(folder_ / "schedules/b.schedule.gz", "");
  write_content(folder_ / "schedules/a.schedule", "");
  write_content(folder_ / "schedules/notes.txt", "");
  const CommandOutcome outcome = script("--dry-run --minutes 10 --out found --schedules schedules");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "bench: " MEMWALL_BENCH_PROGRAM " --backend cuda --seconds 180 -o found/results\n"))
      << outcome.out;
  const std::size_t a = outcome.out.find("-o found/replay/a.execution.csv\n");
  const std::size_t b = outcome.out.find("-o found/replay/b.execution.csv\n");
  EXPECT_TRUE(a != std::string::npos && b != std::string::npos && a < b) << outcome.out;
  EXPECT_FALSE(contains(outcome.out, "notes"));
  EXPECT_TRUE(contains(outcome.out, "pytorch: skipped, false has no torch\n"));
  EXPECT_TRUE(contains(outcome.out, "plan: skipped, there is no memwall\n"));
  EXPECT_TRUE(contains(outcome.out, "compare: skipped, there is no memwall\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "found"));
}

TEST_F(OnGpuScript, ADryRunSaysWhichPlansAreMadeAndExecuted) {
  std::filesystem::create_directories(folder_ / "steps");
  write_content(folder_ / "steps/a.mwt", "");
  write_content(folder_ / "steps/notes.txt", "");
  const CommandOutcome outcome =
      script("--dry-run --out found --steps steps --scale bytes=1/2", "MEMWALL='" MEMWALL_PROGRAM "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string memwall = "plan: " MEMWALL_PROGRAM, planned = " -o found/planned/a.";
  for (const std::string& line :
       {memwall + " schedule steps/a.mwt --scale bytes=1/2" + planned + "resident.schedule\n",
        memwall + " run steps/a.mwt --policy checkpoint:mode=full --plan-out found/planned/a.plan_checkpoint.plan\n",
        memwall + " schedule steps/a.mwt --plan found/planned/a.plan_checkpoint.plan --scale bytes=1/2" + planned +
            "plan_checkpoint.schedule\n",
        memwall + " run steps/a.mwt --policy offload:what=activations,to=host --plan-out "
                  "found/planned/a.plan_offload.plan\n",
        std::string(
            "found/planned/a.plan_offload.schedule --backend cuda -o found/replay/a.plan_offload.execution.csv\n"),
        std::string("compare: " MEMWALL_PROGRAM " validate, of found/results and found/replay\n")})
    EXPECT_TRUE(contains(outcome.out, line)) << line << outcome.out;
  EXPECT_FALSE(contains(outcome.out, "notes"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "found"));
}

// Without a GPU, through the same lines: plans of a real step are made, scheduled, executed and compared. The
// benchmarks are those that were measured and committed.
TEST_F(OnGpuScript, PlansAreMadeExecutedAndComparedOnTheHostBackEnd) {
  std::filesystem::create_directories(folder_ / "found/results");
  for (const char* file : {"results.csv", "results.json"})
    std::filesystem::copy(std::string(MEMWALL_SOURCE "/validate/data/two-core-epyc/") + file,
                          folder_ / "found/results");
  write_content(folder_ / "found/results/finished", "0\n");
  const std::string here = "MEMWALL='" MEMWALL_PROGRAM "'";
  const std::string arguments = "--backend host --minutes 10 --out found --scale bytes=1/512,flops=1e-6";
  const CommandOutcome outcome = script(arguments, here);
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "schedules:       3 of 3 executed\n")) << outcome.out;
  for (const std::string name : {"gpt_124m.resident", "gpt_124m.plan_checkpoint", "gpt_124m.plan_offload"}) {
    EXPECT_TRUE(contains(outcome.out, "| replay | " + name + " | step time | s | ")) << outcome.out;
    const std::size_t row = outcome.out.find("| replay | " + name + " | hbm peak allocated | B | ");
    ASSERT_NE(row, std::string::npos) << outcome.out;
    const std::string peak = outcome.out.substr(row, outcome.out.find('\n', row) - row);
    EXPECT_TRUE(contains(peak, "| +0.0 % | 2 % | within |")) << peak;
  }
  EXPECT_TRUE(contains(outcome.out, "| ranking | gpt_124m | order of 3 schedules by step time |")) << outcome.out;
  EXPECT_TRUE(contains(content_of(folder_ / "found/log/comparison.md"), "| microbenchmark |"));
  const std::string plan = content_of(folder_ / "found/planned/gpt_124m.plan_checkpoint.plan");
  EXPECT_TRUE(contains(plan, "checkpoint:mode=full")) << plan.substr(0, 300);
  EXPECT_TRUE(content_of(folder_ / "found/planned/gpt_124m.plan_offload.schedule").starts_with("memwall schedule 2\n"));
  const CommandOutcome list = run_command("tar -tzf found/archive-1.tar.gz", folder_.path());
  EXPECT_TRUE(contains(list.out, "planned/gpt_124m.plan_offload.plan\n")) << list.out;

  // Started again it compares what is there. A schedule that is not the executed one is found.
  EXPECT_FALSE(contains(script(arguments, here).out, "] schedule "));
  std::filesystem::copy_file(folder_ / "found/planned/gpt_124m.resident.schedule",
                             folder_ / "found/planned/gpt_124m.plan_offload.schedule",
                             std::filesystem::copy_options::overwrite_existing);
  const CommandOutcome exchanged = script(arguments, here);
  EXPECT_EQ(exchanged.code, 1);
  EXPECT_TRUE(contains(exchanged.err, "the comparison ended with code 6")) << exchanged.err;
}

TEST_F(OnGpuScript, WithATorchPytorchIsPlanned) {
  const CommandOutcome outcome = script("--dry-run", "MEMWALL_PYTHON=true");
  EXPECT_TRUE(contains(outcome.out, "matrix.py --out on_gpu/pytorch --minutes REST --device cuda\n")) << outcome.out;
}

TEST_F(OnGpuScript, WithoutProgramsTheyAreBuilt) {
  const CommandOutcome outcome = script("--dry-run", "MEMWALL_BENCH= MEMWALL_REPLAY=");
  EXPECT_TRUE(contains(outcome.out, "build: cmake -S " MEMWALL_SOURCE "/validate")) << outcome.out;
}

TEST_F(OnGpuScript, WhatIsThereIsSkipped) {
  std::filesystem::create_directories(folder_ / "found/results");
  std::filesystem::create_directories(folder_ / "found/replay");
  write_content(folder_ / "found/results/finished", "0\n");
  write_content(folder_ / "found/replay/a.execution.csv", "");
  write_content(folder_ / "a.schedule", "");
  const CommandOutcome outcome = script("--dry-run --out found --schedules .");
  EXPECT_TRUE(contains(outcome.out, "bench: skipped, found/results is there\n")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "replay: a skipped, found/replay has it\n")) << outcome.out;
}

TEST_F(OnGpuScript, RefusesWhatMakesNoSense) {
  const auto refused = [&](const std::string& arguments, const std::string& sentence) {
    const CommandOutcome outcome = script(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(contains(outcome.err, sentence)) << arguments << ": " << outcome.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << arguments;
  };
  refused("--minutes soon", "--minutes \"soon\": expected a whole number from 1 to 9999.");
  refused("--minutes=0", "--minutes \"0\": expected");
  refused("--minutes", "--minutes: expected a value after it.");
  refused("--out ''", "--out: expected a value, found an empty one.");
  refused("--mnutes 3", "unknown argument \"--mnutes\"");
  refused("--backend tpu", "--backend \"tpu\": expected cuda or host.");
  refused("--steps absent", "--steps \"absent\": there is no such file or folder; expected a trace (.mwt)");
  refused("--schedules absent", "--schedules \"absent\": there is no such folder");
  EXPECT_EQ(script("--dry-run", "MEMWALL_REPLAY=/absent").code, 2);
  const CommandOutcome absent = script("--dry-run", "MEMWALL=/absent");
  EXPECT_EQ(absent.code, 2);
  EXPECT_TRUE(contains(absent.err, "MEMWALL: expected the program memwall, found \"/absent\".")) << absent.err;
}

// A whole run around programs that only pretend: that one fails is said and does not end the rest; what is found
// is packed, and a second start does what is missing.
TEST_F(OnGpuScript, AFailureIsSaidTheRestIsDoneAndPackedAndASecondStartGoesOn) {
  write_content(folder_ / "bench",
                "#!/bin/bash\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\nmkdir -p \"$out\"\n"
                "echo x,a=1,s,1,1,1,1,0,0,measured, >\"$out/results.csv\"\n");
  write_content(
      folder_ / "replay",
      "#!/bin/bash\nfor last; do :; done\ngrep -q good \"$1\" || { echo broken; exit 6; }\necho done >\"$last\"\n");
  for (const char* program : {"bench", "replay"})
    std::filesystem::permissions(folder_ / program, std::filesystem::perms::owner_all);
  std::filesystem::create_directories(folder_ / "schedules");
  write_content(folder_ / "schedules/a.schedule", "bad");
  write_content(folder_ / "schedules/b.schedule", "good");
  const std::string programs = "MEMWALL_BENCH=./bench MEMWALL_REPLAY=./replay";
  const CommandOutcome first = script("--out found --schedules schedules", programs);
  EXPECT_EQ(first.code, 1);
  EXPECT_TRUE(contains(first.err, "schedule a ended with code 6: broken")) << first.err;
  EXPECT_TRUE(contains(first.out, "microbenchmarks: 1 rows measured, 0 not applicable, 0 failed\n")) << first.out;
  EXPECT_TRUE(contains(first.out, "schedules:       1 of 2 executed\n")) << first.out;
  EXPECT_EQ(content_of(folder_ / "found/replay/b.execution.csv"), "done\n");

  write_content(folder_ / "schedules/a.schedule", "good");
  std::filesystem::remove(folder_ / "bench");
  write_content(folder_ / "bench", "#!/bin/bash\nexit 1\n");
  std::filesystem::permissions(folder_ / "bench", std::filesystem::perms::owner_all);
  const CommandOutcome second = script("--out found --schedules schedules", programs);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(contains(second.out, "schedules:       2 of 2 executed\n")) << second.out;
  EXPECT_FALSE(contains(second.out, "microbenchmarks, up to")) << "they are there";
  const CommandOutcome list = run_command("tar -tzf found/archive-1.tar.gz", folder_.path());
  EXPECT_TRUE(contains(list.out, "replay/a.execution.csv\n")) << list.out << list.err;
  EXPECT_TRUE(contains(list.out, "results/results.csv\n")) << list.out;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
