// Are shards parts of a study that together are the study, and are their files what they say?
#include "study/sweep/sweep_shard.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "study/sweep/sweep.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(SweepShard, EveryPointIsInOneOfThem) {
  for (std::size_t points : {1, 2, 7, 100})
    for (std::size_t count : {1, 3, 8, 101}) {
      std::size_t sum = 0;
      for (std::size_t index = 0; index < count; ++index) {
        const SweepShard shard = parse_shard(std::to_string(index) + "/" + std::to_string(count));
        std::size_t own = 0;
        for (std::size_t point = 0; point < points; ++point) own += shard.has(point) ? 1 : 0;
        EXPECT_EQ(shard.points_of(points), own) << to_string(shard) << " of " << points;
        sum += own;
      }
      EXPECT_EQ(sum, points);
    }
}

TEST(SweepShard, WordsThatAreNoneAreRefused) {
  for (const char* text : {"", "/", "1", "1/", "/2", "2/2", "1/0", "-1/2", "1/2 ", "0/100001", "0x1/2"})
    EXPECT_THROW(parse_shard(text), UsageError) << text;
}

TEST(SweepShard, AStudyReadsBackFromItsText) {
  const StudyFile study{.title = "Which \"link\"\nis it?",
                        .base = {.step = {"a.mwt", "b c.mwt"},
                                 .execution_traces = {"e"},
                                 .onto = "gpt2-124m",
                                 .measured_on = "t4",
                                 .settings = {"pcie=gen5"},
                                 .scale = {"host=0.5"},
                                 .policies = {"checkpoint", "batch:4"}},
                        .machines = {"a", "b"},
                        .axes = {"pcie=1..2GB/s:3", "policy=none|plan if pcie=1GB/s"},
                        .zips = {"a,b"},
                        .conditions = {"fits", "step_time < 1s"},
                        .fields = {"peak"},
                        .figures = {"x.svg=line"},
                        .sample = "latin:5:3",
                        .objective = "max throughput"};
  EXPECT_EQ(parse_study_file(study_text(study), "test"), study);
  EXPECT_EQ(parse_study_file(study_text({}), "test"), StudyFile{});
}

class ShardFiles : public ::testing::Test {
 protected:
  ShardFiles() {
    StepProgram step;
    step.op("mm", {}, {step.make(4096, "made")});
    study_.add_step("small", std::move(step).finish());
    study_.add_machine("round", test_machine());
    request_.base = {.step = {"small"}, .machine = "round"};
    request_.space.axes = {parse_axis("repeat=1..5"), parse_axis("allocator=ideal|pytorch")};
    request_.objective = "step_time";
  }
  std::filesystem::path write_shard(std::size_t index, std::size_t count) {
    SweepRequest own = request_;
    own.shard = SweepShard{index, count};
    const std::filesystem::path file = folder_ / shard_journal("s", *own.shard);
    std::vector<PointRecord> records;
    for (const SweepPoint& point : sweep(study_, own, nullptr).points) records.push_back(point.record);
    finish_shard(file, {StudyFile{.title = "T"}, true, fingerprint_of(own), *own.shard, 10}, records);
    return file;
  }

  Study study_;
  SweepRequest request_;
  ScratchFolder folder_;
};

TEST_F(ShardFiles, TogetherTheyAreTheStudy) {
  const SweepResult whole = sweep(study_, request_, nullptr);
  MergedShards merged = merged_shards({write_shard(2, 3), write_shard(0, 3), write_shard(1, 3)});
  EXPECT_EQ(merged.study.title, "T");
  EXPECT_TRUE(merged.accept_gaps);
  const SweepResult together = assembled(request_, std::move(merged.records));
  ASSERT_EQ(together.points.size(), whole.points.size());
  for (std::size_t i = 0; i < whole.points.size(); ++i) {
    EXPECT_EQ(together.points[i].record.fields, whole.points[i].record.fields);
    EXPECT_EQ(together.points[i].scenario, whole.points[i].scenario);
  }
  EXPECT_EQ(together.best, whole.best);
  EXPECT_THROW(assembled(request_, std::vector<PointRecord>(9)), UsageError);
}

TEST_F(ShardFiles, TheFingerprintIsOfTheWholeStudy) {
  const std::string one = fingerprint_of(request_);
  SweepRequest shard = request_;
  shard.shard = SweepShard{1, 3};
  EXPECT_EQ(fingerprint_of(shard), one);
  SweepRequest other = request_;
  other.space.axes[0] = parse_axis("repeat=1..6");
  EXPECT_NE(fingerprint_of(other), one);
  other = request_;
  other.fields = {"mfu"};  // needs more of each point
  EXPECT_NE(fingerprint_of(other), one);
  other = request_;
  other.base.settings = {"gpu.hbm.capacity=70GB"};
  EXPECT_NE(fingerprint_of(other), one);
}

TEST_F(ShardFiles, AShardIsWrittenAnewOverAnOlderOne) {
  const std::filesystem::path file = write_shard(0, 1);
  request_.base.scale = {"kernels=2"};
  EXPECT_EQ(write_shard(0, 1), file);
  const std::vector<PointRecord> records = merged_shards({file}).records;
  ASSERT_EQ(records.size(), 10u);
  EXPECT_EQ(records[0].fields, sweep(study_, request_, nullptr).points[0].record.fields);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
