// Is a study that several machines share the study itself, byte by byte, whatever was killed between; and are shards
// that do not belong together refused by name? And as a job array of Slurm?
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kAxes =
    " --over 'policy=none|checkpoint:mode=full|checkpoint:modules=nowhere' --over pcie=8..64GB/s:log:9 --where fits "
    "--objective step_time";

class SweepShards : public ::testing::Test {
 protected:
  SweepShards() { write_content(folder_ / "g.mwt", content_of(MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt")); }
  CommandOutcome sweep(const std::string& arguments, const std::string& before = "") const {
    return run_command(before + "'" MEMWALL_PROGRAM "' sweep " + arguments, folder_.path());
  }
  CommandOutcome shard(const std::string& which, const std::string& more = "", const std::string& before = "") const {
    return sweep("g.mwt --machine a100-sxm-80gb" + kAxes + " --shard " + which + more, before);
  }
  void run_shards(int count) const {
    for (int i = 0; i < count; ++i) {
      const CommandOutcome o = shard(std::to_string(i) + "/" + std::to_string(count));
      EXPECT_EQ(o.code, 0) << o.err;
    }
  }
  void expect_refusal(const std::string& arguments, const std::string& words) const {
    const CommandOutcome o = sweep(arguments);
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find(words), std::string::npos) << o.err;
    EXPECT_EQ(o.out, "");
  }

  ScratchFolder folder_;
};

TEST_F(SweepShards, MergedTheyAreTheStudyByteByByte) {
  const CommandOutcome whole = sweep("g.mwt --machine a100-sxm-80gb" + kAxes +
                                     " --no-journal --csv w.csv --ndjson w.ndjson --json w.json --figure w.svg");
  ASSERT_EQ(whole.code, 5) << "some points fail: " << whole.err;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(shard(std::to_string(i) + "/4", " --figure m.svg").code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m.svg")) << "one shard is not the study";
  const CommandOutcome merged = sweep("merge memwall-sweep.*-of-4.sqlite --csv m.csv --ndjson m.ndjson --json m.json");
  EXPECT_EQ(merged.code, 5) << merged.err;
  EXPECT_EQ(merged.out, whole.out);
  EXPECT_EQ(merged.err, "memwall sweep: 9 of 27 points failed.\n");
  for (const char* ending : {".csv", ".ndjson", ".json", ".svg"})
    EXPECT_EQ(content_of((folder_ / (std::string("m") + ending)).string()),
              content_of((folder_ / (std::string("w") + ending)).string()))
        << ending;
  EXPECT_EQ(sweep("merge memwall-sweep.*-of-4.sqlite --format json").out, content_of(folder_ / "w.json"));
}

TEST_F(SweepShards, MoreShardsThanPointsAreTheStudyToo) {
  const std::string few = "g.mwt --machine a100-sxm-80gb --over pcie=gen4,gen5 --csv - ";
  const CommandOutcome whole = sweep(few + "--no-journal");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(sweep("g.mwt --machine a100-sxm-80gb --over pcie=gen4,gen5 --shard " + std::to_string(i) + "/3").code, 0);
  EXPECT_EQ(
      sweep("merge memwall-sweep.2-of-3.sqlite memwall-sweep.0-of-3.sqlite memwall-sweep.1-of-3.sqlite --csv -").out,
      whole.out)
      << "in any order";
}

TEST_F(SweepShards, AShardThatWasKilledGoesOnAndIsNotMergedBefore) {
  run_shards(2);
  const CommandOutcome whole = sweep("merge memwall-sweep.*-of-2.sqlite --csv -");
  std::filesystem::remove(folder_ / "memwall-sweep.1-of-2.sqlite");
  int killed = 0;
  for (int i = 0; i < 20; ++i)
    killed += shard("1/2", "", "timeout -s KILL 0.0" + std::to_string(20 + 2 * i) + " ").code == 137 ? 1 : 0;
  EXPECT_GT(killed, 0) << "nothing was put to the test";
  if (shard("1/2").code != 0) FAIL();
  EXPECT_EQ(sweep("merge memwall-sweep.*-of-2.sqlite --csv -").out, whole.out);
}

TEST_F(SweepShards, WhatDoesNotBelongTogetherIsRefusedByName) {
  run_shards(3);
  expect_refusal("merge memwall-sweep.0-of-3.sqlite", "Of 3 shards these are missing: 1/3, 2/3");
  expect_refusal("merge memwall-sweep.*-of-3.sqlite memwall-sweep.0-of-3.sqlite", "are both shard 0/3");
  EXPECT_EQ(shard("0/3", " --set gpu.hbm.capacity=70GiB --journal other.sqlite").code, 0);
  expect_refusal("merge other.sqlite memwall-sweep.1-of-3.sqlite memwall-sweep.2-of-3.sqlite", "of different studies");
  EXPECT_EQ(shard("0/2", " --journal half.sqlite").code, 0);
  expect_refusal("merge half.sqlite memwall-sweep.1-of-3.sqlite", "half.sqlite is shard 0/2");
  // The same options on another content.
  write_content(folder_ / "g.mwt", content_of(MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt"));
  EXPECT_EQ(run_memwall(folder_, "generate gpt2-124m --batch 1 --seq 64 -o g.mwt").code, 0);
  EXPECT_EQ(shard("2/3", " --journal changed.sqlite").code, 0);
  expect_refusal("merge memwall-sweep.0-of-3.sqlite memwall-sweep.1-of-3.sqlite changed.sqlite", "another content");
  EXPECT_EQ(sweep("g.mwt --machine a100-sxm-80gb --over pcie=gen4 --journal plain.sqlite").code, 0);
  expect_refusal("merge plain.sqlite", "without a finished shard");
  expect_refusal("merge nowhere.sqlite", "nowhere.sqlite");
  expect_refusal("merge g.mwt", "no SQLite file");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "nowhere.sqlite"));
}

TEST_F(SweepShards, ShardsThatThereAreNotAreRefused) {
  for (const char* word : {"4/4", "0", "1/0", "-1/2", "0/2x", "a/b", "0/1000000"})
    expect_refusal("g.mwt --over pcie=gen4 --shard=" + std::string(word), std::string("--shard ") + word);
  expect_refusal("g.mwt --over pcie=gen4 --shard 0/2 --no-journal", "leave out --no-journal");
  expect_refusal("g.mwt --over pcie=gen4 --shard 0/2 --csv x.csv", "memwall sweep merge");
}

// As Slurm would: a shell that has SLURM_ARRAY_TASK_ID.
TEST_F(SweepShards, TheScriptsForSlurmAreTheStudy) {
  const std::string arguments = "g.mwt --machine a100-sxm-80gb" + kAxes + " --csv s.csv";
  const CommandOutcome whole = sweep(arguments + " --no-journal");
  const std::string csv = content_of(folder_ / "s.csv");
  std::filesystem::remove(folder_ / "s.csv");
  std::filesystem::create_directory(folder_ / "jobs of mine");
  const CommandOutcome made =
      sweep(arguments +
            " --slurm 3 --slurm-script 'jobs of mine/my links.sbatch' --slurm-cpus 2 --slurm-mem 2G "
            "--slurm-time 00:10:00 --slurm-partition short");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find("sbatch --dependency=afterok:"), std::string::npos) << made.out;
  const std::string script = content_of(folder_ / "jobs of mine" / "my links.sbatch");
  for (const char* line : {"#SBATCH --job-name=my_links\n", "#SBATCH --array=0-2\n", "#SBATCH --cpus-per-task=2\n", "#SBATCH --mem=2G\n",
                           "#SBATCH --time=00:10:00\n", "#SBATCH --partition=short\n", "#SBATCH --requeue\n"})
    EXPECT_NE(script.find(line), std::string::npos) << line << script;
  for (const char* task : {"2", "0", "1", "0"}) {  // one of them requeued
    const CommandOutcome o = run_command("cd / && SLURM_ARRAY_TASK_ID=" + std::string(task) + " bash '" +
                                             (folder_ / "jobs of mine" / "my links.sbatch").string() + "'",
                                         folder_.path());
    EXPECT_EQ(o.code, 0) << o.err;
  }
  const CommandOutcome merged = run_command("bash 'jobs of mine/my links-merge.sbatch'", folder_.path());
  EXPECT_EQ(merged.code, 5) << "points fail as they do in the study: " << merged.err;
  EXPECT_EQ(merged.out, whole.out);
  EXPECT_EQ(content_of(folder_ / "s.csv"), csv);
}

// An sbatch that notes what it was given, and numbers jobs.
TEST_F(SweepShards, SubmittedTheMergeWaitsForTheArray) {
  std::filesystem::create_directory(folder_ / "bin");
  const std::string program = (folder_ / "bin" / "sbatch").string();
  write_content(program, "#!/bin/sh\necho \"$@\" >> jobs.log\necho \"$((40 + $(wc -l < jobs.log)));cluster\"\n");
  ::chmod(program.c_str(), 0755);
  const std::string path = "PATH=\"$PWD/bin:$PATH\" ";
  const CommandOutcome o = sweep("g.mwt --machine a100-sxm-80gb" + kAxes + " --slurm 4", path);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(content_of(folder_ / "jobs.log"),
            "--parsable memwall-sweep.sbatch\n--parsable --dependency=afterok:41 memwall-sweep-merge.sbatch\n");
  EXPECT_NE(o.out.find("job 41 (shards), job 42"), std::string::npos) << o.out;
  write_content(program, "#!/bin/sh\necho no such partition\nexit 1\n");
  const CommandOutcome refused = sweep("g.mwt --machine a100-sxm-80gb" + kAxes + " --slurm 4", path);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("exit code 1"), std::string::npos) << refused.err;
}

TEST_F(SweepShards, WordsThatSbatchDoesNotTakeAreRefused) {
  expect_refusal("g.mwt --over pcie=gen4 --slurm 2 --slurm-script x.sbatch --slurm-mem '4G\n#SBATCH -p x'",
                 "--slurm-mem");
  expect_refusal("g.mwt --over pcie=gen4 --slurm 2 --slurm-script x.sbatch --slurm-time '$(x)'", "--slurm-time");
  expect_refusal("g.mwt --over pcie=gen4 --slurm 2 --slurm-script x.sbatch --csv -", "expected files");
  expect_refusal("- --over pcie=gen4 --slurm 2 --slurm-script x.sbatch < g.mwt", "expected the step as a file");
  expect_refusal("g.mwt --over pcie=gen4 --slurm 2 --slurm-script x.sbatch --journal j", "leave out --journal");
  expect_refusal("g.mwt --over pcie=gen4 --slurm 2 --slurm-script x.sbatch --shard 0/2",
                 "--slurm 2 makes all shards of the study, and --shard 0/2 is one of them");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.sbatch"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
